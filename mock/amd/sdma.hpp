// System DMA engines: one ring each, copies, fills, fences, polls.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "mock/amd/gfx.hpp"

namespace baregpu::mock {

/// Thread: the card's lock, except where said otherwise.
class Sdma {
 public:
  explicit Sdma(Machine& machine);
  void reset();
  bool doorbell(unsigned index, uint64_t value);
  /// Runs packets of both engines. Thread: the copy engines'; releases the lock now and then during long copies.
  StepResult step(std::unique_lock<std::mutex>& lock);

 private:
  struct Engine {
    struct Ib {
      uint64_t va = 0;
      uint32_t size = 0, pos = 0;
    };  // dwords; size 0 = none
    unsigned index = 0;
    bool enabled = false, hung = false;
    uint64_t rptr = 0, wptr = 0;  // bytes, monotonic
    uint64_t epoch = 0;           // changes when the queue is switched on, off or reset
    Ib ib;
    const char* who = "";
  };
  std::string name(const Engine& e, const char* suffix) const;
  uint32_t reg(const Engine& e, const char* suffix) const;
  void attach(Engine& e);
  void control(Engine& e, uint32_t value);
  bool running(const Engine& e) const;
  uint64_t ring_bytes(const Engine& e) const;
  bool fetch(Engine& e, uint32_t* out, uint32_t n, uint32_t skip);
  StepResult run_one(Engine& e, std::unique_lock<std::mutex>& lock);
  StepResult execute(Engine& e, uint32_t header, const std::vector<uint32_t>& p, std::unique_lock<std::mutex>& lock);
  StepResult indirect(Engine& e, uint32_t header, const std::vector<uint32_t>& p);
  bool poll(Engine& e, uint32_t header, const std::vector<uint32_t>& p, bool& satisfied);
  /// Copies or fills (`src` unused then) in runs of contiguous memory; lets others in now and then.
  bool move(Engine& e, uint64_t dst, uint64_t src, const uint32_t* fill, uint64_t n,
            std::unique_lock<std::mutex>& lock);
  std::byte* place(Engine& e, uint64_t va, bool write, uint64_t& run);
  StepResult malformed(Engine& e, const char* rule, const std::string& why, uint32_t length);
  void hang(Engine& e, uint8_t source);
  StepResult done(Engine& e, uint32_t dwords);
  void report_rptr(Engine& e);

  Machine& m_;
  std::array<Engine, 2> engines_{Engine{.index = 0, .who = "SDMA0"}, Engine{.index = 1, .who = "SDMA1"}};
  alignas(64) std::array<std::byte, 4096> scratch_{};  // stands in for pages that lead nowhere
};

}  // namespace baregpu::mock
