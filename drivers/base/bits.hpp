// Bit fields, alignment and address types (public).
#pragma once
#include <bit>
#include <compare>
#include <cstdint>

namespace baregpu {

/// Bits Hi..Lo of a 32-bit word, inclusive, high bit first as the manuals write it: 29:24 is Bits<29, 24>.
template <unsigned Hi, unsigned Lo = Hi>
struct Bits {
  static_assert(Hi >= Lo && Hi < 32);
  static constexpr uint32_t mask = uint32_t((uint64_t{1} << (Hi - Lo + 1)) - 1) << Lo;
  static constexpr uint32_t max = mask >> Lo;
  static constexpr uint32_t get(uint32_t word) { return (word & mask) >> Lo; }
  /// `value` placed in the field; bits that do not fit are a bug of the caller and are cut off.
  static constexpr uint32_t set(uint32_t value) { return (value << Lo) & mask; }
};

/// The same for a 64-bit word.
template <unsigned Hi, unsigned Lo = Hi>
struct Bits64 {
  static_assert(Hi >= Lo && Hi < 64);
  static constexpr uint64_t mask = (Hi - Lo == 63 ? ~uint64_t{0} : ((uint64_t{1} << (Hi - Lo + 1)) - 1)) << Lo;
  static constexpr uint64_t get(uint64_t word) { return (word & mask) >> Lo; }
  static constexpr uint64_t set(uint64_t value) { return (value << Lo) & mask; }
};

constexpr uint32_t lo32(uint64_t v) { return uint32_t(v); }
constexpr uint32_t hi32(uint64_t v) { return uint32_t(v >> 32); }
constexpr uint64_t join32(uint32_t lo, uint32_t hi) { return uint64_t{hi} << 32 | lo; }

/// `align` must be a power of two.
constexpr uint64_t align_up(uint64_t v, uint64_t align) { return (v + align - 1) & ~(align - 1); }
constexpr uint64_t align_down(uint64_t v, uint64_t align) { return v & ~(align - 1); }
constexpr bool is_aligned(uint64_t v, uint64_t align) { return (v & (align - 1)) == 0; }
constexpr bool is_pow2(uint64_t v) { return std::has_single_bit(v); }
constexpr unsigned log2_floor(uint64_t v) { return unsigned(std::bit_width(v) - 1); }
constexpr uint64_t div_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

/// An address that cannot be mixed up with one of another address space.
template <class Tag>
struct Address {
  uint64_t value = 0;
  constexpr Address() = default;
  constexpr explicit Address(uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Address&) const = default;
  constexpr Address operator+(uint64_t n) const { return Address(value + n); }
  constexpr Address operator-(uint64_t n) const { return Address(value - n); }
  constexpr uint64_t operator-(Address o) const { return value - o.value; }
};
using GpuVa = Address<struct GpuVaTag>;            ///< virtual address of the GPU (VMID 0)
using BusAddress = Address<struct BusAddressTag>;  ///< what a device puts on the bus to reach host memory or a peer
using VramOffset = Address<struct VramOffsetTag>;  ///< byte offset into a GPU's local memory ("paddr")
using McAddress = Address<struct McAddressTag>;    ///< address in the GPU's memory-controller space (system aperture)

}  // namespace baregpu
