#include "drivers/iova.hpp"

#include <algorithm>
#include <iterator>

#include "drivers/base/bits.hpp"

namespace baregpu {

IovaAllocator::IovaAllocator(std::span<const IovaRange> ranges, unsigned bits) {
  constexpr uint64_t kPage = 4096;
  const uint64_t limit = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (const IovaRange& r : ranges) {
    const uint64_t first = align_up(std::max(r.first, kPage), kPage), last = std::min(r.last, limit);
    if (first < r.first || last < first) continue;  // rounded past 2^64, or empty
    const uint64_t end = align_down(last + 1 == 0 ? last : last + 1, kPage);
    if (end > first) free_[first] = end;
  }
}

std::optional<uint64_t> IovaAllocator::allocate(uint64_t size, uint64_t align) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [start, end] = *it;
    const uint64_t at = align_up(start, align);
    if (at < start || at >= end || end - at < size) continue;
    free_.erase(it);
    if (at > start) free_[start] = at;
    if (at + size < end) free_[at + size] = end;
    in_use_ += size;
    return at;
  }
  return std::nullopt;
}

void IovaAllocator::free(uint64_t at, uint64_t size) {
  in_use_ -= size;
  auto it = free_.emplace(at, at + size).first;
  if (auto next = std::next(it); next != free_.end() && next->first == it->second) {
    it->second = next->second;
    free_.erase(next);
  }
  if (it != free_.begin())
    if (auto before = std::prev(it); before->second == it->first) {
      before->second = it->second;
      free_.erase(it);
    }
}

}  // namespace baregpu
