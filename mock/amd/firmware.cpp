#include "mock/amd/firmware.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"
#include "mock/mock.hpp"

namespace baregpu::mock {
namespace {

constexpr uint32_t kMagic = 0x4b4d4742;  // "BGMK"
constexpr size_t kHeader = 32, kSignatureAt = 16;

// Our scheme: a keyed 64-bit FNV-1a over everything but the signature field. It stands in for RSA: a changed byte, a
// piece under another name or another chip's file must be refused; keeping an attacker out is not its job.
uint64_t signature(std::span<const std::byte> image) {
  uint64_t h = 0xcbf29ce484222325ull ^ 0x6261726567707521ull;
  for (size_t i = 0; i < image.size(); ++i) {
    if (i >= kSignatureAt && i < kSignatureAt + 8) continue;
    h = (h ^ uint8_t(image[i])) * 0x100000001b3ull;
  }
  return h;
}

uint32_t chip_id(const Chip& c) { return uint32_t(c.gc.major) << 16 | uint32_t(c.gc.minor) << 8 | c.gc.revision; }

// Firmware containers: amdgpu_ucode.h, as the hardware facts give them. All offsets count from the file's start.
class File {
 public:
  explicit File(size_t header_size) : bytes_(align_up(header_size, 256)), header_size_(header_size) {}
  void put16(size_t at, uint16_t v) { std::memcpy(&bytes_[at], &v, 2); }
  void put32(size_t at, uint32_t v) { std::memcpy(&bytes_[at], &v, 4); }
  /// Appends a piece, 256-byte aligned; returns its offset from the file's start.
  uint32_t append(const std::vector<std::byte>& piece) {
    bytes_.resize(align_up(bytes_.size(), 256));
    auto at = uint32_t(bytes_.size());
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    return at;
  }
  void common(uint16_t major, uint16_t minor, am::IpVersion ip, uint32_t version, uint32_t ucode_size,
              uint32_t ucode_at) {
    put32(0, uint32_t(bytes_.size()));
    put32(4, uint32_t(header_size_));
    put16(8, major);
    put16(10, minor);
    put16(12, ip.major);
    put16(14, ip.minor);
    put32(16, version);
    put32(20, ucode_size);
    put32(24, ucode_at);
    put32(28, 0);  // crc32: no loader checks it
  }
  void save(const std::string& folder, const std::string& name) const {
    std::filesystem::path path = std::filesystem::path(folder) / name;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes_.data()), std::streamsize(bytes_.size()));
    if (!out)
      throw Error({.device = {}, .what = "cannot write firmware file " + path.string(), .source = {}, .hint = {}});
  }

 private:
  std::vector<std::byte> bytes_;
  size_t header_size_;
};

std::string version_text(am::IpVersion v) { return fmt::format("{}_{}_{}", v.major, v.minor, v.revision); }

void write_sos(const Chip& c, const std::string& folder) {
  // psp_firmware_header_v2_0: count, then {fw_type, version, offset from ucode_array_offset, size}. Types:
  // sos_bin_type.
  struct Piece {
    uint32_t type, size;
  };
  constexpr Piece kPieces[] = {{1, 0x9000}, {2, 0x3000}, {3, 0x1400}, {4, 0x600},  {5, 0x800},
                               {7, 0x2600}, {8, 0x1800}, {9, 0x1c00}, {10, 0x1200}};
  const size_t header = 32 + 4 + std::size(kPieces) * 16;
  File f(header);
  f.put32(32, std::size(kPieces));
  uint32_t base = 0, end = 0;
  for (size_t i = 0; i < std::size(kPieces); ++i) {
    // The TOC goes through the ring as an ordinary image of fw_type TOC (24).
    uint32_t kind = kPieces[i].type == 4 ? 24 : kBootPiece | kPieces[i].type;
    uint32_t at = f.append(signed_image(c, kind, kPieces[i].size));
    if (i == 0) base = at;
    end = at + kPieces[i].size;
    const uint32_t row[4] = {kPieces[i].type, 0x00310000u + uint32_t(i), at - base, kPieces[i].size};
    for (size_t k = 0; k < 4; ++k) f.put32(36 + 16 * i + 4 * k, row[k]);
  }
  f.common(2, 0, c.mp, 0x00310000, end - base, base);
  f.save(folder, fmt::format("psp_{}_sos.bin", version_text(c.mp)));
}

void write_smu(const Chip& c, const std::string& folder) {
  File f(36);
  uint32_t at = f.append(signed_image(c, 18, 0x5000));
  f.put32(32, 0x10000);  // ucode_start_addr
  f.common(1, 0, c.mp, 0x004e7e00, 0x5000, at);
  f.save(folder, fmt::format("smu_{}.bin", version_text(c.mp)));
}

void write_sdma(const Chip& c, const std::string& folder) {
  File f(64);
  const uint32_t ctx_size = 0x2400, ctl_size = 0x1c00;
  uint32_t ctx = f.append(signed_image(c, 71, ctx_size)), ctl = f.append(signed_image(c, 72, ctl_size));
  const uint32_t fields[] = {0x3c, ctx_size, 0, 0, ctl, ctl_size, 0, 0};
  for (size_t i = 0; i < std::size(fields); ++i) f.put32(32 + 4 * i, fields[i]);
  f.common(2, 0, c.sdma, 0x13, ctx_size, ctx);
  f.save(folder, fmt::format("sdma_{}.bin", version_text(c.sdma)));
}

