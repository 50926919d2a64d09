// Two-level segregated-fit allocator over an address range (metadata lives in host memory).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace baregpu::am {

/// Allocates ranges of [base, base+size). O(1) allocate and free. Source of the algorithm: Masmano et al., "TLSF: a new
/// dynamic memory allocator for real-time systems", ECRTS 2004. Thread: one at a time.
class Tlsf {
 public:
  /// Sizes are rounded up to `granularity` (a power of two).
  Tlsf(std::string name, uint64_t base, uint64_t size, uint64_t granularity);

  /// Start of a free range of `size` bytes, aligned to `align` (power of two, >= granularity is useful).
  /// @throws OutOfMemoryError that says asked, used, free and the largest free block.
  uint64_t allocate(uint64_t size, uint64_t align);
  /// As allocate(), but nullopt when there is no room.
  std::optional<uint64_t> try_allocate(uint64_t size, uint64_t align);
  /// @throws Error if `address` is not the start of a live allocation (double free, unknown free).
  void free(uint64_t address);
  /// Size of the live allocation at `address`, rounded as allocated. @throws Error if unknown.
  uint64_t size_of(uint64_t address) const;

  uint64_t used() const { return used_; }
  uint64_t capacity() const { return size_; }
  uint64_t largest_free() const;

 private:
  static constexpr unsigned kSlBits = 4, kSl = 1u << kSlBits, kFl = 64;
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Block {
    uint64_t start = 0, size = 0;
    uint32_t prev = kNone, next = kNone;  // neighbours in address order
    uint32_t free_prev = kNone, free_next = kNone;
    bool free = false;
  };
  struct Bin {
    unsigned fl, sl;
  };
  Bin bin_of(uint64_t size) const;
  uint32_t find(uint64_t size) const;
  uint32_t scan(uint64_t size, uint64_t align) const;
  void insert_free(uint32_t b);
  void remove_free(uint32_t b);
  uint32_t new_block();
  uint32_t split(uint32_t b, uint64_t size);  // b keeps `size` bytes; returns the rest
  void merge_with_next(uint32_t b);

  std::string name_;
  uint64_t base_, size_, granularity_, used_ = 0;
  std::vector<Block> blocks_;
  std::vector<uint32_t> spare_;
  std::unordered_map<uint64_t, uint32_t> live_;
  uint64_t fl_map_ = 0;
  std::array<uint32_t, kFl> sl_map_{};
  std::array<std::array<uint32_t, kSl>, kFl> heads_;
};

}  // namespace baregpu::am
