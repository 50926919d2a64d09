// The graphics and compute block: GRBM banking, RLC, compute micro engine, hardware queues, dispatch.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "mock/amd/hub.hpp"
#include "mock/isa/executor.hpp"

namespace baregpu::mock {

enum class StepResult : uint8_t { kIdle, kBlocked, kWorked };

constexpr unsigned kHqdRegs = 56;           // CP_MQD_BASE_ADDR .. CP_HQD_PQ_WPTR_HI (mqd.tsv words 0x80..0xb7)
constexpr uint32_t kShWindow = 0x2c00, kShCount = 0x400;
constexpr uint32_t kUconfigWindow = 0xc000, kUconfigEnd = 0x10000;

/// One hardware queue of micro engine 1.
struct ComputeQueue {
  std::array<uint32_t, kHqdRegs> hqd{};
  bool active = false, hung = false, mqd_read = false, cus = true;
  bool dequeue = false;                     // request pending
  unsigned pipe = 0, queue = 0;
  uint64_t rptr = 0, wptr = 0;              // dwords, monotonic
  uint64_t wait_started = 0;
  std::array<uint32_t, kShCount> sh{};
  std::bitset<kShCount> sh_written;
  struct Ib { uint64_t va; uint32_t size, pos; };
  std::vector<Ib> ibs;
  uint32_t skip = 0;                        // dwords left to skip (PRED_EXEC)
  uint64_t epoch = 0;                       // changes when the queue is torn down
};

/// Thread: the card's lock, except where said otherwise.
class Gfx {
 public:
  Gfx(Machine& machine, std::unique_ptr<isa::Executor> executor);

  /// RLC autoload: busy from the call on, complete after some polls.
  void start_autoload();
  void set_running();
  void reset();
  /// Delivers a doorbell; false if no active queue of the micro engine listens there.
  bool doorbell(unsigned index, uint64_t value);
  /// Runs packets of all queues. Thread: the compute engine's; releases the lock while waves run.
  StepResult step(std::unique_lock<std::mutex>& lock);
  bool any_active() const;
  /// Whether waves run right now (host memory that they may use must stay).
  bool busy() const { return running_waves_; }
  void stop_waves() { stop_.store(true); }

  // ---- for the packet processor (pm4.cpp)
  void hang(ComputeQueue& q, uint8_t source, const char* rule, std::string why);
  bool dispatch(ComputeQueue& q, uint32_t x, uint32_t y, uint32_t z, uint32_t initiator, std::unique_lock<std::mutex>& lock);
  void release_mem(ComputeQueue& q, const uint32_t* p);
  void invalidate_code() { executor_->invalidate_code(); }

 private:
  friend class Pm4;
  ComputeQueue* selected();
  uint32_t hqd_read(unsigned index);
  void hqd_write(unsigned index, uint32_t value);
  void activate(ComputeQueue& q);
  void deactivate(ComputeQueue& q);
  void kill_queues();
  void mec_control(uint32_t value);
  bool mec_running() const;
  bool read_mqd(ComputeQueue& q);
  void report_rptr(ComputeQueue& q);
  void report_wave_fault(ComputeQueue& q, const isa::WaveFault& fault);
  std::string check_dispatch(const ComputeQueue& q, uint32_t initiator) const;

  Machine& m_;
  std::unique_ptr<isa::Executor> executor_;
  ShaderSpace space_;
  std::array<ComputeQueue, 32> queues_;     // pipe * 8 + queue
  std::array<uint32_t, kHqdRegs> other_hqd_{};  // banks of micro engines that do not exist here
  std::array<std::array<uint32_t, 2>, 16> sh_mem_{};  // by VMID: config, bases
  uint64_t start_pc_ = 0;
  bool reset_pulsed_ = false, autoload_busy_ = false;
  std::atomic<bool> stop_{false};
  bool running_waves_ = false;
};

}  // namespace baregpu::mock
