// The graphics and compute block: GRBM banking, RLC, compute micro engine, hardware queues, dispatch.
#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mock/amd/hub.hpp"
#include "mock/isa/executor.hpp"

namespace baregpu::mock {

enum class StepResult : uint8_t { kIdle, kBlocked, kWorked };

constexpr unsigned kHqdRegs = 56;  // CP_MQD_BASE_ADDR .. CP_HQD_PQ_WPTR_HI (v11_structs.h words 0x80..0xb7)
constexpr uint32_t kShWindow = 0x2c00, kShCount = 0x400;
constexpr uint32_t kUconfigWindow = 0xc000, kUconfigEnd = 0x10000;

/// One hardware queue of micro engine 1.
struct ComputeQueue {
  struct Ib {
    uint64_t va;
    uint32_t size, pos;
  };
  std::array<uint32_t, kHqdRegs> hqd{};
  bool active = false, hung = false, mqd_read = false, has_cus = true;
  uint32_t dequeue = 0;  // pending request: 1 drain, 2 reset waves
  unsigned pipe = 0, queue = 0;
  uint64_t rptr = 0, wptr = 0;  // dwords, monotonic
  std::array<uint32_t, kShCount> sh{};
  std::bitset<kShCount> sh_written;
  std::vector<Ib> ibs;
  uint64_t epoch = 0;  // changes when the queue is set up or torn down

  uint64_t hqd64(unsigned index) const { return uint64_t{hqd[index + 1]} << 32 | hqd[index]; }
  uint64_t ring_dwords() const;
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
  /// Whether waves run right now (host memory that they may use must stay).
  bool busy() const { return running_waves_; }
  void stop_waves() { stop_.store(true); }

  // ---- for the packet processor (pm4.cpp)
  /// Stops the queue, with an interrupt if `source` is not 0.
  void hang(ComputeQueue& q, uint8_t source, const std::string& why);
  /// Runs a dispatch to its end; releases the lock meanwhile. False: the queue is stuck or gone.
  bool dispatch(ComputeQueue& q, uint32_t x, uint32_t y, uint32_t z, uint32_t initiator,
                std::unique_lock<std::mutex>& lock);
  void invalidate_code() { executor_->invalidate_code(); }
  /// End-of-pipe events need the queue's EOP buffer; raises the fault if it is missing.
  bool eop_ready(ComputeQueue& q);

 private:
  ComputeQueue* selected();
  unsigned selected_vmid() const;
  void hqd_write(unsigned index, uint32_t value);
  void activate(ComputeQueue& q);
  void deactivate(ComputeQueue& q);
  void try_dequeue(ComputeQueue& q);
  void kill_queues();
  void mec_control(uint32_t value);
  void soft_reset(uint32_t value);
  bool mec_running() const;
  bool read_mqd(ComputeQueue& q);
  void report_rptr(ComputeQueue& q);
  void report_wave_fault(ComputeQueue& q, const isa::WaveFault& fault);
  std::string check_dispatch(const ComputeQueue& q, uint32_t initiator) const;
  isa::DispatchInfo describe(const ComputeQueue& q, uint32_t initiator) const;

  Machine& m_;
  std::unique_ptr<isa::Executor> executor_;
  ShaderSpace space_;
  std::array<ComputeQueue, 32> queues_;                // pipe * 8 + queue
  std::array<uint32_t, 16> sh_config_{}, sh_bases_{};  // by VMID
  uint64_t start_pc_ = 0;
  bool started_ = false;  // reset was pulsed with a good start address
  bool autoload_busy_ = false;
  std::atomic<bool> stop_{false};
  bool running_waves_ = false;
  const ComputeQueue* running_queue_ = nullptr;
};

}  // namespace baregpu::mock
