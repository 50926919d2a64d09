#include "hcq/signal.hpp"

namespace baregpu::hcq {

Timeline::Timeline(std::array<Signal, kEpochs> signals, uint64_t start)
    : signals_(signals), last_(start), done_(start) {
  for (const Signal& s : signals_) s.set(0);
  signals_[(start >> 32) % kEpochs].set(lo32(start));
}

TimelinePoint Timeline::point(uint64_t count) const {
  return {count, signals_[(count >> 32) % kEpochs].va, lo32(count)};
}

TimelinePoint Timeline::prepare() {
  // A wait for 0 would be satisfied before anything ran, so the first position of an epoch is 1.
  const uint64_t count = lo32(last_ + 1) == 0 ? last_ + 2 : last_ + 1;
  // The epoch's signal was last used kEpochs epochs ago; that value must not satisfy waits of the new one.
  if (lo32(count) == 1 && count != 1) signals_[(count >> 32) % kEpochs].set(0);
  return point(count);
}

bool Timeline::poll(const TimelinePoint& p) const {
  const uint32_t seen = lo32(signals_[(p.count >> 32) % kEpochs].value());
  const uint64_t at = (p.count & ~uint64_t{0xffffffff}) | seen;
  // 0 says only that the epoch has not begun, not that the one before it has ended.
  if (seen != 0 && at > done_ && at <= last_) done_ = at;
  return seen >= p.value;
}

void Timeline::force_done() {
  signals_[(last_ >> 32) % kEpochs].set(lo32(last_));
  done_ = last_;
}

}  // namespace baregpu::hcq
