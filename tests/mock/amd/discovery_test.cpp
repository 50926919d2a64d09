// The discovery blob, parsed by a second, tiny parser.
#include <map>

#include "tests/mock/amd/rig.hpp"

using namespace rig;

namespace {

struct Blob {
  std::vector<uint8_t> bytes;
  explicit Blob(Rig& g) {
    const uint64_t at = (uint64_t{g.r(kMemsize)} << 20) - 0x10000;
    for (unsigned i = 0; i < 0x2800; i += 4) {
      g.w(kMmIndexHi, uint32_t((at + i) >> 31));
      g.w(kMmIndex, uint32_t((at + i) & 0x7fffffff) | 0x80000000);
      uint32_t v = g.r(kMmData);
      for (int k = 0; k < 4; ++k) bytes.push_back(uint8_t(v >> (8 * k)));
    }
  }
  unsigned u16(unsigned at) const { return bytes.at(at) | bytes.at(at + 1) << 8; }
  uint32_t u32(unsigned at) const { return u16(at) | uint32_t(u16(at + 2)) << 16; }
  unsigned sum(unsigned at, unsigned n) const {
    unsigned s = 0;
    for (unsigned i = 0; i < n; ++i) s += bytes.at(at + i);
    return s & 0xffff;
  }
};

}  // namespace

TEST_CASE("the discovery blob has right checksums and the chip's versions", "[mock][discovery]") {
  auto [arch, gc, mp, vram_mib] =
      GENERATE(table<const char*, unsigned, unsigned, uint32_t>({{"gfx1100", 0x0b0000, 0x0d0000, 24576},
                                                                 {"gfx1101", 0x0b0003, 0x0d000a, 16384},
                                                                 {"gfx1102", 0x0b0002, 0x0d0007, 8192}}));
  mock::MockOptions o;
  o.arch = arch;
  Rig g(o);
  CHECK(g.r(kMemsize) == vram_mib);
  Blob b(g);
  REQUIRE(b.u32(0) == 0x28211407);
  CHECK(b.u16(8) == b.sum(10, b.u16(10) - 10));
  for (unsigned i = 0; i < 3; ++i) CHECK(b.u16(14 + 8 * i) == b.sum(b.u16(12 + 8 * i), b.u16(16 + 8 * i)));
  CHECK(b.u16(12 + 24) == 0);  // VCN table absent

  const unsigned ip = b.u16(12);
  REQUIRE(b.u32(ip) == 0x53445049);
  CHECK(b.u16(ip + 6) == b.u16(16));
  REQUIRE(b.u16(ip + 12) == 1);
  unsigned at = b.u16(ip + 16);
  CHECK(b.u16(at) == 0);
  unsigned count = b.u16(at + 2);
  std::map<unsigned, std::pair<unsigned, uint32_t>> found;  // hw_id -> version, base 0
  at += 4;
  for (unsigned i = 0; i < count; ++i) {
    unsigned n = b.bytes.at(at + 3);
    if (b.bytes.at(at + 2) == 0)
      found[b.u16(at)] = {b.bytes.at(at + 4) << 16 | b.bytes.at(at + 5) << 8 | b.bytes.at(at + 6),
                          n ? b.u32(at + 8) : 0};
    at += 8 + 4 * n;
  }
  CHECK(at == ip + b.u16(ip + 6));
  CHECK(found.at(11) == std::pair{gc, 0x1260u});
  CHECK(found.at(255) == std::pair{mp, 0x16000u});
  CHECK(found.at(1).second == 0x16000u);
  CHECK(found.at(34).second == 0x1a000u);
  CHECK(found.at(40) == std::pair{0x060000u, 0x10a0u});
  CHECK(found.at(108).first == 0x040300u);

  const unsigned gc_table = b.u16(20);
  CHECK(b.u32(gc_table) == 0x4347);
  const unsigned cus = 2 * (b.u32(gc_table + 16) + b.u32(gc_table + 20)) * b.u32(gc_table + 76) * b.u32(gc_table + 12);
  CHECK(cus == (g.r(kMemsize) == 24576 ? 96u : vram_mib == 16384 ? 60u : 32u));  // compute units of the products
  CHECK(b.u32(gc_table + 68) == 64);                                             // LDS KiB
  CHECK(b.u32(b.u16(28)) == 0x56524148);
}
