#include "hcq/amd/queues.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

namespace baregpu::hcq::amd {
namespace {

/// Stores the write pointer, then makes all earlier CPU writes visible, then rings. Order: Linux and hardware
/// facts, 5.4: write pointer, CPU barrier, HDP flush, doorbell.
template <class Store>
void publish(const Store& store, const QueueHooks& hooks, uint64_t pointer) {
  store.wptr(pointer);
  full_barrier();
  hooks.flush_hdp();
  store.bell(pointer);
}

template <class Store>
class Pm4Queue final : public AmdQueue {
 public:
  Pm4Queue(QueueMemory memory, Mmio bell, QueueHooks hooks, const Pm4Target& target)
      : AmdQueue(std::move(memory), bell, std::move(hooks)),
        target_(target),
        store_(memory_.ring.cpu(), memory_.pointers.cpu().sub(QueueMemory::kWptr, 8), bell) {}

  std::unique_ptr<CommandList> make_list() const override { return std::make_unique<Pm4List>(target_); }

  void submit(const CommandList& list, const TimelinePoint& done) override {
    std::span<const uint32_t> words = list.words();
    std::array<uint32_t, 4> ib;
    if (list.bound()) {
      ib = indirect_buffer(list.bound_va(), uint32_t(words.size()));
      words = ib;
    }
    check(list, words.size(), QueueKind::kCompute);
    const uint64_t first = put_;
    space_.reserve(put_, words.size(), hooks_.wait);
    put(store_, words);
    space_.written(first, put_, done);
    publish(store_, hooks_, put_);
  }

 private:
  const Pm4Target& target_;
  Store store_;
};

template <class Store>
class SdmaQueue final : public AmdQueue {
 public:
  SdmaQueue(QueueMemory memory, Mmio bell, QueueHooks hooks, const SdmaTarget& target)
      : AmdQueue(std::move(memory), bell, std::move(hooks)),
        target_(target),
        store_(memory_.ring.cpu(), memory_.pointers.cpu().sub(QueueMemory::kWptr, 8), bell) {}

  std::unique_ptr<CommandList> make_list() const override { return std::make_unique<SdmaList>(target_); }

  void submit(const CommandList& list, const TimelinePoint& done) override {
    // An INDIRECT packet ends on a multiple of 8 dwords (Linux sdma_v6_0_ring_emit_ib); a batch is kept in one piece.
    constexpr uint64_t kIndirect = 6;
    const bool bound = list.bound();
    const uint64_t count = bound ? kIndirect : list.words().size();
    check(list, count, QueueKind::kCopy);
    uint64_t pad = bound ? (8 - (put_ + kIndirect) % 8) % 8 : 0;
    const uint64_t left = words_ - (put_ & (words_ - 1));
    if (pad + count > left) pad = left + (bound ? 8 - kIndirect : 0);
    const uint64_t first = put_;
    space_.reserve(put_, pad + count, hooks_.wait);
    static constexpr std::array<uint32_t, 16> kNops{};  // NOPs of one dword each
    for (uint64_t left_pad = pad; left_pad;) {
      const uint64_t n = std::min<uint64_t>(left_pad, kNops.size());
      put(store_, std::span(kNops).first(n));
      left_pad -= n;
    }
    if (bound) {
      const uint64_t va = list.bound_va().value;
      put(store_, std::array<uint32_t, kIndirect>{4, lo32(va), hi32(va), uint32_t(list.words().size()), 0, 0});
    } else {
      put(store_, list.words());
    }
    space_.written(first, put_, done);
    publish(store_, hooks_, put_ * 4);
  }

 private:
  const SdmaTarget& target_;
  Store store_;
};

template <template <class> class Q, class... Args>
std::unique_ptr<AmdQueue> make(QueueMemory memory, Mmio bell, Args&&... args) {
  if (memory.ring.cpu().mapped() && memory.pointers.cpu().mapped() && bell.mapped())
    return std::make_unique<Q<MappedStore>>(std::move(memory), bell, std::forward<Args>(args)...);
  return std::make_unique<Q<CallStore>>(std::move(memory), bell, std::forward<Args>(args)...);
}

}  // namespace

AmdQueue::AmdQueue(QueueMemory memory, Mmio bell, QueueHooks hooks)
    : memory_(std::move(memory)),
      bell_(bell),
      hooks_(std::move(hooks)),
      words_(memory_.ring.capacity() / 4),
      space_(words_) {
  if (!is_pow2(words_) || words_ < 1024)
    throw Error(fmt::format("a ring of {} dwords is not a power of two of at least 1024", words_));
  reset();
}

void AmdQueue::reset() {
  put_ = 0;
  space_.reset();
  memory_.pointers.cpu().fill_zero(0, 4096);
}

void AmdQueue::check(const CommandList& list, uint64_t words, QueueKind kind) const {
  if (list.kind() != kind) throw Error("a command list was submitted to a queue of the other kind");
  if (words == 0) throw Error("an empty command list was submitted");
  if (words > words_ / 4)
    throw Error({.device = {},
                 .what = fmt::format("a command list of {} dwords is too large for a ring of {}", words, words_),
                 .source = {},
                 .hint = "bind() it: the ring then holds only a reference"});
}

std::unique_ptr<AmdQueue> make_pm4_queue(QueueMemory memory, Mmio bell, QueueHooks hooks, const Pm4Target& target) {
  return make<Pm4Queue>(std::move(memory), bell, std::move(hooks), target);
}

std::unique_ptr<AmdQueue> make_sdma_queue(QueueMemory memory, Mmio bell, QueueHooks hooks, const SdmaTarget& target) {
  return make<SdmaQueue>(std::move(memory), bell, std::move(hooks), target);
}

}  // namespace baregpu::hcq::amd
