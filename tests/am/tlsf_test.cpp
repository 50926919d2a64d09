#include "am/tlsf.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;
using am::Tlsf;

TEST_CASE("a full heap says asked, used, free and the largest block", "[am][tlsf]") {
  Tlsf heap("VRAM", 0x10000, 64 * 1024, 4096);
  for (int i = 0; i < 16; ++i) heap.allocate(4096, 4096);
  CHECK(heap.used() == 64 * 1024);
  try {
    heap.allocate(4096, 4096);
    FAIL("no error");
  } catch (const OutOfMemoryError& e) {
    const std::string text = e.what();
    CAPTURE(text);
    CHECK(text.find("VRAM") != text.npos);
    CHECK(text.find("4096") != text.npos);
    CHECK(text.find("65536") != text.npos);
  }
}

TEST_CASE("double and unknown frees are errors and change nothing", "[am][tlsf]") {
  Tlsf heap("h", 0, 1 << 20, 4096);
  const uint64_t a = heap.allocate(8192, 4096), b = heap.allocate(4096, 4096);
  heap.free(a);
  CHECK_THROWS_AS(heap.free(a), Error);
  CHECK_THROWS_AS(heap.free(b + 4096), Error);
  CHECK_THROWS_AS(heap.free(0xdeadbeef), Error);
  CHECK(heap.used() == 4096);
  heap.free(b);
  CHECK(heap.used() == 0);
  CHECK(heap.largest_free() == 1 << 20);
}

TEST_CASE("live ranges never overlap and freed space merges", "[am][tlsf]") {
  constexpr uint64_t kBase = 0x2000'0000'0000, kSize = uint64_t{1} << 28;
  Tlsf heap("h", kBase, kSize, 4096);
  std::mt19937_64 rng(7);
  std::map<uint64_t, uint64_t> live;  // start -> size
  uint64_t used = 0;
  for (int step = 0; step < 20000; ++step) {
    if (rng() % 5 < 3 || live.empty()) {
      const uint64_t size = 1 + rng() % (uint64_t{1} << (rng() % 22)), align = uint64_t{4096} << (rng() % 10);
      const auto at = heap.try_allocate(size, align);
      if (!at) continue;
      const uint64_t rounded = align_up(size, 4096);
      REQUIRE(*at % align == 0);
      REQUIRE(*at >= kBase);
      REQUIRE(*at + rounded <= kBase + kSize);
      auto next = live.lower_bound(*at);
      if (next != live.end()) REQUIRE(*at + rounded <= next->first);
      if (next != live.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= *at);
      live[*at] = rounded;
      used += rounded;
      REQUIRE(heap.size_of(*at) == rounded);
    } else {
      auto it = std::next(live.begin(), long(rng() % live.size()));
      heap.free(it->first);
      used -= it->second;
      live.erase(it);
    }
    REQUIRE(heap.used() == used);
  }
  for (const auto& [at, size] : live) heap.free(at);
  CHECK(heap.used() == 0);
  CHECK(heap.largest_free() == kSize);
  CHECK(heap.allocate(kSize, 4096) == kBase);
}
