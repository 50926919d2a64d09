// The IP discovery blob at the top of VRAM.
#pragma once
#include <cstddef>
#include <vector>

#include "mock/amd/chips.hpp"

namespace baregpu::mock {

constexpr uint64_t kDiscoveryFromTop = 0x10000;  ///< the blob starts this far below the end of VRAM
/// The blob with right checksums: IP discovery, GC info and harvest tables.
std::vector<std::byte> discovery_blob(const Chip& chip);

}  // namespace baregpu::mock
