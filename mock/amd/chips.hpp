// The chips that the AMD mock can be: identity, IP versions, sizes. Written from the hardware facts, not from am/.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "am/regs/tables.hpp"
#include "mock/isa/executor.hpp"

namespace baregpu::mock {

struct Chip {
  const char* arch;  ///< "gfx1100"
  const char* model;
  isa::Target target;
  uint16_t device_id, subsystem_id;
  uint8_t pci_revision;
  uint64_t vram_size;
  am::IpVersion gc, mp, sdma, mmhub, nbio, hdp, osssys;
  uint32_t num_se, wgp_per_sa, sa_per_se, rb_per_se, gl2c;
};
std::span<const Chip> amd_chips();
/// @throws UsageError that lists the known names.
const Chip& find_chip(const std::string& arch);

/// One IP instance of the discovery blob.
struct IpBlock {
  uint16_t hw_id;
  uint8_t instance;
  am::IpVersion version;
  std::vector<uint32_t> bases;  ///< dwords
};
/// All instances that this chip's blob lists, also those without a model in the mock.
std::vector<IpBlock> ip_blocks(const Chip& chip);

}  // namespace baregpu::mock
