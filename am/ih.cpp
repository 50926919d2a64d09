#include "am/ih.hpp"

// Sequence: Linux ih_v6_0.c.
namespace baregpu::am {
namespace {

constexpr uint32_t kMcSpaceVram = 4;      // MC_SPACE: address in MC space, local memory
constexpr uint32_t kRingSizeLog2Dw = 16;  // log2(256 KiB / 4)

}  // namespace

void Ih::init_sw() {
  ring_ = c_.boot.allocate(kRingSize);
  pointers_ = c_.boot.allocate(4096);
  ring1_ = c_.boot.allocate(kRingSize);
  pointers1_ = c_.boot.allocate(4096);
}

void Ih::init_hw() {
  const RegisterBlock& r = *c_.osssys;
  const uint64_t base = gmc_.mc(ring_).value, base1 = gmc_.mc(ring1_).value, wptr = gmc_.mc(pointers_).value;
  // Off while the ring moves: after a crash it may still be running.
  r.write_raw<IH_RB_CNTL>(0);
  r.write_raw<IH_RB_CNTL_RING1>(0);
  r.write_raw<IH_RB_BASE>(lo32(base >> 8));
  r.write_raw<IH_RB_BASE_HI>(hi32(base >> 8));
  const uint32_t cntl = r.value_of(IH_RB_CNTL::MC_SPACE{kMcSpaceVram}, IH_RB_CNTL::WPTR_OVERFLOW_CLEAR{1},
                                   IH_RB_CNTL::RB_SIZE{kRingSizeLog2Dw}, IH_RB_CNTL::MC_SNOOP{1},
                                   IH_RB_CNTL::WPTR_OVERFLOW_ENABLE{1}, IH_RB_CNTL::RPTR_REARM{1});
  r.write_raw<IH_RB_CNTL>(cntl);
  r.write_raw<IH_RB_WPTR_ADDR_LO>(lo32(wptr));
  r.write_raw<IH_RB_WPTR_ADDR_HI>(hi32(wptr) & 0xffff);
  r.write_raw<IH_RB_WPTR>(0);
  r.write_raw<IH_RB_RPTR>(0);
  r.write(IH_DOORBELL_RPTR::ENABLE{0});
  r.write_raw<IH_RB_BASE_RING1>(lo32(base1 >> 8));
  r.write_raw<IH_RB_BASE_HI_RING1>(hi32(base1 >> 8));
  const uint32_t cntl1 = r.value_of(IH_RB_CNTL_RING1::MC_SPACE{kMcSpaceVram}, IH_RB_CNTL_RING1::WPTR_OVERFLOW_CLEAR{1},
                                    IH_RB_CNTL_RING1::RB_SIZE{kRingSizeLog2Dw}, IH_RB_CNTL_RING1::MC_SNOOP{1},
                                    IH_RB_CNTL_RING1::RB_FULL_DRAIN_ENABLE{1});
  r.write_raw<IH_RB_CNTL_RING1>(cntl1);
  r.write_raw<IH_RB_WPTR_RING1>(0);
  r.write_raw<IH_RB_RPTR_RING1>(0);
  r.write(IH_DOORBELL_RPTR_RING1::ENABLE{0});
  r.update(IH_STORM_CLIENT_LIST_CNTL::CLIENT18_IS_STORM_CLIENT{1});
  r.update(IH_INT_FLOOD_CNTL::FLOOD_CNTL_ENABLE{1});
  r.update(IH_MSI_STORM_CTRL::DELAY{3});
  r.update(IH_RB_CNTL::RB_ENABLE{1}, IH_RB_CNTL::ENABLE_INTR{1});
  r.update(IH_RB_CNTL_RING1::RB_ENABLE{1});
  rptr_ = 0;
}

unsigned Ih::drain(const std::function<void(const IhEntry&)>& take, bool* lost) {
  const RegisterBlock& r = *c_.osssys;
  if (lost) *lost = false;
  unsigned count = 0;
  uint32_t wptr = r.read<IH_RB_WPTR>();
  if (r.get<IH_RB_WPTR::RB_OVERFLOW>(wptr)) {
    // The oldest entries are gone; what follows the write pointer is the oldest that is whole.
    if (lost) *lost = true;
    rptr_ = uint32_t((r.get<IH_RB_WPTR::OFFSET>(wptr) * 4 + kEntrySize) % kRingSize);
    r.update(IH_RB_WPTR::RB_OVERFLOW{0});
    r.update(IH_RB_CNTL::WPTR_OVERFLOW_CLEAR{1});
    r.update(IH_RB_CNTL::WPTR_OVERFLOW_CLEAR{0});  // a new overflow is only seen after it is back to 0
  }
  const uint32_t end = r.get<IH_RB_WPTR::OFFSET>(wptr) * 4;  // bits 17:2, so this is a byte offset
  while (rptr_ != end && count < kRingSize / kEntrySize) {
    std::array<uint32_t, 8> dw{};
    c_.vram->read(ring_ + rptr_, std::as_writable_bytes(std::span(dw)));
    IhEntry e;
    e.client = uint8_t(dw[0]);
    e.source = uint8_t(dw[0] >> 8);
    e.ring = uint8_t(dw[0] >> 16);
    e.vmid = Bits<27, 24>::get(dw[0]) & 0xf;
    e.timestamp = join32(dw[1], dw[2] & 0xffff);
    e.pasid = uint16_t(dw[3]);
    e.context = {dw[4], dw[5], dw[6], dw[7]};
    rptr_ = uint32_t((rptr_ + kEntrySize) % kRingSize);
    ++count;
    take(e);
  }
  if (count) r.write(IH_RB_RPTR::OFFSET{rptr_ / 4});
  return count;
}

}  // namespace baregpu::am
