#include "mock/amd/ih.hpp"

#include <fmt/format.h>

#include <string>

#include "drivers/base/bits.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

constexpr uint32_t kEntry = 32;  // bytes
// IH_RB_CNTL (osssys_6_0_0).
using RbEnable = Bits<0>;
using RbSize = Bits<5, 1>;
using WptrWriteback = Bits<8>;
using OverflowEnable = Bits<16>;
using EnableIntr = Bits<17>;
using RptrRearm = Bits<21>;
using OverflowClear = Bits<31>;

}  // namespace

Ih::Ih(Machine& machine) : m_(machine) {
  for (Ring& r : rings_) attach(r);
}

void Ih::attach(Ring& ring) {
  std::string s = ring.suffix;
  m_.regs.on_write("IH_RB_CNTL" + s, [this, &ring](uint32_t v) { write_control(ring, v); });
  m_.regs.on_read("IH_RB_WPTR" + s, [&ring] { return ring.wptr | (ring.overflow ? 1u : 0u); });
  m_.regs.on_write("IH_RB_WPTR" + s, [&ring](uint32_t v) { ring.wptr = v & 0x3fffc, ring.overflow = v & 1; });
  m_.regs.on_read("IH_RB_RPTR" + s, [&ring] { return ring.rptr; });
  m_.regs.on_write("IH_RB_RPTR" + s, [this, &ring](uint32_t v) { write_rptr(ring, v); });
}

void Ih::reset() {
  for (Ring& r : rings_) r.wptr = r.rptr = 0, r.overflow = r.clear_pulse = false;
}

uint32_t Ih::size(const Ring& ring) const {
  return 4u << RbSize::get(m_.regs.get(std::string("IH_RB_CNTL") + ring.suffix));  // RB_SIZE = log2(dwords)
}

void Ih::write_control(Ring& ring, uint32_t v) {
  m_.regs.set(std::string("IH_RB_CNTL") + ring.suffix, v);
  // The overflow note goes with the pulse 1 -> 0; until then no new overflow is seen.
  if (OverflowClear::get(v)) ring.overflow = false;
  ring.clear_pulse = OverflowClear::get(v);
}

void Ih::write_rptr(Ring& ring, uint32_t v) {
  if (v % kEntry != 0 || v >= size(ring))
    m_.rules.broken("ih-rptr-unit",
                    fmt::format("IH_RB_RPTR{} = {:#x}, ring of {:#x} bytes", ring.suffix, v, size(ring)));
  ring.rptr = v & 0x3fffc;
  uint32_t cntl = m_.regs.get("IH_RB_CNTL");
  if (*ring.suffix == 0 && RptrRearm::get(cntl) && EnableIntr::get(cntl) && ring.rptr != ring.wptr) m_.raise_msi();
}

void Ih::push(IhClient client, uint8_t source, uint8_t ring_id, std::array<uint32_t, 4> context) {
  Ring& ring = rings_[0];
  uint32_t cntl = m_.regs.get("IH_RB_CNTL");
  if (!RbEnable::get(cntl)) return;
  uint64_t base = join32(m_.regs.get("IH_RB_BASE"), m_.regs.get("IH_RB_BASE_HI")) << 8;
  if (!m_.in_fb(base, size(ring))) return;  // the ring of a driver that is gone
  uint64_t now = m_.clock();
  const uint32_t entry[8] = {uint32_t(client) | uint32_t(source) << 8 | uint32_t(ring_id) << 16,
                             lo32(now),
                             hi32(now) & 0xffff,
                             0,
                             context[0],
                             context[1],
                             context[2],
                             context[3]};
  m_.memory.vram_write(base - kFbBase + ring.wptr, std::as_bytes(std::span(entry)), "IH");
  ring.wptr = (ring.wptr + kEntry) % size(ring);
  if (ring.wptr == ring.rptr) {  // full: the oldest entry is the next to be overwritten
    if (OverflowEnable::get(cntl) && !ring.clear_pulse) ring.overflow = true;
    m_.rules.broken("ih-overflow", fmt::format("ring of {} entries", size(ring) / kEntry));
  }
  if (WptrWriteback::get(cntl)) {
    uint64_t to = join32(m_.regs.get("IH_RB_WPTR_ADDR_LO"), m_.regs.get("IH_RB_WPTR_ADDR_HI"));
    uint32_t v = ring.wptr | (ring.overflow ? 1u : 0u);
    if (m_.in_fb(to, 4)) m_.memory.vram_write(to - kFbBase, std::as_bytes(std::span(&v, 1)), "IH");
  }
  if (EnableIntr::get(cntl)) m_.raise_msi();
}

}  // namespace baregpu::mock
