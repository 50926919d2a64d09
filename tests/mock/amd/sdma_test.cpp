// Copy engine packets by hand-made dwords.
#include "tests/mock/amd/rig.hpp"

using namespace rig;

namespace {

constexpr uint64_t kFenceVa = page(kDataPage + 7), kFenceAt = Rig::data(kDataPage + 7);
std::vector<uint32_t> copy(uint64_t dst, uint64_t src, uint32_t bytes) {
  return {1, bytes - 1, 0, lo(src), hi(src), lo(dst), hi(dst)};
}
std::vector<uint32_t> fence(uint32_t value) { return {5 | 3 << 16, lo(kFenceVa), hi(kFenceVa), value}; }

struct Engine : Rig {
  explicit Engine(mock::MockOptions o = amdgpu()) : Rig(o) {
    setup_memory();
    setup_ih();
    setup_sdma();
  }
  bool run(std::vector<uint32_t> d, uint32_t value, int ms = 3000) {
    // Packets must not cross the end: fill the tail with NOPs, as drivers do.
    const uint64_t room = (4096 - sdma_put % 4096) / 4;
    d = std::move(d) + fence(value);
    if (d.size() > room) submit_sdma(std::vector<uint32_t>(room, 0));
    submit_sdma(d);
    return wait([&] { return v32(kFenceAt) == value; }, ms);
  }
};

}  // namespace

