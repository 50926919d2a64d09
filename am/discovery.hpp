// IP discovery: the table in VRAM that says which blocks a GPU has, their versions and their register bases.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "am/regs/tables.hpp"

namespace baregpu::am {

/// The blob is 64 KiB below the top of VRAM; 10 KiB of it are read (Linux amdgpu_discovery.c: DISCOVERY_TMR_OFFSET).
constexpr uint64_t kDiscoveryOffsetFromTop = 64 * 1024, kDiscoverySize = 10 * 1024;

struct IpInstance {
  uint16_t hw_id = 0;
  uint8_t instance = 0, die = 0;
  IpVersion version;
  std::vector<uint32_t> bases;  ///< dwords; 64-bit bases are masked to their low 30 bits as Linux does
  bool harvested = false;
};

/// Shader-array geometry from the GC info table. Maxima: fused-off units are not subtracted.
struct GcInfo {
  uint32_t num_se = 0, cu_per_sa = 0, sa_per_se = 0, wave_size = 0, max_waves_per_simd = 0;
  uint32_t max_scratch_slots_per_cu = 0, lds_size_kib = 0, num_gl2c = 0;
  uint32_t cu_count() const { return cu_per_sa * sa_per_se * num_se; }
};

struct Discovery {
  std::vector<IpInstance> ips;
  std::optional<GcInfo> gc;

  /// The first live instance of the block. @throws ParseError if there is none.
  const IpInstance& require(HwIp ip) const;
  const IpInstance* find(HwIp ip, unsigned instance = 0) const;
};

/// Parses a discovery blob (signatures, checksums and every offset checked). @throws ParseError naming the field.
Discovery parse_discovery(std::span<const std::byte> blob);

}  // namespace baregpu::am
