// HDP, page walks, TLBs, faults: what engines see of memory. The copy engine is the probe.
#include "tests/mock/amd/rig.hpp"

using namespace rig;

namespace {

std::vector<uint32_t> copy(uint64_t dst, uint64_t src, uint32_t bytes) {
  return {1, bytes - 1, 0, lo(src), hi(src), lo(dst), hi(dst)};
}
std::vector<uint32_t> fence(uint64_t va, uint32_t value) { return {5 | 3 << 16, lo(va), hi(va), value}; }
constexpr uint64_t kFence = page(kDataPage + 7);

/// Copies one dword by SDMA and returns what arrived.
uint32_t probe(Rig& g, uint64_t src) {
  static uint32_t seq = 100;
  ++seq;
  g.submit_sdma(copy(page(kDataPage + 6), src, 4) + fence(kFence, seq));
  REQUIRE(g.wait32(Rig::data(kDataPage + 7), seq));
  return g.v32(Rig::data(kDataPage + 6));
}

struct Probe : Rig {
  explicit Probe(mock::MockOptions o = amdgpu(), uint32_t cntl = 0x01fffe07) : Rig(o) {
    setup_memory(cntl);
    setup_ih();
    setup_sdma();
  }
};

}  // namespace

TEST_CASE("the frame buffer sits where the VBIOS put it", "[mock][memory]") {
  Rig g;
  CHECK(uint64_t{g.r(0x1a8ec) & 0xffffff} << 24 == kFb);
  CHECK(uint64_t{g.r(0x1a8ed) & 0xffffff} << 24 == kFb + (24ull << 30));
}

TEST_CASE("MM_INDEX reaches VRAM beyond the BAR and bypasses the HDP", "[mock][memory]") {
  Rig g;
  const uint64_t at = (24ull << 30) - 0x10000;
  g.w(kMmIndexHi, uint32_t(at >> 31));
  g.w(kMmIndex, uint32_t(at & 0x7fffffff) | 0x80000000);
  CHECK(g.r(kMmData) == 0x28211407);
  g.w(kMmIndexHi, 0);
  g.w(kMmIndex, 0x80200000);
  g.w(kMmData, 0x11223344);
  CHECK(g.v32(0x200000) == 0x11223344);
}

TEST_CASE("engines do not see bytes written through BAR0 before a flush", "[mock][memory]") {
  Probe g;
  g.put32(Rig::data(kDataPage), 1);
  g.flush();
  g.put32(Rig::data(kDataPage), 2);
  CHECK(g.v32(Rig::data(kDataPage)) == 2);  // the CPU sees its own write
  // The ring is written around the buffer, so that nothing flushes by the way.
  auto words = copy(page(kDataPage + 6), page(kDataPage), 4) + fence(kFence, 9);
  for (size_t i = 0; i < words.size(); ++i) {
    g.w(kMmIndexHi, 0);
    g.w(kMmIndex, uint32_t(Rig::data(kSdmaRingPage, 4 * i)) | 0x80000000);
    g.w(kMmData, words[i]);
  }
  g.sdma_put = words.size() * 4;
  g.ring(0x100, g.sdma_put);
  REQUIRE(g.wait32(Rig::data(kDataPage + 7), 9));
  CHECK(g.v32(Rig::data(kDataPage + 6)) == 1);
  CHECK(g.broke("hdp-stale-read"));
  CHECK(probe(g, page(kDataPage)) == 2);  // probe() flushes
}

TEST_CASE("what engines write, the CPU reads without any action", "[mock][memory]") {
  Probe g;
  g.put32(Rig::data(kDataPage), 77);
  CHECK(probe(g, page(kDataPage)) == 77);
  CHECK(g.notes() == "");
}

TEST_CASE("HDP flush: the register of the remap, and the one for engines", "[mock][memory]") {
  Probe g;
  CHECK(g.r(0xe4d) == 0x7f000);  // what the VBIOS left in REMAP_HDP_MEM_FLUSH_CNTL
  g.w(kHdpReq, 0xffffffff);
  CHECK(g.r(kHdpDone) == 0xffffffff);
  g.w(0, 0);  // "flush" through a remap that was never read
  CHECK(g.broke("hdp-null-remap"));
}

