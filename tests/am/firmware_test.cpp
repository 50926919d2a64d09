#include "am/firmware.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <lzma.h>
#include <zstd.h>

#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::am;
namespace fs = std::filesystem;

namespace {

struct File {
  std::vector<std::byte> bytes;
  explicit File(size_t n) : bytes(n) {}
  template <class T>
  File& put(size_t at, T v) {
    std::memcpy(bytes.data() + at, &v, sizeof v);
    return *this;
  }
};

/// common_firmware_header of amdgpu_ucode.h.
File with_header(size_t size, uint16_t major, uint16_t minor, uint32_t ucode_offset, uint32_t ucode_size) {
  File f(size);
  f.put<uint32_t>(0, uint32_t(size)).put<uint32_t>(4, 256).put<uint16_t>(8, major).put<uint16_t>(10, minor);
  f.put<uint32_t>(20, ucode_size).put<uint32_t>(24, ucode_offset);
  for (size_t i = ucode_offset; i < size; ++i) f.bytes[i] = std::byte(i * 7);
  return f;
}

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("baregpu-fw-" + std::to_string(::getpid()));
  TempFolder() { fs::create_directories(path); }
  ~TempFolder() { fs::remove_all(path); }
  void write(const std::string& name, const std::vector<std::byte>& bytes) const {
    std::ofstream(path / name, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), long(bytes.size()));
  }
};

std::vector<std::byte> xz(const std::vector<std::byte>& in) {
  std::vector<std::byte> out(in.size() + 4096);
  size_t n = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(in.data()), in.size(),
                                  reinterpret_cast<uint8_t*>(out.data()), &n, out.size()) == LZMA_OK);
  out.resize(n);
  return out;
}

