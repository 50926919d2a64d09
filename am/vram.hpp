// CPU access to a GPU's local memory: through BAR0 where it reaches, through MM_INDEX/MM_DATA elsewhere.
#pragma once
#include <cstdint>
#include <span>

#include "am/register_block.hpp"
#include "drivers/base/bits.hpp"

namespace baregpu::am {

/// Thread: one at a time.
class Vram {
 public:
  Vram(RegisterIo& io, Mmio bar0, uint64_t size) : io_(io), bar0_(bar0), size_(size) {}
  uint64_t size() const { return size_; }
  /// Whether the CPU reaches all of VRAM through BAR0.
  bool large_bar() const { return bar0_.size() >= size_; }
  /// Bytes at the bottom of VRAM that BAR0 reaches.
  uint64_t window() const { return bar0_.size() < size_ ? bar0_.size() : size_; }
  void read(VramOffset at, std::span<std::byte> out) const;
  void write(VramOffset at, std::span<const std::byte> in) const;
  void zero(VramOffset at, uint64_t size) const;
  uint32_t read32(VramOffset at) const;
  /// A view of BAR0. @throws Error if the range is beyond the window.
  Mmio view(VramOffset at, uint64_t size) const { return bar0_.sub(at.value, size); }

 private:
  void check(VramOffset at, uint64_t size) const;
  RegisterIo& io_;
  Mmio bar0_;
  uint64_t size_;
};

}  // namespace baregpu::am
