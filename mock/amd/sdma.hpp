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
  bool any_active() const;

 private:
  struct Engine {
    unsigned index = 0;
    bool enabled = false, hung = false;
    uint64_t rptr = 0, wptr = 0;  // bytes, monotonic
    uint64_t epoch = 0;
    struct Ib { uint64_t va = 0; uint32_t size = 0, pos = 0; } ib;  // size 0 = none
  };
  std::string name(const Engine& e, const char* suffix) const;
  uint32_t reg(const Engine& e, const char* suffix) const;
  void attach(Engine& e);
  void control(Engine& e, uint32_t value);
  uint64_t ring_bytes(const Engine& e) const;
  StepResult run_packet(Engine& e, std::unique_lock<std::mutex>& lock);
  StepResult execute(Engine& e, const std::vector<uint32_t>& p, std::unique_lock<std::mutex>& lock);
  bool copy(Engine& e, uint64_t dst, uint64_t src, uint64_t n, std::unique_lock<std::mutex>& lock);
  bool fill(Engine& e, uint64_t dst, uint32_t value, uint64_t n, std::unique_lock<std::mutex>& lock);
  void hang(Engine& e, const char* rule, std::string why);
  void report_rptr(Engine& e);

  Machine& m_;
  std::array<Engine, 2> engines_;
};

}  // namespace baregpu::mock