std::vector<std::byte> zst(const std::vector<std::byte>& in) {
  std::vector<std::byte> out(ZSTD_compressBound(in.size()));
  const size_t n = ZSTD_compress(out.data(), out.size(), in.data(), in.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(n));
  out.resize(n);
  return out;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("plain, xz and zst files give the same bytes", "[am][firmware]") {
  TempFolder dir;
  const File f = with_header(4096, 1, 0, 256, 3840);
  dir.write("a.bin", f.bytes);
  dir.write("b.bin.xz", xz(f.bytes));
  dir.write("c.bin.zst", zst(f.bytes));
  const FirmwareFolders folders = FirmwareFolders::only({dir.path.string()});
  for (const char* name : {"a.bin", "b.bin", "c.bin"}) CHECK(folders.load(name) == f.bytes);
}

TEST_CASE("damaged archives are refused by name", "[am][firmware]") {
  const File f = with_header(4096, 1, 0, 256, 3840);
  for (std::vector<std::byte> packed : {xz(f.bytes), zst(f.bytes)}) {
    for (size_t n = 6; n < packed.size(); n += 13) {
      const std::string e = error_of([&] { unpack_firmware({packed.begin(), packed.begin() + long(n)}, "smu.bin"); });
      CHECK(e.find("smu.bin") != e.npos);
    }
  }
}

TEST_CASE("a missing file names itself, the folders and the package", "[am][firmware]") {
  TempFolder dir;
  const std::string e = error_of([&] {
    FirmwareFolders::only({dir.path.string(), "/nonexistent"}).load("psp_13_0_0_sos.bin");
  });
  CAPTURE(e);
  CHECK(e.find("psp_13_0_0_sos.bin") != e.npos);
  CHECK(e.find(dir.path.string()) != e.npos);
  CHECK(e.find("/nonexistent") != e.npos);
  CHECK(e.find("firmware-amd-graphics") != e.npos);
}

TEST_CASE("the names of the three chips are those of linux-firmware", "[am][firmware]") {
  const auto names = firmware_names({13, 0, 0}, {13, 0, 0}, {6, 0, 0}, {11, 0, 0});
  const std::vector<std::string> want = {"psp_13_0_0_sos.bin", "smu_13_0_0.bin",    "sdma_6_0_0.bin",
                                         "gc_11_0_0_mec.bin",  "gc_11_0_0_imu.bin", "gc_11_0_0_rlc.bin"};
  CHECK(names == want);
}

TEST_CASE("files are cut at the places of their headers", "[am][firmware]") {
  SECTION("sos 2.0: descriptors at 36, offsets from the ucode") {
    File f = with_header(1024, 2, 0, 256, 768);
    f.put<uint32_t>(32, 2);
    const uint32_t d[] = {3, 0, 0, 64, /**/ 1, 0, 64, 128};
    for (int i = 0; i < 8; ++i) f.put<uint32_t>(size_t(36 + 4 * i), d[i]);
    FirmwareSet s;
    parse_sos(f.bytes, "sos", s);
    CHECK(s.sos.at(SosPiece::kKdb).data() == f.bytes.data() + 256);
    CHECK(s.sos.at(SosPiece::kKdb).size() == 64);
    CHECK(s.sos.at(SosPiece::kSos).data() == f.bytes.data() + 320);
  }
  SECTION("mec 2.0: code, stack and the 64-bit start address") {
    File f = with_header(2048, 2, 0, 256, 1024);
    f.put<uint32_t>(36, 1024)
        .put<uint32_t>(44, 512)
        .put<uint32_t>(48, 1280)
        .put<uint32_t>(52, 0x89abcdef)
        .put<uint32_t>(56, 1);
    FirmwareSet s;
    parse_mec(f.bytes, "mec", s);
    REQUIRE(s.pieces.size() == 2);
    CHECK(s.pieces[0].type == FwType::kRs64Mec);
    CHECK(s.pieces[1].bytes.data() == f.bytes.data() + 1280);
    CHECK(s.mec_start == 0x1'89ab'cdef);
  }
  SECTION("rlc 2.4 has what 2.3 added") {
    File f = with_header(4096, 2, 4, 256, 256);
    for (size_t at : {156, 164, 180, 196}) f.put<uint32_t>(at, 64).put<uint32_t>(at + 4, 1024);
    FirmwareSet s;
    parse_rlc(f.bytes, "rlc", s);
    std::vector<FwType> types;
    for (const FwPiece& p : s.pieces) types.push_back(p.type);
    CHECK(types ==
          std::vector<FwType>{FwType::kRlcIram, FwType::kRlcDram, FwType::kRlcP, FwType::kRlcV, FwType::kRlcG});
  }
}

TEST_CASE("truncated, oversized and unknown files are refused", "[am][firmware]") {
  using Parse = void (*)(std::span<const std::byte>, const std::string&, FirmwareSet&);
  const std::pair<Parse, std::pair<uint16_t, uint16_t>> kinds[] = {{parse_sos, {2, 0}},  {parse_smu, {1, 0}},
                                                                   {parse_sdma, {2, 0}}, {parse_mec, {2, 0}},
                                                                   {parse_imu, {1, 0}},  {parse_rlc, {2, 3}}};
  for (const auto& [parse, version] : kinds) {
    const File good = with_header(512, version.first, version.second, 256, 256);
    for (size_t n = 0; n < 512; ++n) {
      std::vector<std::byte> cut(good.bytes.begin(), good.bytes.begin() + long(n));
      FirmwareSet s;
      REQUIRE(error_of([&] { parse(cut, "cut.bin", s); }).find("cut.bin") != std::string::npos);
    }
    // Sizes and offsets of 2^32 - 1 everywhere after the header: no sum may wrap around.
    File huge = with_header(512, version.first, version.second, 256, 256);
    for (size_t at = 32; at < 256; at += 4) huge.put<uint32_t>(at, 0xffffffff);
    FirmwareSet s;
    if (parse != parse_smu) CHECK(error_of([&] { parse(huge.bytes, "huge.bin", s); }) != "");
    File unknown = with_header(512, 9, 9, 256, 256);
    CHECK(error_of([&] { parse(unknown.bytes, "unknown.bin", s); }).find("9.9") != std::string::npos);
  }
}
