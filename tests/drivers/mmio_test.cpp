#include "drivers/mmio.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;

namespace {

struct Recorder final : MmioBackend {
  std::vector<std::string> log;
  uint32_t read32(uint64_t o) override { return log.push_back("r4@" + std::to_string(o)), 0x11223344; }
  void write32(uint64_t o, uint32_t) override { log.push_back("w4@" + std::to_string(o)); }
  uint64_t read64(uint64_t o) override { return log.push_back("r8@" + std::to_string(o)), 0x1122334455667788; }
  void write64(uint64_t o, uint64_t) override { log.push_back("w8@" + std::to_string(o)); }
  void read_block(uint64_t o, std::span<std::byte> s) override {
    log.push_back("rb@" + std::to_string(o) + "+" + std::to_string(s.size()));
  }
  void write_block(uint64_t o, std::span<const std::byte> s) override {
    log.push_back("wb@" + std::to_string(o) + "+" + std::to_string(s.size()));
  }
};

}  // namespace

TEST_CASE("accesses keep width and order through a backend, and views add their start", "[drivers][mmio]") {
  Recorder r;
  const Mmio m = Mmio(r, 4096).sub(256, 1024).sub(16, 64);
  m.write32(0, 1);
  CHECK(m.read32(4) == 0x11223344);
  m.write64(8, 1);
  CHECK(m.read64(16) == 0x1122334455667788);
  std::byte b[3];
  m.read_block(1, b);
  CHECK(r.log == std::vector<std::string>{"w4@272", "r4@276", "w8@280", "r8@288", "rb@273+3"});
}

TEST_CASE("accesses outside the view or misaligned are errors", "[drivers][mmio]") {
  std::vector<uint64_t> memory(8);
  const Mmio m(memory.data(), 64);
  for (uint64_t offset : {uint64_t{64}, uint64_t{62}, uint64_t{1}, uint64_t{2}, ~uint64_t{0}, ~uint64_t{0} - 3}) {
    CAPTURE(offset);
    CHECK_THROWS_AS(m.read32(offset), Error);
    CHECK_THROWS_AS(m.write32(offset, 0), Error);
  }
  CHECK_THROWS_AS(m.read64(4), Error);
  CHECK_THROWS_AS(m.read64(60), Error);
  CHECK_THROWS_AS(m.sub(60, 8), Error);
  CHECK_THROWS_AS(m.sub(~uint64_t{0}, 2), Error);
  std::vector<std::byte> big(65);
  CHECK_THROWS_AS(m.read_block(0, big), Error);
  CHECK_THROWS_AS(m.write_block(1, std::span(big).first(64)), Error);
  CHECK_THROWS_AS(m.fill_zero(60, 5), Error);
  CHECK_THROWS_AS(Mmio().read32(0), Error);
}

TEST_CASE("block copies are exact at every offset and length", "[drivers][mmio]") {
  std::vector<uint64_t> memory(16);
  const Mmio m(memory.data(), 128);
  for (uint64_t at = 0; at < 17; ++at)
    for (uint64_t n = 0; n < 40; ++n) {
      std::memset(memory.data(), 0xee, 128);
      std::vector<std::byte> in(n), out(n);
      for (uint64_t i = 0; i < n; ++i) in[i] = std::byte(i + 1);
      m.write_block(at, in);
      m.read_block(at, out);
      REQUIRE(in == out);
      const auto* bytes = reinterpret_cast<const unsigned char*>(memory.data());
      for (uint64_t i = 0; i < 128; ++i)
        if (i < at || i >= at + n) REQUIRE(bytes[i] == 0xee);
      m.fill_zero(at, n);
      for (uint64_t i = 0; i < 128; ++i) REQUIRE(bytes[i] == (i < at || i >= at + n ? 0xee : 0));
    }
}

TEST_CASE("bit fields are the manuals' high:low", "[drivers][bits]") {
  static_assert(Bits<29, 24>::mask == 0x3f000000);
  static_assert(Bits<31, 0>::mask == 0xffffffff);
  static_assert(Bits<5>::get(0x20) == 1);
  static_assert(Bits<7, 4>::set(0x1f) == 0xf0);
  static_assert(Bits64<47, 12>::mask == 0x0000'ffff'ffff'f000);
  static_assert(Bits64<63, 0>::mask == ~uint64_t{0});
  static_assert(align_up(4097, 4096) == 8192 && align_down(4097, 4096) == 4096);
  CHECK(log2_floor(1) == 0);
  CHECK(log2_floor(uint64_t{1} << 63) == 63);
}
