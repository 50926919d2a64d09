#include "hcq/signal.hpp"

namespace baregpu::hcq {

Timeline::Timeline(std::array<Signal, kEpochs> signals, uint64_t start) : signals_(signals), last_(start), done_(start) {
  for (const Signal& s : signals_) s.set(0);
  signals_[(start >> 32) % kEpochs].set(lo32(start));
}

TimelinePoint Timeline::point(uint64_t count) const {
  return {count, signals_[(count >> 32) % kEpochs].va, lo32(count)};
}

TimelinePoint Timeline::next() {
  ++last_;
  if (lo32(last_) == 0) {
    // A wait for 0 would be satisfied before anything ran, so the first position of an epoch is 1.
    ++last_;
    signals_[(last_ >> 32) % kEpochs].set(0);
  }
  return point(last_);
}

bool Timeline::poll(const TimelinePoint& p) const {
  const uint32_t seen = lo32(signals_[(p.count >> 32) % kEpochs].value());
  const uint64_t at = (p.count & ~uint64_t{0xffffffff}) | seen;
  if (at > done_ && at <= last_) done_ = at;
  return seen >= p.value;
}

void Timeline::force_done() {
  signals_[(last_ >> 32) % kEpochs].set(lo32(last_));
  done_ = last_;
}

}  // namespace baregpu::hcq