TEST_CASE("a page walk follows gfx11's formats", "[mock][memory]") {
  Probe g;
  g.put32(0x2600000 + 0x12340, 0xcafe);
  SECTION("2 MiB page in PDB0: bit 54") {
    g.put64(kPdb0 + 8, 0x2600000 | kLeaf | 1ull << 54 | 9 << 7);
    CHECK(probe(g, kVa + 0x200000 + 0x12340) == 0xcafe);
  }
  SECTION("1 GiB page in PDB1") {
    g.put64(kPdb1 + 8, kLeaf | 1ull << 54 | 18 << 7);
    CHECK(probe(g, kVa + (1ull << 30) + 0x2600000 + 0x12340) == 0xcafe);
  }
  SECTION("a host page") {
    DmaBuffer host = g.dev->alloc_dma(8192, false);
    g.map(40, host.pages()[1].value | kSystemLeaf);
    std::memcpy(host.cpu() + 4096 + 8, "\x78\x56\x34\x12", 4);
    CHECK(probe(g, page(40) + 8) == 0x12345678);
    CHECK(g.notes() == "");
  }
  SECTION("a partially resident page reads as 0") {
    g.map(40, 1ull << 51);
    CHECK(probe(g, page(40)) == 0);
    CHECK(g.r(kGcFaultStatus) == 0);
  }
  SECTION("the system aperture") { CHECK(probe(g, kFb + 0x2600000 + 0x12340) == 0xcafe); }
  SECTION("a reserved MTYPE and a wide address are noted") {
    g.map(40, Rig::data(kDataPage) | kLeaf | 5ull << 48);
    probe(g, page(40));
    CHECK(g.broke("pte-format"));
  }
}

TEST_CASE("a translation stays until it is invalidated", "[mock][memory]") {
  Probe g;
  g.put32(Rig::data(30), 30);
  g.put32(Rig::data(31), 31);
  CHECK(probe(g, page(30)) == 30);
  g.map(30, Rig::data(31) | kLeaf);
  CHECK(probe(g, page(30)) == 30);
  CHECK(g.broke("stale-translation"));
  g.card->clear_violations();
  SECTION("a request without L1_PTES leaves the TLB") {
    CHECK(g.invalidate_gc(0x00780001));
    CHECK(probe(g, page(30)) == 30);
  }
  SECTION("an engine without a range acknowledges and clears nothing") {
    g.w(0x2951, 0), g.w(0x2952, 0);
    CHECK(g.invalidate_gc());
    CHECK(g.broke("tlb-range"));
    g.w(0x2951, 0xffffffff), g.w(0x2952, 0x1f);
    CHECK(probe(g, page(30)) == 30);
  }
  SECTION("another VMID's request too") {
    g.w(kGcReq, 0x00f80002);
    CHECK(g.poll(kGcAck, 2, 2));
    CHECK(probe(g, page(30)) == 30);
  }
  CHECK(g.broke("stale-translation"));
  g.card->clear_violations();
  CHECK(g.invalidate_gc());
  CHECK(probe(g, page(30)) == 31);
  CHECK(g.notes() == "");
}

TEST_CASE("invalid entries are cached too: the walker keeps whole lines", "[mock][memory]") {
  Probe g;
  g.map(41, 0);
  g.flush();
  g.invalidate_gc();
  g.put32(Rig::data(41), 41);
  CHECK(probe(g, page(40)) == 0);  // same 64-byte line of the table
  g.map(41, Rig::data(41) | kLeaf);
  CHECK(probe(g, page(41)) == 0);  // the default page
  CHECK(g.broke("stale-translation"));
  CHECK((g.r(kGcFaultLo) == lo(page(41) >> 12)));
  g.invalidate_gc();
  CHECK(probe(g, page(41)) == 41);
}

TEST_CASE("a fragment promises a contiguous run", "[mock][memory]") {
  Probe g;
  // Pages 32..35 claim 16 KiB, but 33 is somewhere else.
  for (unsigned i = 32; i < 36; ++i) g.map(i, (i == 33 ? Rig::data(50) : Rig::data(i)) | kLeaf | 2 << 7);
  g.put32(Rig::data(33), 33);
  g.put32(Rig::data(50), 50);
  g.flush();
  g.invalidate_gc();
  probe(g, page(32));
  CHECK(probe(g, page(33)) == 33);
  CHECK(g.broke("pte-fragment"));
}

