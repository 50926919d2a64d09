// Signals and timelines: how queues and the CPU wait for each other (public).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "drivers/base/bits.hpp"
#include "drivers/mmio.hpp"

namespace baregpu::hcq {

/// 16 bytes that the GPU and the CPU see: a 64-bit value and a 64-bit timestamp (100 MHz ticks). Copyable handle.
struct Signal {
  static constexpr uint64_t kSize = 16, kTimestampOffset = 8;
  GpuVa va{};  ///< 16-byte aligned
  Mmio cpu;    ///< 16 bytes
  uint64_t value() const { return cpu.read64(0); }
  uint64_t timestamp() const { return cpu.read64(kTimestampOffset); }
  void set(uint64_t v) const { cpu.write64(0, v); }
};

/// A place on a timeline: reached when the low 32 bits of `signal` are >= `value`. Queue packets compare 32 bits only.
struct TimelinePoint {
  uint64_t count = 0;  ///< position on the timeline, 64-bit, for ordering on the CPU
  GpuVa signal{};
  uint32_t value = 0;
};

/// One monotonically increasing counter a device. Hardware waits compare the low 32 bits, unsigned; so each span of
/// 2^32 values has a signal of its own, and a wait for a value before the wrap keeps being satisfied after it. Thread:
/// the device's.
class Timeline {
 public:
  static constexpr unsigned kEpochs = 4;
  /// @param signals  kEpochs signals. @param start  first position is start + 1 (tests start near a wrap).
  Timeline(std::array<Signal, kEpochs> signals, uint64_t start = 0);
  /// The next position, ready to be signalled: its signal's old value is smaller. Does not count until commit(), so
  /// that a submission that fails uses up no position (waiters would never see it).
  TimelinePoint prepare();
  /// The work that signals `prepare()`'s point is queued.
  void commit(const TimelinePoint& p) { last_ = p.count; }
  TimelinePoint next() {
    const TimelinePoint p = prepare();
    commit(p);
    return p;
  }
  TimelinePoint last() const { return point(last_); }
  bool reached(const TimelinePoint& p) const { return p.count <= done_ || poll(p); }
  uint64_t done() const { return done_; }
  /// After a queue reset: marks everything handed out so far as done, so that nobody waits for lost work.
  void force_done();

 private:
  TimelinePoint point(uint64_t count) const;
  bool poll(const TimelinePoint& p) const;
  std::array<Signal, kEpochs> signals_;
  uint64_t last_;
  mutable uint64_t done_;
};

}  // namespace baregpu::hcq
