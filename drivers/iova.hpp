// Addresses for DMA mappings: what an IOMMU can translate and the device can send.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace baregpu {

struct IovaRange {
  uint64_t first, last;
};  ///< inclusive

/// First-fit allocator over the IOMMU's ranges. Thread: one at a time.
class IovaAllocator {
 public:
  /// Ranges are cut to [4 KiB, 2^bits): address 0 stays unused, so that a zero pointer faults.
  IovaAllocator(std::span<const IovaRange> ranges, unsigned bits);
  /// `size` and `align` are multiples of 4 KiB (align a power of two). nullopt: no room.
  std::optional<uint64_t> allocate(uint64_t size, uint64_t align);
  void free(uint64_t at, uint64_t size);
  /// Bytes that are handed out.
  uint64_t in_use() const { return in_use_; }

 private:
  std::map<uint64_t, uint64_t> free_;  // start -> end, exclusive
  uint64_t in_use_ = 0;
};

}  // namespace baregpu
