// Synthetic firmware: the mock's own signature scheme, and writers for the containers that drivers parse.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mock/amd/chips.hpp"

namespace baregpu::mock {

/// What a signed image claims to be: a PSP boot piece or a LOAD_IP_FW type.
constexpr uint32_t kBootPiece = 0x10000;  ///< kind = kBootPiece | sos_bin_type
/// Entry point in the MEC's RS64 image; drivers must program it, shifted right by 2.
constexpr uint64_t kMecStart = 0x400000;
/// TMR size that the table of contents asks for.
constexpr uint32_t kTmrSize = 0x1200000;

/// An image of `size` bytes: 32-byte header {magic, kind, size, chip, signature, 0}, then a body that depends on all of
/// it.
std::vector<std::byte> signed_image(const Chip& chip, uint32_t kind, uint32_t size);
/// Kind and size of the image at the start of `bytes`, if its signature is right for this chip.
struct ImageInfo {
  uint32_t kind = 0, size = 0;
};
std::optional<ImageInfo> verify_image(const Chip& chip, std::span<const std::byte> bytes);

/// Writes all files of the chip. @throws Error if the folder cannot be written.
void write_chip_firmware(const Chip& chip, const std::string& folder);

}  // namespace baregpu::mock
