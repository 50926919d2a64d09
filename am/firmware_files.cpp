#include <fmt/format.h>
#include <lzma.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "am/firmware.hpp"
#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"
#include "drivers/env.hpp"

namespace baregpu::am {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxFile = 64 * MiB;  // the largest published file is 4 MiB
constexpr const char* kSuffixes[] = {"", ".xz", ".zst"};

[[noreturn]] void bad(const std::string& name, const std::string& problem) {
  throw ParseError(
      {.device = {}, .what = "firmware file " + name + ": " + problem, .source = {}, .hint = "install it again"});
}

std::vector<std::byte> unpack_xz(const std::vector<std::byte>& in, const std::string& name) {
  lzma_stream s = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&s, 256 * MiB, 0) != LZMA_OK) bad(name, "cannot start the xz decoder");
  std::vector<std::byte> out;
  s.next_in = reinterpret_cast<const uint8_t*>(in.data());
  s.avail_in = in.size();
  lzma_ret r = LZMA_OK;
  while (r == LZMA_OK && out.size() <= kMaxFile) {
    size_t old = out.size();
    out.resize(old + 256 * KiB);
    s.next_out = reinterpret_cast<uint8_t*>(out.data() + old);
    s.avail_out = out.size() - old;
    r = lzma_code(&s, LZMA_FINISH);
    out.resize(out.size() - s.avail_out);
  }
  lzma_end(&s);
  if (r != LZMA_STREAM_END) bad(name, out.size() > kMaxFile ? "larger than 64 MiB unpacked" : "damaged xz data");
  return out;
}

std::vector<std::byte> unpack_zst(const std::vector<std::byte>& in, const std::string& name) {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> ctx(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::vector<std::byte> out;
  ZSTD_inBuffer src{in.data(), in.size(), 0};
  size_t r = 1;
  while (r != 0 && out.size() <= kMaxFile) {
    size_t old = out.size();
    out.resize(old + 256 * KiB);
    ZSTD_outBuffer dst{out.data() + old, out.size() - old, 0};
    size_t before = src.pos;
    r = ZSTD_decompressStream(ctx.get(), &dst, &src);
    out.resize(old + dst.pos);
    if (ZSTD_isError(r) || (dst.pos == 0 && src.pos == before && r != 0)) bad(name, "damaged zstd data");
  }
  if (r != 0) bad(name, "larger than 64 MiB unpacked");
  return out;
}

}  // namespace

std::vector<std::byte> unpack_firmware(std::vector<std::byte> bytes, const std::string& name) {
  static constexpr uint8_t kXz[] = {0xfd, '7', 'z', 'X', 'Z', 0}, kZstd[] = {0x28, 0xb5, 0x2f, 0xfd};
  auto starts = [&](const auto& magic) {
    return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), magic, sizeof magic) == 0;
  };
  if (starts(kXz)) return unpack_xz(bytes, name);
  if (starts(kZstd)) return unpack_zst(bytes, name);
  return bytes;
}

FirmwareFolders::FirmwareFolders(std::vector<std::string> first) : folders_(std::move(first)) {
  folders_.insert(folders_.end(), env().firmware_path.begin(), env().firmware_path.end());
  folders_.push_back("/lib/firmware/amdgpu");
}

FirmwareFolders FirmwareFolders::only(std::vector<std::string> folders) {
  FirmwareFolders f;
  f.folders_ = std::move(folders);
  return f;
}

std::string FirmwareFolders::find(const std::string& name) const {
  for (const std::string& folder : folders_)
    for (const char* suffix : kSuffixes) {
      std::error_code ec;
      fs::path p = fs::path(folder) / (name + suffix);
      if (fs::is_regular_file(p, ec)) return p.string();
    }
  return "";
}

std::vector<std::byte> FirmwareFolders::load(const std::string& name) const {
  std::string path = find(name);
  if (path.empty()) {
    std::string searched;
    for (const std::string& f : folders_) searched += (searched.empty() ? "" : ", ") + f;
    throw Error(
        {.device = {},
         .what = "firmware file " + name + " (or .xz, .zst) not found",
         .source = "searched " + searched,
         .hint =
             "install firmware-amd-graphics (Debian non-free-firmware) or put linux-firmware's amdgpu/ files into a "
             "folder named by AM_FIRMWARE_PATH"},
        "firmware_missing");
  }
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in)
    throw Error(
        {.device = {}, .what = "cannot open firmware file " + path, .source = std::strerror(errno), .hint = {}});
  auto size = uint64_t(in.tellg());
  if (size > kMaxFile) bad(path, "larger than 64 MiB");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(size))) bad(path, "cannot be read");
  return unpack_firmware(std::move(bytes), path);
}

}  // namespace baregpu::am
