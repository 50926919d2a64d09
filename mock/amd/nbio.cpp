#include "mock/amd/nbio.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"
#include "mock/amd/host_access.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

// Fixed dwords of the MM_INDEX window and the HDP flush hole (nbio_v4_3.c: MMIO_REG_HOLE_OFFSET).
constexpr uint32_t kMmIndex = 0x0, kMmData = 0x1, kMmIndexHi = 0x6, kFlushHole = 0x7f000;
// S2A routes: ENABLE 0, AWID 5:1, RANGE_OFFSET 16:7, RANGE_SIZE 24:17 (nbio_4_3_0).
using S2aEnable = Bits<0>;
using S2aAwid = Bits<5, 1>;
using S2aOffset = Bits<16, 7>;
using S2aSize = Bits<24, 17>;
constexpr uint32_t kAwidGfx = 0x3, kAwidSdma = 0xe;

}  // namespace

Nbio::Nbio(Machine& machine) : m_(machine) {
  void* p = mmap(nullptr, kDoorbellBarSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error("mock: no memory for the doorbell BAR");
  doorbells_ = static_cast<std::byte*>(p);
  fill_bytes(doorbells_, 0xff, kWatchedDoorbells * 8);

  RegisterFile& r = m_.regs;
  r.add(kMmIndex, "MM_INDEX", am::HwIp::Nbio);
  r.add(kMmData, "MM_DATA", am::HwIp::Nbio);
  r.add(kMmIndexHi, "MM_INDEX_HI", am::HwIp::Nbio);
  r.add(kFlushHole / 4, "HDP_MEM_FLUSH", am::HwIp::Nbio);
  r.add(kFlushHole / 4 + 1, "HDP_REG_FLUSH", am::HwIp::Nbio);
  r.set_reset_value("BIF_BX0_REMAP_HDP_MEM_FLUSH_CNTL", kFlushHole);  // what the VBIOS leaves
  r.set_reset_value("BIF_BX0_REMAP_HDP_REG_FLUSH_CNTL", kFlushHole + 4);
  r.on_write(kMmIndex, [this](uint32_t v) {
    if (v == 0) m_.rules.broken("hdp-null-remap", "write of 0 to MM_INDEX: no index, and no flush either");
    m_.regs.set(kMmIndex, v);
  });
  // Bit 31 of the index means VRAM; without it MM_DATA is a window to registers.
  r.on_read(kMmData, [this] {
    uint64_t at = (uint64_t{m_.regs.get(kMmIndexHi)} << 31) | (m_.regs.get(kMmIndex) & 0x7fffffff);
    if (!(m_.regs.get(kMmIndex) >> 31)) return window_read(uint32_t(at / 4));
    return m_.memory.indirect_read(at);
  });
  r.on_write(kMmData, [this](uint32_t v) {
    uint64_t at = (uint64_t{m_.regs.get(kMmIndexHi)} << 31) | (m_.regs.get(kMmIndex) & 0x7fffffff);
    if (!(m_.regs.get(kMmIndex) >> 31)) return window_write(uint32_t(at / 4), v);
    m_.memory.indirect_write(at, v);
  });
  // The windows decode byte addresses (nbio_v4_3.c).
  r.on_read("BIF_BX_PF0_RSMU_DATA", [this] { return window_read(m_.regs.get("BIF_BX_PF0_RSMU_INDEX") / 4); });
  r.on_write("BIF_BX_PF0_RSMU_DATA", [this](uint32_t v) { window_write(m_.regs.get("BIF_BX_PF0_RSMU_INDEX") / 4, v); });
  r.on_read("BIF_BX0_PCIE_DATA2",
            [this] { return die_selected() ? window_read(m_.regs.get("BIF_BX0_PCIE_INDEX2") / 4) : ~0u; });
  r.on_write("BIF_BX0_PCIE_DATA2", [this](uint32_t v) {
    if (die_selected()) window_write(m_.regs.get("BIF_BX0_PCIE_INDEX2") / 4, v);
  });
  r.on_write(kFlushHole / 4, [this, remap = r.dword("BIF_BX0_REMAP_HDP_MEM_FLUSH_CNTL")](uint32_t) {
    if (m_.regs.get(remap) == kFlushHole) m_.memory.hdp_flush();
  });
  r.on_write("BIF_BX_PF0_GPU_HDP_FLUSH_REQ", [this](uint32_t v) {
    m_.memory.hdp_flush();
    m_.regs.set("BIF_BX_PF0_GPU_HDP_FLUSH_DONE", v);
  });
  r.read_only("BIF_BX_PF0_GPU_HDP_FLUSH_DONE");
  r.on_read("RCC_DEV0_EPF0_RCC_CONFIG_MEMSIZE",
            [this] { return ifwi_ready_ ? uint32_t(m_.memory.vram_size() / MiB) : 0u; });
  r.read_only("RCC_DEV0_EPF0_RCC_CONFIG_MEMSIZE");
  r.on_read("MP0_SMN_C2PMSG_33", [this] { return ifwi_ready_ ? 0x80000000u : 0u; });
}

Nbio::~Nbio() { munmap(doorbells_, kDoorbellBarSize); }

void Nbio::reset() { fill_bytes(doorbells_, 0xff, kWatchedDoorbells * 8); }

bool Nbio::window_open(uint32_t dword) {
  for (const char* data : {"MM_DATA", "BIF_BX_PF0_RSMU_DATA", "BIF_BX0_PCIE_DATA2"})
    if (dword == m_.regs.dword(data)) {
      m_.rules.broken("unknown-register", fmt::format("{} through an index window", data));
      return false;
    }
  return true;
}

uint32_t Nbio::window_read(uint32_t dword) { return window_open(dword) ? m_.regs.access_read(dword) : 0; }

void Nbio::window_write(uint32_t dword, uint32_t value) {
  if (window_open(dword)) m_.regs.access_write(dword, value);
}

// PCIE_INDEX2_HI routes to other dies and stays set until it is cleared.
bool Nbio::die_selected() {
  if (m_.regs.get("BIF_BX0_PCIE_INDEX2_HI") == 0) return true;
  m_.rules.broken("unknown-register", "PCIE_DATA2 with PCIE_INDEX2_HI set: there is no other die");
  return false;
}

bool Nbio::doorbell_waiting() const {
  for (unsigned i = 0; i < kWatchedDoorbells; ++i)
    if (load64(doorbells_ + 8 * i) != kNoDoorbell) return true;
  return false;
}

// Offsets and sizes are in dword doorbells, two for each 64-bit index; size 0 leaves the range open (the GFX entries).
bool Nbio::routed(unsigned index, uint32_t awid) const {
  for (unsigned port = 0; port < 16; ++port) {
    uint32_t v = m_.regs.get(fmt::format("S2A_DOORBELL_ENTRY_{}_CTRL", port));
    if (!S2aEnable::get(v) || S2aAwid::get(v) != awid) continue;
    uint32_t begin = S2aOffset::get(v), size = S2aSize::get(v);
    if (size == 0 || (2 * index >= begin && 2 * index < begin + size)) return true;
  }
  return false;
}

void Nbio::take_doorbells() {
  for (unsigned i = 0; i < kWatchedDoorbells; ++i) {
    if (load64(doorbells_ + 8 * i) == kNoDoorbell) continue;
    uint64_t value = exchange64(doorbells_ + 8 * i, kNoDoorbell);
    if (value == kNoDoorbell) continue;
    ++m_.counters.doorbells;
    if (!m_.config.decode()) continue;
    if (!(m_.regs.get("RCC_DEV0_EPF0_RCC_DOORBELL_APER_EN") & 1)) {
      m_.rules.broken("doorbell-route", fmt::format("doorbell {} = {:#x} with the aperture off", i, value));
      continue;
    }
    const bool sdma = i >= 0x100;  // the assignment that AM drivers use (amdgpu_doorbell.h)
    if (!routed(i, sdma ? kAwidSdma : kAwidGfx) &&
        m_.rules.broken("doorbell-route",
                        fmt::format("doorbell {} = {:#x}: no S2A entry leads to the engine", i, value)))
      continue;
    if (!(sdma ? m_.sdma.doorbell(i, value) : m_.gfx.doorbell(i, value)))
      m_.rules.broken("doorbell-without-queue", fmt::format("doorbell {} = {:#x}", i, value));
  }
}

}  // namespace baregpu::mock