TEST_CASE("invalidate requests: semaphore on the MM hub, no answer from a hub that is off", "[mock][memory]") {
  Rig g;
  g.w(kGcReq, 0xf80001);
  CHECK_FALSE(g.poll(kGcAck, 1, 1));  // L1 TLB is not enabled
  g.setup_memory();
  g.w(kMmReq, 0xf80001);
  CHECK_FALSE(g.poll(kMmAck, 1, 1));
  CHECK(g.broke("tlb-semaphore"));
  CHECK(g.poll(kMmSem, 1, 1));
  g.w(kMmReq, 0xf80001);
  CHECK(g.poll(kMmAck, 1, 1));
  CHECK_FALSE(g.poll(kMmSem, 1, 1));  // still held
  g.w(kMmSem, 0);
  CHECK(g.poll(kMmSem, 1, 1));
}

TEST_CASE("a fault is latched, reported, and completes on the default page", "[mock][memory]") {
  Probe g;
  g.put32(kDefaultPage, 0xdef);
  const uint64_t bad = page(100);
  CHECK(probe(g, bad) == 0xdef);
  const uint32_t status = g.r(kGcFaultStatus);
  CHECK((status & 1) == 0);
  CHECK((status >> 18 & 1) == 0);  // a read
  CHECK(((uint64_t{g.r(kGcFaultHi)} << 32 | g.r(kGcFaultLo)) << 12) == bad);
  auto ivs = g.interrupts();
  REQUIRE(ivs.size() == 1);
  CHECK(ivs[0].client == 10);
  CHECK(ivs[0].source == 0);
  CHECK((uint64_t{ivs[0].ctx0} << 12 | uint64_t{ivs[0].ctx1 & 0xf} << 44) == bad);
  // Later faults only say that there were more, until the latch is cleared.
  probe(g, page(101));
  CHECK((g.r(kGcFaultStatus) & 1) == 1);
  CHECK(g.r(kGcFaultLo) == lo(bad >> 12));
  g.w(kGcFaultCntl, 1);
  CHECK(g.r(kGcFaultStatus) == 0);
  probe(g, page(101));
  CHECK(g.r(kGcFaultLo) == lo(page(101) >> 12));
  CHECK(g.notes() == "");
}

TEST_CASE("rights are checked, and addresses outside the range fault", "[mock][memory]") {
  Probe g;
  g.map(40, Rig::data(40) | 0x51);  // no READABLE
  probe(g, page(40));
  CHECK((g.r(kGcFaultStatus) >> 4 & 0xf) == 1);
  g.w(kGcFaultCntl, 1);
  probe(g, kVa - 4096);
  CHECK(g.r(kGcFaultLo) == lo((kVa - 4096) >> 12));
}

TEST_CASE("without a default page the engine hangs at a fault", "[mock][memory]") {
  Probe g(Rig::amdgpu(), 0x7);
  g.submit_sdma(copy(page(kDataPage), page(100), 4) + fence(kFence, 5));
  CHECK_FALSE(g.wait([&] { return g.v32(Rig::data(kDataPage + 7)) == 5; }, 50));
  CHECK(g.r(kGcFaultStatus) != 0);
}

TEST_CASE("bus addresses lead somewhere only while pinned and with bus mastering on", "[mock][memory]") {
  Probe g;
  auto host = std::make_unique<DmaBuffer>(g.dev->alloc_dma(4096, false));
  g.map(40, host->pages()[0].value | kSystemLeaf);
  g.flush();
  SECTION("freed") {
    host.reset();
    CHECK(probe(g, page(40)) == 0xffffffff);
    CHECK(g.broke("dma-unmapped"));
  }
  SECTION("bus master off") {
    g.dev->set_bus_master(false);
    CHECK(probe(g, page(40)) == 0xffffffff);
    CHECK(g.broke("bus-master-off"));
  }
}

TEST_CASE("injected page faults and lenient rules", "[mock][memory]") {
  mock::MockOptions o = Rig::amdgpu();
  SECTION("page-fault@N") {
    o.fault = "page-fault@5";
    Probe g(o);
    for (unsigned i = 0; i < 6; ++i) g.submit_sdma(fence(kFence, i));
    CHECK(g.wait([&] { return g.r(kGcFaultStatus) != 0; }));
  }
  SECTION("lenient TLB") {
    Probe g(o);
    g.card->set_lenient("stale-translation", true);
    g.put32(Rig::data(31), 31);
    probe(g, page(30));
    g.map(30, Rig::data(31) | kLeaf);
    CHECK(probe(g, page(30)) == 31);
    CHECK(g.notes() == "");
    CHECK_THROWS_AS(g.card->set_lenient("no-such-rule", true), UsageError);
  }
}
