// The queues of an AM device: rings that PM4 and SDMA lists go to.
#pragma once
#include <functional>
#include <memory>

#include "hcq/amd/pm4.hpp"
#include "hcq/amd/ring.hpp"
#include "hcq/amd/sdma.hpp"
#include "hcq/buffer.hpp"

namespace baregpu::hcq::amd {

/// Memory of one queue. The pointers are 8 bytes each; the CPU never reads rptr for PM4.
struct QueueMemory {
  Buffer ring, pointers;
  static constexpr uint64_t kRptr = 0x80,
                            kWptr = 0x38;  // where an amd_queue_t has them: the CP of some firmware looks there
  GpuVa rptr() const { return pointers.va() + kRptr; }
  GpuVa wptr() const { return pointers.va() + kWptr; }
};

/// What a queue needs from its device.
struct QueueHooks {
  std::function<void(const TimelinePoint&)> wait;
  std::function<void()> flush_hdp;
};

/// The part that the two kinds share. Thread: the device's.
class AmdQueue : public Queue {
 public:
  AmdQueue(QueueMemory memory, Mmio bell, QueueHooks hooks);
  const QueueMemory& memory() const { return memory_; }
  uint64_t ring_words() const { return words_; }
  /// After a queue reset: pointers zero, everything queued is forgotten.
  void reset();

 protected:
  void check(const CommandList& list, uint64_t words, QueueKind kind) const;
  /// Appends words at put_, around the ring's end.
  template <class Store>
  void put(const Store& store, std::span<const uint32_t> values) {
    const uint64_t at = put_ & (words_ - 1), first = std::min<uint64_t>(values.size(), words_ - at);
    store.words(at * 4, values.first(first));
    if (first < values.size()) store.words(0, values.subspan(first));
    put_ += values.size();
  }
  QueueMemory memory_;
  Mmio bell_;
  QueueHooks hooks_;
  uint64_t words_;    ///< ring size in dwords
  uint64_t put_ = 0;  ///< dwords, monotonic
  RingSpace space_;
};

/// @returns a PM4 queue. Pointers and doorbell count dwords, monotonically.
std::unique_ptr<AmdQueue> make_pm4_queue(QueueMemory memory, Mmio bell, QueueHooks hooks, const Pm4Target& target);
/// @returns an SDMA queue. Pointers and doorbell count bytes; no packet crosses the ring's end.
std::unique_ptr<AmdQueue> make_sdma_queue(QueueMemory memory, Mmio bell, QueueHooks hooks, const SdmaTarget& target);

}  // namespace baregpu::hcq::amd
