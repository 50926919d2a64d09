#include "am/page_table.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "am/gmc.hpp"
#include "drivers/base/error.hpp"
#include "fake_pci.hpp"

using namespace baregpu;
using namespace baregpu::am;

namespace {

constexpr uint64_t kPool = 8 * MiB;

struct Fixture {
  test::FakePci pci;
  std::vector<std::byte> memory = std::vector<std::byte>(kPool, std::byte{0xee});
  Mmio bar{memory.data(), kPool};
  RegisterIo io{pci, Mmio()};
  Vram vram{io, bar, kPool};
  uint64_t next = 4096;
  std::set<uint64_t> live;
  bool refuse = false;
  PageTables tables{vram,
                    page_table_format({11, 0, 0}),
                    VramOffset(0),
                    GpuVa(kVaBase),
                    0,
                    {[this] {
                       if (refuse)
                         throw OutOfMemoryError({.device = {}, .what = "no table memory", .source = {}, .hint = {}});
                       next += 4096;
                       live.insert(next - 4096);
                       return VramOffset(next - 4096);
                     },
                     [this](VramOffset v) { REQUIRE(live.erase(v.value) == 1); }}};

  struct Found {
    uint64_t address, entry;
    unsigned level;
  };
  /// The hardware's walk, from the entry formats of GFX11: bit 0 valid, bit 54 "this is a page", address 47:12.
  std::optional<Found> walk(uint64_t va) const {
    const uint64_t offset = va - kVaBase;
    uint64_t table = 0;
    for (unsigned level = 0; level < 4; ++level) {
      const unsigned shift = 39 - 9 * level;
      uint64_t entry;
      std::memcpy(&entry, memory.data() + table + (offset >> shift & 511) * 8, 8);
      if (!(entry & 1)) return std::nullopt;
      const uint64_t address = entry & 0x0000'ffff'ffff'f000;
      if (level == 3 || (entry >> 54 & 1))
        return Found{address + (offset & ((uint64_t{1} << shift) - 1)), entry, level};
      table = address;
    }
    return std::nullopt;
  }
};

}  // namespace

TEST_CASE("entries have the bits of the GFX11 format", "[am][page-table]") {
  Fixture f;
  // Worked out by hand: V 1, S 2, C 4, X 16, R 32, W 64; fragment in 11:7; MTYPE UC 3 in 50:48; P in 54.
  PageFlags system{.system = true, .snooped = true, .uncached = true};
  const PhysRun host{0x1'2345'6000, 4096};
  f.tables.map(GpuVa(kVaBase), std::span(&host, 1), system);
  CHECK(f.walk(kVaBase)->entry == 0x0003'0001'2345'6077);
  const PhysRun vram{0x400000, 2 * MiB};
  f.tables.map(GpuVa(kVaBase + 4 * MiB), std::span(&vram, 1), {});
  CHECK(f.walk(kVaBase + 4 * MiB)->entry == (0x0040'0000'0040'0071 | 9 << 7));
  CHECK(f.walk(kVaBase + 4 * MiB)->level == 2);
  // A directory entry: valid and address only.
  uint64_t directory;
  std::memcpy(&directory, f.memory.data(), 8);
  CHECK((directory & 0xfff) == 1);
}

TEST_CASE("fragments never reach outside the run, in virtual or physical addresses", "[am][page-table]") {
  Fixture f;
  std::mt19937_64 rng(3);
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> maps;  // va -> {pa, size}
  for (int i = 0; i < 400; ++i) {
    const uint64_t pages = 1 + rng() % (rng() % 4 ? 40 : 3000);
    const uint64_t va = kVaBase + (rng() % 60000) * 4096, pa = (rng() % 100000) * 4096;
    const PhysRun run{pa, pages * 4096};
    bool overlap = false;
    for (const auto& [v, m] : maps) overlap |= v < va + pages * 4096 && va < v + m.second;
    if (overlap) {
      CHECK_THROWS_AS(f.tables.map(GpuVa(va), std::span(&run, 1), {}), Error);
      continue;
    }
    f.tables.map(GpuVa(va), std::span(&run, 1), {});
    maps[va] = {pa, pages * 4096};
    if (maps.size() > 20) {
      auto it = std::next(maps.begin(), long(rng() % maps.size()));
      f.tables.unmap(GpuVa(it->first), it->second.second);
      CHECK_FALSE(f.walk(it->first));
      maps.erase(it);
    }
  }
  for (const auto& [va, m] : maps)
    for (uint64_t at = 0; at < m.second; at += 4096) {
      const auto found = f.walk(va + at);
      REQUIRE(found);
      REQUIRE(found->address == m.first + at);
      // The TLB may use the whole fragment: its block must lie inside this mapping on both sides.
      const uint64_t block = uint64_t{4096} << (found->entry >> 7 & 31), low = (va + at - kVaBase) & ~(block - 1);
      REQUIRE(low + kVaBase >= va);
      REQUIRE(low + kVaBase + block <= va + m.second);
      REQUIRE((found->address & ~(block - 1)) >= m.first);
      REQUIRE(((va + at - kVaBase) & (block - 1)) == (found->address & (block - 1)));
    }
  for (const auto& [va, m] : maps) f.tables.unmap(GpuVa(va), m.second);
  CHECK(f.live.empty());
  CHECK(f.tables.table_count() == 0);
}

TEST_CASE("a mapping that runs out of table memory leaves nothing behind", "[am][page-table]") {
  Fixture f;
  f.refuse = true;
  const PhysRun run{0, 4096};
  CHECK_THROWS_AS(f.tables.map(GpuVa(kVaBase), std::span(&run, 1), {}), OutOfMemoryError);
  f.refuse = false;
  f.tables.map(GpuVa(kVaBase), std::span(&run, 1), {});
  CHECK(f.walk(kVaBase)->address == 0);
}

TEST_CASE("bad ranges are refused", "[am][page-table]") {
  Fixture f;
  auto map = [&](uint64_t va, uint64_t pa, uint64_t size) {
    const PhysRun run{pa, size};
    f.tables.map(GpuVa(va), std::span(&run, 1), {});
  };
  CHECK_THROWS_AS(map(kVaBase + 1, 0, 4096), Error);
  CHECK_THROWS_AS(map(kVaBase, 1, 4096), Error);
  CHECK_THROWS_AS(map(kVaBase, 0, 4095), Error);
  CHECK_THROWS_AS(map(kVaBase, 0, 0), Error);
  CHECK_THROWS_AS(map(kVaBase - 4096, 0, 4096), Error);
  CHECK_THROWS_AS(map(kVaBase, uint64_t{1} << 44, 4096), Error);  // a PTE holds 44 address bits
  CHECK_THROWS_AS(f.tables.unmap(GpuVa(kVaBase), 4096), Error);
  map(kVaBase, 0, 2 * MiB);
  CHECK_THROWS_AS(f.tables.unmap(GpuVa(kVaBase), 4096), Error);  // part of a huge page
}
