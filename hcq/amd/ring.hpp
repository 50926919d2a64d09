// The memory and the doorbell of a hardware queue, and its space accounting.
#pragma once
#include <array>
#include <cstring>
#include <functional>
#include <span>

#include "hcq/signal.hpp"

namespace baregpu::hcq::amd {

/// Where a queue's stores go when ring, pointers and doorbell are mapped: plain stores.
class MappedStore {
 public:
  MappedStore(const Mmio& ring, const Mmio& wptr, const Mmio& bell)
      : ring_(ring.mapped()),
        wptr_(reinterpret_cast<volatile uint64_t*>(wptr.mapped())),
        bell_(reinterpret_cast<volatile uint64_t*>(bell.mapped())) {}
  /// The consumer reads nothing of it before the doorbell, so the stores may be of any width; publish() has the fence.
  void words(uint64_t byte, std::span<const uint32_t> values) const {
    std::memcpy(const_cast<std::byte*>(ring_ + byte), values.data(), values.size_bytes());
  }
  void wptr(uint64_t value) const { __atomic_store_n(wptr_, value, __ATOMIC_RELEASE); }
  void bell(uint64_t value) const { __atomic_store_n(bell_, value, __ATOMIC_RELEASE); }

 private:
  volatile std::byte* ring_;
  volatile uint64_t *wptr_, *bell_;
};

/// The same over calls (USB, remote, traced BARs).
class CallStore {
 public:
  CallStore(Mmio ring, Mmio wptr, Mmio bell) : ring_(ring), wptr_(wptr), bell_(bell) {}
  void words(uint64_t byte, std::span<const uint32_t> values) const { ring_.write_block(byte, std::as_bytes(values)); }
  void wptr(uint64_t value) const { wptr_.write64(0, value); }
  void bell(uint64_t value) const { bell_.write64(0, value); }

 private:
  Mmio ring_, wptr_, bell_;
};

/// Space accounting in eighths: entering an eighth waits for the last submission that wrote into it a lap ago. So the
/// consumer's read pointer, which not every firmware writes back in the same unit, is never needed.
class RingSpace {
 public:
  static constexpr unsigned kSegments = 8;
  explicit RingSpace(uint64_t ring_words) : segment_(ring_words / kSegments) {}
  /// Makes [put, put + count) writable. The segment that holds the new put is included, so a ring is never full.
  template <class Wait>
  void reserve(uint64_t put, uint64_t count, Wait&& wait) {
    for (const uint64_t last = (put + count) / segment_; entered_ < last;) {
      const TimelinePoint& old = points_[(entered_ + 1) % kSegments];
      if (old.count) wait(old);
      ++entered_;
    }
  }
  /// The words up to `put` are consumed when `done` is reached.
  void written(uint64_t first, uint64_t end, const TimelinePoint& done) {
    for (uint64_t s = first / segment_; s <= end / segment_; ++s) points_[s % kSegments] = done;
  }
  void reset() {
    entered_ = 0;
    points_ = {};
  }

 private:
  uint64_t segment_;
  uint64_t entered_ = 0;
  std::array<TimelinePoint, kSegments> points_{};
};

}  // namespace baregpu::hcq::amd
