#include "mock/amd/config_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "drivers/base/bits.hpp"
#include "mock/amd/nbio.hpp"

namespace baregpu::mock {
namespace {

constexpr uint64_t kMmioSize = 0x80000;
constexpr unsigned kBarAt[6] = {0x10, 0x14, 0x18, 0x1c, 0x20, 0x24};
constexpr uint32_t kBarFlags64Pref = 0xc;
// Where the mock host puts the BARs; BAR0 has room for its largest size.
constexpr uint64_t kBar0Address = 0x180'0000'0000, kBar2Address = 0x190'0000'0000, kBar5Address = 0xf000'0000;

}  // namespace

ConfigSpace::ConfigSpace(const Chip& chip, Rules& rules, uint64_t vram_size, uint64_t bar0_size, bool resizable,
                         bool vf)
    : rules_(rules), vram_size_(vram_size), resizable_(resizable) {
  put(0x00, 2, 0x1002);
  put(0x02, 2, vf ? 0x73ae : chip.device_id);  // virtual functions have an id of their own
  put(0x06, 2, 0x0010);                        // status: capability list
  put(0x08, 4, 0x03000000u | chip.pci_revision);
  put(0x2c, 2, 0x1002);
  put(0x2e, 2, chip.subsystem_id);
  put(0x34, 1, kPm);
  put(0x3d, 1, 1);
  put(kPm, 4, 0x0003'0001u | kPcie << 8);   // power management 1.2
  put(kPcie, 4, 0x0012'0010u | kMsi << 8);  // PCIe endpoint, version 2
  put(kPcie + 4, 4, 0x0000'8fa1);           // no FLR (bit 28 clear)
  put(kMsi, 4, 0x0080'0005u);               // MSI, 64-bit address, one vector; end of list
  put(0x100, 4, resizable ? 0x0001'000bu | kRebar << 20 : 0x0001'000bu);  // vendor-specific
  sizes_ = {bar0_size, 0, kDoorbellBarSize, 0, 0, kMmioSize};
  if (!resizable) return;
  // Resizable BAR: sizes 2^k MiB in bits 4+k of the capability; control: BAR index 2:0, count 7:5, size 13:8.
  uint32_t mask = 0;
  for (uint64_t s = 256 * MiB; s <= largest_bar0(); s *= 2) mask |= 1u << (4 + log2_floor(s / MiB));
  put(kRebar, 4, 0x0001'0015);
  put(kRebar + 4, 4, mask);
  put(kRebar + 8, 4, 0x20u | log2_floor(bar0_size / MiB) << 8);
}

uint64_t ConfigSpace::largest_bar0() const {
  return resizable_ ? std::max<uint64_t>(std::bit_ceil(vram_size_), 256 * MiB) : sizes_[0];
}

void ConfigSpace::put(unsigned at, unsigned width, uint32_t v) {
  for (unsigned i = 0; i < width; ++i) bytes_[at + i] = uint8_t(v >> (8 * i));
}

uint32_t ConfigSpace::read(unsigned offset, unsigned width) const {
  uint32_t v = 0;
  for (unsigned i = 0; i < width; ++i) v |= uint32_t{bytes_.at(offset + i)} << (8 * i);
  return v;
}

void ConfigSpace::write_bar(unsigned at, uint32_t value) {
  for (unsigned b = 0; b < 6; ++b) {
    if (kBarAt[b] != at) continue;
    const bool upper = b == 1 || b == 3;
    uint64_t size = sizes_[upper ? b - 1 : b];
    if (size == 0) return;  // absent: hard-wired to 0
    uint64_t mask = ~(size - 1);
    put(at, 4, upper ? value & hi32(mask) : (value & lo32(mask)) | (b == 5 ? 0 : kBarFlags64Pref));
  }
}

void ConfigSpace::write(unsigned offset, unsigned width, uint32_t value) {
  if (offset + width > bytes_.size()) return;
  if (offset >= 0x10 && offset < 0x28 && width == 4) return write_bar(offset, value);
  auto masked = [&](unsigned at, unsigned size, uint32_t mask) {
    // Only the bits that are implemented as writable change, whatever the width of the access.
    uint32_t old = read(at, size), next = old;
    for (unsigned i = 0; i < width; ++i) {
      if (offset + i < at || offset + i >= at + size) continue;
      unsigned shift = 8 * (offset + i - at);
      next = (next & ~(0xffu << shift)) | (value >> (8 * i) & 0xff) << shift;
    }
    put(at, size, (old & ~mask) | (next & mask));
  };
  if (offset < 0x06 && offset + width > 0x04) masked(0x04, 2, 0x0547);
  if (offset == 0x3c) put(0x3c, 1, value);
  if (offset < kPm + 6 && offset + width > kPm + 4) masked(kPm + 4, 2, 0x0103);
  if (offset < kPcie + 10 && offset + width > kPcie + 8) masked(kPcie + 8, 2, 0x78ff);
  if (offset < kMsi + 16 && offset + width > kMsi + 2) {
    masked(kMsi + 2, 2, 0x0001);
    masked(kMsi + 4, 4, ~3u);
    masked(kMsi + 8, 4, ~0u);
    masked(kMsi + 12, 2, 0xffff);
  }
  if (resizable_ && offset == kRebar + 8 && width == 4) {
    uint64_t size = MiB << (value >> 8 & 0x3f);
    bool offered = size <= largest_bar0() && size >= 256 * MiB;
    if (!offered) return;
    if ((word(0x04) & 2 || mapped) && rules_.broken("rebar-mapped", "size written while the BAR is decoded or mapped"))
      return;
    sizes_[0] = size;
    put(kRebar + 8, 4, 0x20u | log2_floor(size / MiB) << 8);
    write_bar(0x10, dword(0x10));
    write_bar(0x14, dword(0x14));
  }
}

bool ConfigSpace::decode() const {
  if (!(word(0x04) & 2) || (bytes_[kPm + 4] & 3)) return false;
  for (unsigned b : {0u, 2u, 5u})
    if (assigned_[b] != bar_address(b)) return false;
  return true;
}

uint64_t ConfigSpace::bar_size(unsigned bar) const { return bar < 6 ? sizes_[bar] : 0; }

uint64_t ConfigSpace::bar_address(unsigned bar) const {
  if (bar_size(bar) == 0) return 0;
  uint64_t low = dword(kBarAt[bar]) & ~0xfu;
  return bar == 5 ? low : low | uint64_t{dword(kBarAt[bar] + 4)} << 32;
}

void ConfigSpace::assign_bars() {
  assigned_ = {kBar0Address, 0, kBar2Address, 0, 0, kBar5Address};
  put(0x10, 4, lo32(kBar0Address) | kBarFlags64Pref);
  put(0x14, 4, hi32(kBar0Address));
  put(0x18, 4, lo32(kBar2Address) | kBarFlags64Pref);
  put(0x1c, 4, hi32(kBar2Address));
  put(0x24, 4, lo32(kBar5Address));
}

void ConfigSpace::host_enable(bool msi) {
  if (assigned_[0] == 0) assign_bars();
  put(0x04, 2, word(0x04) | 2u);
  put(kMsi + 2, 2, (word(kMsi + 2) & ~1u) | (msi ? 1u : 0u));
}

void ConfigSpace::host_resize_bar0(uint64_t size) {
  sizes_[0] = size;
  put(kRebar + 8, 4, 0x20u | log2_floor(size / MiB) << 8);
}

void ConfigSpace::reset() {
  put(0x04, 2, 0);
  for (unsigned at : kBarAt) put(at, 4, at == 0x10 || at == 0x18 ? kBarFlags64Pref : 0);
  put(0x3c, 1, 0);
  put(kPm + 4, 2, 0);
  put(kMsi + 2, 2, 0x0080);
}

}  // namespace baregpu::mock
