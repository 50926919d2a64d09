#include "am/discovery.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::am;

namespace {

/// Builds a blob by the layout in Linux discovery.h, apart from the parser.
struct Blob {
  std::vector<std::byte> bytes = std::vector<std::byte>(kDiscoverySize);
  template <class T>
  void put(size_t at, T v) {
    std::memcpy(bytes.data() + at, &v, sizeof v);
  }
  uint16_t sum(size_t from, size_t to) const {
    unsigned s = 0;
    for (size_t i = from; i < to; ++i) s += unsigned(bytes[i]);
    return uint16_t(s);
  }
  void table(unsigned index, uint16_t offset, uint16_t size) {
    put<uint16_t>(12 + 8 * index, offset);
    put<uint16_t>(14 + 8 * index, sum(offset, offset + size));
    put<uint16_t>(16 + 8 * index, size);
  }
  void seal(uint16_t size) {
    put<uint16_t>(10, size);
    put<uint16_t>(8, sum(10, size));
  }
};

constexpr uint16_t kIps = 64, kGcAt = 512, kHarvestAt = 640, kEnd = 800;

/// Two IPs on one die: GC 11.0.0 with 2 bases, and two SDMA0.
Blob navi31() {
  Blob b;
  b.put<uint32_t>(0, 0x28211407);
  b.put<uint32_t>(kIps, 0x53445049);
  b.put<uint16_t>(kIps + 4, 3);
  b.put<uint16_t>(kIps + 12, 1);
  b.put<uint16_t>(kIps + 14, 0);
  b.put<uint16_t>(kIps + 16, kIps + 80);
  size_t at = kIps + 80;
  b.put<uint16_t>(at, 0);
  b.put<uint16_t>(at + 2, 3);
  at += 4;
  auto ip = [&](uint16_t id, uint8_t instance, std::array<uint8_t, 3> version, std::vector<uint32_t> bases) {
    b.put<uint16_t>(at, id);
    b.put<uint8_t>(at + 2, instance);
    b.put<uint8_t>(at + 3, uint8_t(bases.size()));
    for (int i = 0; i < 3; ++i) b.put<uint8_t>(at + 4 + i, version[size_t(i)]);
    at += 8;
    for (uint32_t base : bases) b.put<uint32_t>(at, base), at += 4;
  };
  ip(11, 0, {11, 0, 0}, {0x1260, 0xa000});
  ip(42, 0, {6, 0, 0}, {0x1260});
  ip(42, 1, {6, 0, 0}, {0x1261});
  const uint16_t ip_size = uint16_t(at - kIps);
  b.put<uint16_t>(kIps + 6, ip_size);
  b.put<uint32_t>(kGcAt, 0x4347);
  b.put<uint16_t>(kGcAt + 4, 1);
  b.put<uint32_t>(kGcAt + 8, 88);
  const std::pair<int, uint32_t> gc[] = {{12, 6}, {16, 4}, {28, 24}, {56, 32}, {60, 16}, {64, 32}, {68, 128}, {76, 2}};
  for (auto [off, v] : gc) b.put<uint32_t>(size_t(kGcAt + off), v);
  b.put<uint32_t>(kHarvestAt, 0x56524148);
  b.put<uint16_t>(kHarvestAt + 8, 42);
  b.put<uint8_t>(kHarvestAt + 10, 1);
  b.table(0, kIps, ip_size);
  b.table(1, kGcAt, 88);
  b.table(2, kHarvestAt, 136);
  b.seal(kEnd);
  return b;
}

std::string error_of(const Blob& b) {
  try {
    parse_discovery(b.bytes);
  } catch (const ParseError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a blob gives blocks, bases, geometry and harvested instances", "[am][discovery]") {
  const Discovery d = parse_discovery(navi31().bytes);
  REQUIRE(d.ips.size() == 3);
  CHECK(d.require(HwIp::Gc).version == IpVersion{11, 0, 0});
  CHECK(d.require(HwIp::Gc).bases == std::vector<uint32_t>{0x1260, 0xa000});
  CHECK(d.find(HwIp::Sdma0) != nullptr);
  CHECK(d.find(HwIp::Sdma0, 1) == nullptr);  // harvested
  CHECK_THROWS_AS(d.require(HwIp::Mp0), ParseError);
  REQUIRE(d.gc);
  CHECK(d.gc->cu_count() == 96);  // Navi31: 6 engines x 2 arrays x 4 WGPs x 2 CUs
  CHECK(d.gc->lds_size_kib == 128);
}

TEST_CASE("each broken field of a blob is named", "[am][discovery]") {
  struct Case {
    const char* what;
    void (*damage)(Blob&);
    const char* expect;
  };
  const Case cases[] = {
      {"signature", [](Blob& b) { b.put<uint32_t>(0, 0xffffffff); }, "signature"},
      {"whole checksum", [](Blob& b) { b.put<uint16_t>(8, 1); }, "checksum"},
      {"size smaller than the header", [](Blob& b) { b.put<uint16_t>(10, 20); }, "binary_size"},
      {"size past the end", [](Blob& b) { b.put<uint16_t>(10, 0xffff); }, ""},
      {"IP table offset",
       [](Blob& b) {
         b.put<uint16_t>(12, 0xfff0);
         b.seal(kEnd);
       },
       ""},
      {"IP signature",
       [](Blob& b) {
         b.put<uint32_t>(kIps, 0);
         b.seal(kEnd);
       },
       "IPDS"},
      {"IP checksum",
       [](Blob& b) {
         b.put<uint16_t>(14, 0);
         b.seal(kEnd);
       },
       "checksum"},
      {"version",
       [](Blob& b) {
         b.put<uint16_t>(kIps + 4, 9);
         b.table(0, kIps, 80 + 4 + 24 + 16);
         b.seal(kEnd);
       },
       "version"},
      {"dies",
       [](Blob& b) {
         b.put<uint16_t>(kIps + 12, 17);
         b.table(0, kIps, 80 + 4 + 24 + 16);
         b.seal(kEnd);
       },
       "num_dies"},
      {"GC id",
       [](Blob& b) {
         b.put<uint32_t>(kGcAt, 7);
         b.seal(kEnd);
       },
       "GC info"},
      {"GC size",
       [](Blob& b) {
         b.put<uint32_t>(kGcAt + 8, 0x7fffffff);
         b.seal(kEnd);
       },
       ""},
      {"harvest",
       [](Blob& b) {
         b.put<uint32_t>(kHarvestAt, 0);
         b.seal(kEnd);
       },
       "HARV"},
  };
  for (const Case& c : cases) {
    Blob b = navi31();
    c.damage(b);
    CAPTURE(c.what);
    const std::string error = error_of(b);
    CHECK(error != "");
    CHECK(error.find(c.expect) != error.npos);
  }
}

TEST_CASE("a blob that is cut anywhere is refused without a read past its end", "[am][discovery]") {
  const Blob b = navi31();
  for (size_t n = 0; n < kEnd; ++n) {
    const std::vector<std::byte> cut(b.bytes.begin(), b.bytes.begin() + long(n));  // its own block: ASan sees overruns
    REQUIRE_THROWS_AS(parse_discovery(cut), ParseError);
  }
}