TEST_CASE("SDMA copies, writes, fills and stamps", "[mock][sdma]") {
  Engine g;
  DmaBuffer host = g.dev->alloc_dma(3 * 4096, false);
  for (unsigned i = 0; i < 3; ++i) g.map(40 + i, host.pages()[i].value | kSystemLeaf);
  for (unsigned i = 0; i < 3 * 1024; ++i) {
    const uint32_t v = i * 0x01010101u;
    std::memcpy(host.cpu() + 4 * i, &v, 4);
  }
  const uint64_t a = page(kDataPage);
  CHECK(g.run(copy(a + 4, page(40) + 8, 9000), 1));  // scattered host pages to VRAM, odd offsets
  CHECK(g.v32(Rig::data(kDataPage, 4)) == 2 * 0x01010101u);
  CHECK(g.v32(Rig::data(kDataPage, 4 + 8996)) == 2251 * 0x01010101u);
  CHECK(g.v32(Rig::data(kDataPage, 4 + 9000)) == 0);
  CHECK(g.run(copy(page(41) + 1, a + 4, 3), 2));  // bytes
  CHECK(std::to_integer<int>(host.cpu()[4096 + 1]) == 2);
  CHECK(g.run({11 | 2u << 30, lo(a), hi(a), 0xabcdef01, 4096 - 1}, 3));
  CHECK(g.v32(Rig::data(kDataPage, 4092)) == 0xabcdef01);
  CHECK(g.run({2, lo(a), hi(a), 1, 0x10, 0x20}, 4));  // WRITE of two dwords
  CHECK(g.v64(Rig::data(kDataPage)) == 0x20'00000010ull);
  CHECK(g.run({13 | 2 << 8, lo(a + 8), hi(a)}, 5));
  CHECK(g.v64(Rig::data(kDataPage, 8)) > 0);
  CHECK(g.run({2 << 16, 0xffffffff, 0xffffffff}, 6));          // NOP that skips two dwords
  CHECK(g.v64(Rig::data(kPointerPage, 0x100)) == g.sdma_put);  // read pointer in bytes
  CHECK(g.notes() == "");
}

TEST_CASE("SDMA polls memory, traps, and runs indirect buffers", "[mock][sdma]") {
  Engine g;
  const uint64_t a = page(kDataPage);
  CHECK_FALSE(g.run({8 | 3u << 28 | 1u << 31, lo(a), hi(a), 9, 0xff, 4 | 0xfff << 16}, 1, 30));
  g.put32(Rig::data(kDataPage), 0x109);
  g.flush();
  CHECK(g.wait32(kFenceAt, 1));
  CHECK(g.run({6, 0x1234}, 2));
  auto iv = g.interrupts();
  REQUIRE(iv.size() == 1);
  CHECK(iv[0].client == 10);
  CHECK(iv[0].source == 49);
  CHECK(iv[0].ctx0 == 0x1234);
  std::vector<uint32_t> body = {2, lo(a + 64), hi(a), 0, 0x66, 0, 0, 0};
  for (size_t i = 0; i < body.size(); ++i) g.put32(Rig::data(kIbPage, 4 * i), body[i]);
  while ((g.sdma_put / 4 + 6) % 8) g.submit_sdma({0});
  CHECK(g.run({4, lo(page(kIbPage)), hi(a), 8, 0, 0}, 3));
  CHECK(g.v32(Rig::data(kDataPage, 64)) == 0x66);
  CHECK(g.notes() == "");
  // Without TRAP_ENABLE no entry comes.
  g.w(kSdmaCntl, 0);
  CHECK(g.run({6, 0x5678}, 4));
  CHECK(g.interrupts().empty());
}

TEST_CASE("the ring may be used to its last dword, but no packet may cross its end", "[mock][sdma]") {
  Engine g;
  g.submit_sdma(std::vector<uint32_t>(1024 - 4, 0));
  g.submit_sdma(fence(1));  // an exact fit
  CHECK(g.wait32(kFenceAt, 1));
  CHECK(g.run({}, 2));
  g.submit_sdma(std::vector<uint32_t>(1024 - 4 - 2, 0));
  g.submit_sdma(fence(3));
  CHECK(g.wait_broke("sdma-wrap"));
  CHECK(g.v32(kFenceAt) == 2);
  auto iv = g.interrupts();
  REQUIRE_FALSE(iv.empty());
  CHECK(iv[0].source == 55);
}

TEST_CASE("malformed SDMA packets halt the engine", "[mock][sdma]") {
  struct Bad {
    std::vector<uint32_t> dwords;
    const char* rule;
  };
  const uint64_t a = page(kDataPage);
  const std::vector<Bad> bad = {{{0x7f}, "ring-packet-malformed"},
                                {{1 | 5 << 8, 0, 0, 0, 0, 0, 0}, "ring-packet-malformed"},
                                {{5, lo(a) | 2, hi(a), 1}, "unaligned"},
                                {{11 | 2u << 30, lo(a), hi(a), 1, 4}, "unaligned"},
                                {{0, 4, lo(a), hi(a), 8, 0, 0}, "unaligned"}};  // INDIRECT off its boundary
  for (const Bad& b : bad) {
    Engine g;
    CAPTURE(b.rule, b.dwords[0]);
    CHECK_FALSE(g.run(b.dwords, 1, 40));
    CHECK(g.wait_broke(b.rule));
  }
}

TEST_CASE("SDMA queue registers are latched while the ring runs; F32 must not be halted", "[mock][sdma]") {
  Engine g;
  g.w(kSdmaRbBase, 0x1234);
  CHECK(g.wait_broke("sdma-active-write"));
  CHECK(g.run({}, 1));
  g.w(kSdmaF32, 1);
  CHECK_FALSE(g.run({}, 2, 40));
  g.w(kSdmaF32, 0);
  CHECK(g.wait32(kFenceAt, 2));
  g.w(kGrbmSoftReset, 1u << 23);
  g.w(kGrbmSoftReset, 0);
  CHECK((g.r(kSdmaRbCntl) & 1) == 0);
}

TEST_CASE("a long copy lets registers through and can be reset", "[mock][sdma]") {
  Engine g;
  g.put64(kPdb0 + 8, 0x2600000 | kLeaf | 1ull << 54 | 9 << 7);
  g.put64(kPdb0 + 16, 0x2800000 | kLeaf | 1ull << 54 | 9 << 7);
  g.flush();
  g.invalidate_gc();
  g.put32(0x2600000 + 0x1ffffc, 0x600d);
  CHECK(g.run(copy(kVa + 0x400000, kVa + 0x200000, 0x200000), 1));
  CHECK(g.v32(0x2800000 + 0x1ffffc) == 0x600d);
}

TEST_CASE("the second engine has registers and a doorbell of its own", "[mock][sdma]") {
  Engine g;
  constexpr uint32_t kNext = 0x600;  // SDMA1's registers follow at this distance, F32_CNTL at 0x20
  g.w(kSdmaF32 + 0x20, 0);
  g.w(kSdmaRbBase + kNext, lo(page(4) >> 8));
  g.w(kSdmaRbBaseHi + kNext, hi(page(4) >> 8));
  g.w(kSdmaDoorbellOffset + kNext, 0x202 << 2);
  g.w(kSdmaDoorbell + kNext, 1u << 28);
  g.w(kSdmaRbCntl + kNext, 1 | 10 << 1);
  auto p = fence(0x51);
  for (size_t i = 0; i < p.size(); ++i) g.put32(Rig::data(4, 4 * i), p[i]);
  g.flush();
  g.ring(0x101, 4 * p.size());
  CHECK(g.wait32(kFenceAt, 0x51));
  CHECK(g.run({}, 0x52));  // the first one still works
  g.ring(0x102, 4);        // past the S2A range
  CHECK(g.wait_broke("doorbell-route"));
}