// gfx_firmware_header_v2_0 (RS64): feature, ucode_size, ucode_offset, data_size, data_offset, start_lo, start_hi.
void write_rs64(const Chip& c, const std::string& folder, const char* name, uint32_t code_type, uint32_t stack_type) {
  File f(60);
  const uint32_t code_size = 0x6000, data_size = 0x1000;
  uint32_t code = f.append(signed_image(c, code_type, code_size)),
           data = f.append(signed_image(c, stack_type, data_size));
  const uint32_t fields[] = {0x1d, code_size, code, data_size, data, lo32(kMecStart), hi32(kMecStart)};
  for (size_t i = 0; i < std::size(fields); ++i) f.put32(32 + 4 * i, fields[i]);
  f.common(2, 0, c.gc, 0x213, code_size, code);
  f.save(folder, fmt::format("gc_{}_{}.bin", version_text(c.gc), name));
}

void write_imu(const Chip& c, const std::string& folder) {
  File f(48);
  const uint32_t iram = 0x1800, dram = 0x2000;
  std::vector<std::byte> both = signed_image(c, 68, iram), data = signed_image(c, 69, dram);
  both.insert(both.end(), data.begin(), data.end());  // the second follows the first without a gap
  uint32_t at = f.append(both);
  const uint32_t fields[] = {iram, at, dram, at + iram};
  for (size_t i = 0; i < std::size(fields); ++i) f.put32(32 + 4 * i, fields[i]);
  f.common(1, 0, c.gc, 0xb, iram + dram, at);
  f.save(folder, fmt::format("gc_{}_imu.bin", version_text(c.gc)));
}

void write_rlc(const Chip& c, const std::string& folder) {
  File f(204);  // rlc_firmware_header_v2_3
  const uint32_t g_size = 0x4000, iram_size = 0x1400, dram_size = 0x1800, p_size = 0x900, v_size = 0xb00;
  uint32_t g = f.append(signed_image(c, 8, g_size)), iram = f.append(signed_image(c, 26, iram_size));
  uint32_t dram = f.append(signed_image(c, 48, dram_size)), p = f.append(signed_image(c, 25, p_size));
  uint32_t v = f.append(signed_image(c, 7, v_size));
  f.put32(32, 1);
  const std::array<uint32_t, 4> v22 = {iram_size, iram, dram_size, dram};
  for (size_t i = 0; i < v22.size(); ++i) f.put32(156 + 4 * i, v22[i]);
  const std::array<uint32_t, 8> v23 = {0x11, 1, p_size, p, 0x12, 1, v_size, v};
  for (size_t i = 0; i < v23.size(); ++i) f.put32(172 + 4 * i, v23[i]);
  f.common(2, 3, c.gc, 0x85, g_size, g);
  f.save(folder, fmt::format("gc_{}_rlc.bin", version_text(c.gc)));
}

}  // namespace

std::vector<std::byte> signed_image(const Chip& chip, uint32_t kind, uint32_t size) {
  std::vector<std::byte> image(size);
  const uint32_t header[4] = {kMagic, kind, size, chip_id(chip)};
  std::memcpy(image.data(), header, sizeof(header));
  uint32_t x = kind * 2654435761u ^ chip_id(chip);
  for (size_t i = kHeader; i < size; ++i) {
    x = x * 1664525u + 1013904223u;
    image[i] = std::byte(x >> 24);
  }
  if (kind == 24) std::memcpy(&image[kHeader], &kTmrSize, 4);  // the table of contents says how much TMR is needed
  uint64_t s = signature(image);
  std::memcpy(&image[kSignatureAt], &s, 8);
  return image;
}

std::optional<ImageInfo> verify_image(const Chip& chip, std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader) return {};
  uint32_t header[4];
  std::memcpy(header, bytes.data(), sizeof(header));
  if (header[0] != kMagic || header[2] < kHeader || header[2] > bytes.size() || header[3] != chip_id(chip)) return {};
  uint64_t s;
  std::memcpy(&s, &bytes[kSignatureAt], 8);
  if (s != signature(bytes.first(header[2]))) return {};
  return ImageInfo{header[1], header[2]};
}

void write_chip_firmware(const Chip& c, const std::string& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec)
    throw Error(
        {.device = {}, .what = "cannot create folder " + folder + ": " + ec.message(), .source = {}, .hint = {}});
  write_sos(c, folder);
  write_smu(c, folder);
  write_sdma(c, folder);
  write_rs64(c, folder, "mec", 89, 94);
  write_rs64(c, folder, "pfp", 87, 90);
  write_rs64(c, folder, "me", 88, 92);
  write_imu(c, folder);
  write_rlc(c, folder);
}

void write_firmware(const std::string& arch, const std::string& folder) {
  write_chip_firmware(find_chip(arch), folder);
}

}  // namespace baregpu::mock
