#include "am/soc.hpp"

#include <fmt/format.h>

namespace baregpu::am {
namespace {

// Where the HDP flush registers are re-mapped to: a hole at the end of the first 512 KiB of BAR5 (Linux nbio_v4_3.c,
// MMIO_REG_HOLE_OFFSET = 0x80000 - PAGE_SIZE); byte offsets.
constexpr uint32_t kHdpMemFlushRemap = 0x7f000, kHdpRegFlushRemap = 0x7f004;

// S2A_DOORBELL_ENTRY_n_CTRL (the public nbio_4_3_0 headers lack the field masks; layout from nbio_v4_3.c's uses).
struct S2aEntry {
  using Enable = Bits<0>;
  using Awid = Bits<5, 1>;
  using RangeOffset = Bits<16, 7>;
  using RangeSize = Bits<24, 17>;
  using Awaddr31_28 = Bits<31, 28>;
};

}  // namespace

void Soc::init_hw() {
  c_.nbio->update(RCC_DEV0_EPF2_STRAP2::STRAP_NO_SOFT_RESET_DEV0_F2{0});
  c_.nbio->write_raw<RCC_DEV0_EPF0_RCC_DOORBELL_APER_EN>(1);
  // A null remap would send the flush to register 0 (MM_INDEX) and flush nothing, so it is always programmed.
  c_.nbio->write_raw<BIF_BX0_REMAP_HDP_MEM_FLUSH_CNTL>(kHdpMemFlushRemap);
  c_.nbio->write_raw<BIF_BX0_REMAP_HDP_REG_FLUSH_CNTL>(kHdpRegFlushRemap);
  flush_dword_ = kHdpMemFlushRemap / 4;
}

void Soc::flush_hdp() const {
  full_barrier();
  c_.io.write(flush_dword_, 0, "HDP_MEM_FLUSH");
}

void Soc::route_doorbells(unsigned port, uint32_t awid, uint32_t awaddr_31_28, uint32_t offset, uint32_t size) const {
  c_.nbio->write_raw<S2A_DOORBELL_ENTRY_0_CTRL>(
      S2aEntry::Enable::set(1) | S2aEntry::Awid::set(awid) | S2aEntry::RangeOffset::set(offset) |
          S2aEntry::RangeSize::set(size) | S2aEntry::Awaddr31_28::set(awaddr_31_28),
      port);
}

void Soc::enable_clock_gating() const {
  if (c_.hdp->version() >= IpVersion{5, 2, 1})
    c_.hdp->update(HDP_MEM_POWER_CTRL::ATOMIC_MEM_POWER_CTRL_EN{1}, HDP_MEM_POWER_CTRL::ATOMIC_MEM_POWER_DS_EN{1});
}

}  // namespace baregpu::am
