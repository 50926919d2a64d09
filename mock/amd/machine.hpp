// The whole card: blocks, memory, engine threads, resets.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mock/amd/chips.hpp"
#include "mock/amd/config_space.hpp"
#include "mock/amd/faults.hpp"
#include "mock/amd/gfx.hpp"
#include "mock/amd/hub.hpp"
#include "mock/amd/ih.hpp"
#include "mock/amd/memory.hpp"
#include "mock/amd/nbio.hpp"
#include "mock/amd/psp.hpp"
#include "mock/amd/registers.hpp"
#include "mock/amd/rules.hpp"
#include "mock/amd/sdma.hpp"
#include "mock/amd/smu.hpp"
#include "mock/mock.hpp"

namespace baregpu::mock {

/// MC address of VRAM byte 0, as the VBIOS sets it up (not 0, so that a forgotten base shows).
constexpr uint64_t kFbBase = 0x80'0000'0000;
constexpr uint64_t kMmioBarSize = 0x80000;

class Machine {
 public:
  Machine(const Chip& chip, const MockOptions& options, std::unique_ptr<isa::Executor> executor);
  ~Machine();

  std::mutex mutex;  ///< the card's lock: every block is used under it
  /// Takes the lock for an access of the driver. A driver polls without a pause; engines that wait go first.
  std::unique_lock<std::mutex> bus_lock();
  /// Takes the lock for an engine.
  std::unique_lock<std::mutex> engine_lock();
  const Chip& chip;
  const MockOptions options;
  Rules rules;
  FaultPlan faults;
  std::mt19937_64 random;
  Memory memory;
  ConfigSpace config;
  RegisterFile regs;
  Hub gc, mm;
  Ih ih;
  Psp psp;
  Smu smu;
  Nbio nbio;
  Gfx gfx;
  Sdma sdma;

  // ---- the bus side; the caller holds the lock
  uint32_t mmio_read(uint32_t dword);
  void mmio_write(uint32_t dword, uint32_t value);
  /// Whether the card answers at all: decode on, not in reset.
  bool answers();
  bool in_reset() const { return std::chrono::steady_clock::now() < reset_until_; }
  bool removed() const { return removed_; }
  /// A reset was started and the driver has not come back yet: engines stand still.
  bool reset_pending() const { return reset_pending_; }
  void set_trace(std::vector<std::string>* out) { trace_ = out; }
  AccessCounters counters;

  // ---- engines' requests to host memory; false = dropped (already noted)
  bool bus_read(uint64_t bus, std::span<std::byte> out, const char* who);
  bool bus_write(uint64_t bus, std::span<const std::byte> in, const char* who);
  std::byte* bus_host(uint64_t bus, const char* who);
  bool in_fb(uint64_t mc, uint64_t size) const {
    return mc >= kFbBase && mc - kFbBase < memory.vram_size() && size <= memory.vram_size() - (mc - kFbBase);
  }

  // ---- time: awaited bits appear after 1..3 reads of the driver that do not show them yet
  void defer(std::function<void()> f);
  void tick();
  /// 100 MHz reference counter, reset by mode1.
  uint64_t clock() const;
  /// Starts a mode1 reset: the card vanishes for some milliseconds and comes back cold.
  void mode1_reset();

  // ---- interrupts
  void raise_msi();
  bool wait_msi(std::chrono::milliseconds timeout);

  // ---- engine threads
  void start_engines();
  /// Wakes sleeping engines: something that they wait for may have changed. Thread: any.
  void kick();
  /// Unmaps host memory that no page leads to any more: at once, or when the running waves, which may hold its address,
  /// end.
  void release_host(std::byte* host, uint64_t size);
  void note_waves_ended();
  bool stopping() const { return stopping_; }
  std::atomic<bool> opened{false};

 private:
  void power_on(CardState state);
  void cold_blocks(bool stalled);
  void engine_loop(bool compute);
  void trace_access(char kind, uint32_t dword, uint32_t value);
  void finish_reset();

  struct Deferred {
    unsigned reads;
    std::function<void()> f;
  };
  std::vector<Deferred> deferred_;
  std::vector<std::string>* trace_ = nullptr;
  std::chrono::steady_clock::time_point reset_until_{}, clock_zero_;
  bool reset_pending_ = false, removed_ = false;
  struct Grave {
    std::byte* host;
    uint64_t size;
  };
  std::vector<Grave> graves_;

  std::mutex msi_mutex_;
  std::condition_variable msi_cv_;
  uint64_t msi_pending_ = 0;

  std::mutex sleep_mutex_;
  std::condition_variable sleep_cv_;
  std::atomic<uint64_t> kicks_{0};
  std::atomic<int> sleepers_{0}, engines_waiting_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace baregpu::mock
