// Discovery blobs, firmware files and .npy files from anywhere: parsed or refused, never more.
#include <cstring>

#include "am/discovery.hpp"
#include "am/firmware.hpp"
#include "drivers/base/error.hpp"
#include "tests/fuzz/corpus.hpp"
#include "tools/npy.hpp"

using namespace baregpu;

namespace baregpu::fuzz {

/// The first byte chooses the parser: see below.
Seeds seeds() {
  Seeds out;
  for (uint8_t which = 0; which < 6; ++which) {
    Bytes b(1 + 512);
    b[0] = std::byte(0x80 + (which + 10 - 0x80 % 10) % 10);
    auto put = [&](size_t at, uint32_t v) { std::memcpy(b.data() + 1 + at, &v, 4); };
    const uint32_t major = which == 1 || which == 4 ? 1 : 2;
    put(0, 512), put(4, 256), put(8, major | (which == 5 ? 3u << 16 : 0)), put(20, 128), put(24, 256), put(32, 1),
        put(36, 64), put(40, 64), put(44, 64), put(48, 300), put(52, 16);
    out.emplace_back("firmware" + std::to_string(which), b);
  }
  Bytes discovery(1 + 400);
  discovery[0] = std::byte{7};
  discovery[1 + 12] = std::byte{60};
  std::memcpy(discovery.data() + 1 + 60, "IPDS", 4);
  out.emplace_back("discovery", discovery);
  out.emplace_back(
      "npy", to_bytes(std::string(
                          "\x09\x93NUMPY\x01\x00\x36\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,),}", 65) +
                      "abcd"));
  return out;
}

}  // namespace baregpu::fuzz

namespace {

/// A blob whose sums are right gets past the first checks.
std::vector<std::byte> sealed(std::span<const std::byte> bytes) {
  std::vector<std::byte> b(bytes.begin(), bytes.end());
  if (b.size() < 60) return b;
  const uint32_t signature = 0x28211407;
  const uint16_t size = uint16_t(std::min<size_t>(b.size(), 0xffff));
  std::memcpy(b.data(), &signature, 4);
  std::memcpy(b.data() + 10, &size, 2);
  uint16_t sum = 0;
  for (size_t i = 10; i < size; ++i) sum = uint16_t(sum + uint16_t(b[i]));
  std::memcpy(b.data() + 8, &sum, 2);
  return b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  using Parse = void (*)(std::span<const std::byte>, const std::string&, am::FirmwareSet&);
  static constexpr Parse kFiles[] = {am::parse_sos, am::parse_smu, am::parse_sdma,
                                     am::parse_mec, am::parse_imu, am::parse_rlc};
  try {
    const unsigned which = data[0] % 10;
    if (which < 6) {
      std::vector<std::byte> file(bytes.begin(), bytes.end());
      const uint32_t n = uint32_t(file.size());
      if (file.size() >= 4 && (data[0] & 0x80)) std::memcpy(file.data(), &n, 4);  // the size field is right
      am::FirmwareSet set;
      kFiles[which](file, "f", set);
    } else if (which == 6) {
      am::parse_discovery(bytes);
    } else if (which == 7) {
      am::parse_discovery(sealed(bytes));
    } else if (which == 8) {
      am::unpack_firmware({bytes.begin(), bytes.end()}, "f");
    } else {
      tools::parse_npy(bytes, "f");
    }
  } catch (const Error&) {
  }
  return 0;
}
