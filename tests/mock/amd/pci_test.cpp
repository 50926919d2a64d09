// Config space, BARs, resizing, DMA memory, interrupts, and how a card is opened.
#include <set>

#include "drivers/interfaces.hpp"
#include "tests/mock/amd/rig.hpp"

using namespace rig;
using mock::CardState;

TEST_CASE("config space has the identity and the capabilities", "[mock][pci]") {
  auto [arch, id] =
      GENERATE(table<const char*, unsigned>({{"gfx1100", 0x744c}, {"gfx1101", 0x747e}, {"gfx1102", 0x7480}}));
  mock::MockOptions o;
  o.arch = arch;
  Rig g(o);
  CHECK(g.dev->config_read(0, 4) == (id << 16 | 0x1002));
  CHECK(g.dev->id().class_code == 0x030000);
  std::set<unsigned> ids;
  for (unsigned at = g.dev->config_read(0x34, 1); at; at = g.dev->config_read(at + 1, 1))
    ids.insert(g.dev->config_read(at, 1));
  CHECK(ids == std::set<unsigned>{0x01, 0x05, 0x10});  // power management, MSI, PCIe
  std::set<unsigned> ext;
  for (unsigned at = 0x100; at; at = g.dev->config_read(at, 4) >> 20) ext.insert(g.dev->config_read(at, 4) & 0xffff);
  CHECK(ext == std::set<unsigned>{0x0b, 0x15});  // vendor-specific, resizable BAR
}

TEST_CASE("BARs report sizes as PCI does and absent ones cannot be mapped", "[mock][pci]") {
  auto card = mock::make_mock_gpu({});
  auto dev = card->open("MOCK");
  CHECK(dev->bar_info(0).size == 256ull << 20);
  CHECK(dev->bar_info(2).size == 2ull << 20);
  CHECK(dev->bar_info(5).size == 0x80000);
  for (unsigned bar : {1u, 3u, 4u}) {
    CHECK(dev->bar_info(bar).size == 0);
    CHECK_THROWS_AS(dev->map_bar(bar, BarCaching::kUncached), TransportError);
  }
  // All ones give the size: 256 MiB prefetchable 64-bit, and a 32-bit one; absent BARs stay 0.
  dev->config_write(0x10, 4, 0xffffffff);
  CHECK(dev->config_read(0x10, 4) == 0xf000000c);
  dev->config_write(0x24, 4, 0xffffffff);
  CHECK(dev->config_read(0x24, 4) == 0xfff80000);
  dev->config_write(0x20, 4, 0xffffffff);
  CHECK(dev->config_read(0x20, 4) == 0);
  CHECK(dev->config_read(0x30, 4) == 0);  // no expansion ROM
}

TEST_CASE("BAR0 grows to the power of two above VRAM, not while it is in use", "[mock][pci]") {
  auto card = mock::make_mock_gpu({});
  auto dev = card->open("MOCK");
  {
    BarMapping held = dev->map_bar(5, BarCaching::kUncached);
    CHECK_THROWS_AS(dev->resize_bar_to_largest(0), TransportError);
    bool noted = false;
    for (auto& v : card->violations()) noted |= v.rule == "rebar-mapped";
    CHECK(noted);
  }
  CHECK(dev->resize_bar_to_largest(0) == 32ull << 30);
  BarMapping all = dev->map_bar(0, BarCaching::kWriteCombined);
  CHECK(all.size() == 32ull << 30);
  CHECK(all.mmio().read32(24ull << 30) == 0xffffffff);  // past the end of VRAM nothing answers
  CHECK(all.mmio().read32((24ull << 30) - 0x10000) == 0x28211407);
  mock::MockOptions fixed;
  fixed.bar0_resizable = false;
  auto other = mock::make_mock_gpu(fixed);
  CHECK(other->open("MOCK")->resize_bar_to_largest(0) == 256ull << 20);
}

TEST_CASE("the resize control register obeys only with decode off", "[mock][pci]") {
  auto card = mock::make_mock_gpu({});
  auto dev = card->open("MOCK");
  constexpr unsigned kCtrl = 0x208;
  CHECK((dev->config_read(kCtrl, 4) >> 8 & 0x3f) == 8);  // 256 MiB
  CHECK(dev->config_read(0x204, 4) == 0xff000);          // 2^8 .. 2^15 MiB
  dev->config_write(kCtrl, 4, 0x20 | 15 << 8);
  CHECK(dev->bar_info(0).size == 256ull << 20);
  dev->config_write(4, 2, 0);
  dev->config_write(kCtrl, 4, 0x20 | 20 << 8);  // not offered
  CHECK(dev->bar_info(0).size == 256ull << 20);
  dev->config_write(kCtrl, 4, 0x20 | 10 << 8);
  CHECK(dev->bar_info(0).size == 1ull << 30);
}

TEST_CASE("without memory decode or in D3 every read is all ones", "[mock][pci]") {
  Rig g;
  CHECK(g.r(kMemsize) == 24 * 1024);
  SECTION("decode off") { g.dev->config_write(4, 2, 4); }
  SECTION("D3") { g.dev->config_write(0x54, 2, 3); }
  SECTION("BAR moved away") { g.dev->config_write(0x24, 4, 0xe0000000); }
  CHECK(g.r(kMemsize) == 0xffffffff);
  CHECK(g.v32(0) == 0xffffffff);
  CHECK(g.broke("decode-off"));
}

TEST_CASE("BAR5 takes aligned dwords only", "[mock][pci]") {
  Rig g;
  CHECK(uint32_t(g.mmio.mmio().read64(uint64_t{kMemsize - 1} * 4 / 8 * 8)) == g.r((kMemsize - 1) / 2 * 2));
  CHECK(g.broke("unaligned"));
}

TEST_CASE("unknown and read-only registers", "[mock][pci]") {
  Rig g;
  CHECK(g.r(0x777) == 0);
  CHECK(g.broke("unknown-register"));
  g.w(kMemsize, 5);
  CHECK(g.broke("read-only-register"));
  CHECK(g.r(kMemsize) == 24 * 1024);
}

TEST_CASE("registers beyond BAR5 are reached through the byte-addressed RSMU window", "[mock][pci]") {
  Rig g;
  g.rsmu_write(0x10134408, 0x80);  // RCC_DEV0_EPF2_STRAP2
  g.w(kRsmuIndex, 0x10134408);
  CHECK(g.r(kRsmuData) == 0x80);
  g.w(kRsmuIndex, kMemsize * 4);
  CHECK(g.r(kRsmuData) == 24 * 1024);
  CHECK(g.notes() == "");
  g.w(kRsmuIndex, kRsmuData * 4);  // a window does not reach itself
  CHECK(g.r(kRsmuData) == 0);
  CHECK(g.broke("unknown-register"));
}

TEST_CASE("DMA memory: scattered, contiguous, within the mask, rounded to pages", "[mock][pci]") {
  Rig g;
  DmaBuffer a = g.dev->alloc_dma(5 * 4096 + 1, false), b = g.dev->alloc_dma(1 << 20, true);
  CHECK(a.size() == 6 * 4096);
  REQUIRE(a.pages().size() == 6);
  bool contiguous = true;
  for (size_t i = 1; i < 6; ++i) contiguous &= a.pages()[i] - a.pages()[0] == i * 4096;
  CHECK_FALSE(contiguous);
  for (size_t i = 0; i < b.pages().size(); ++i) CHECK(b.pages()[i] - b.pages()[0] == i * 4096);
  for (BusAddress p : a.pages()) CHECK(p.value >> 44 == 0);
  g.dev->set_dma_bits(32);
  CHECK(g.dev->alloc_dma(4096, false).pages()[0].value >> 32 == 0);
  CHECK_THROWS_AS(g.dev->alloc_dma(4 << 20, true), TransportError);
}

TEST_CASE("one opener at a time; there is no function-level reset", "[mock][pci]") {
  Rig g;
  CHECK_THROWS_AS(g.card->open("other"), TransportError);
  CHECK_THROWS_AS(g.dev->reset(), UnsupportedError);
}

TEST_CASE("states in which a card is found", "[mock][pci]") {
  auto [state, sos, version] = GENERATE(table<CardState, uint32_t, uint32_t>({{CardState::kCold, 0, 0},
                                                                              {CardState::kAmdgpu, 1, 0},
                                                                              {CardState::kAm, 1, 0xa0000008},
                                                                              {CardState::kAmDirty, 1, 0xa0000008},
                                                                              {CardState::kStalled, 0, 0}}));
  mock::MockOptions o;
  o.card = state;
  Rig g(o);
  CHECK(g.r(kPsp81) == sos);
  CHECK(g.r(kScratch7) == version);
  CHECK(g.poll(kPsp33, 0x80000000, 0x80000000) == (state != CardState::kStalled));
  CHECK(g.r(0xc046) == (state == CardState::kAmDirty ? 1 : 0));
}

TEST_CASE("a virtual function says so and has no VRAM window", "[mock][pci]") {
  mock::MockOptions o;
  o.card = CardState::kVf;
  Rig g(o);
  CHECK((g.r(0xde5) & 1) == 1);
  CHECK(g.v32(0) == 0xffffffff);
}

TEST_CASE("faults are injected by name and count", "[mock][pci]") {
  mock::MockOptions o = Rig::amdgpu();
  SECTION("surprise removal") {
    o.fault = "all-ones@3";
    Rig g(o);
    CHECK(g.r(kMemsize) == 24 * 1024);
    CHECK(g.r(kMemsize) == 24 * 1024);
    for (int i = 0; i < 3; ++i) CHECK(g.r(kMemsize) == 0xffffffff);
    CHECK(g.v32(0) == 0xffffffff);
    CHECK(g.dev->config_read(0, 4) == 0xffffffff);
  }
  SECTION("opening fails at a step, once") {
    o.fault = "fail-open@2";
    auto card = mock::make_mock_gpu(o);
    auto dev = card->open("MOCK");
    CHECK_THROWS_AS(dev->map_bar(5, BarCaching::kUncached), TransportError);
    CHECK_NOTHROW(dev->map_bar(5, BarCaching::kUncached));
  }
  SECTION("unknown names list the known ones") {
    o.fault = "psp-timeout@1,melt@3";
    try {
      mock::make_mock_gpu(o);
      FAIL("accepted");
    } catch (const UsageError& e) {
      CHECK(std::string(e.what()).find("all-ones@N") != std::string::npos);
    }
    for (const char* bad : {"hang", "hang@", "hang@0", "hang@x"}) {
      o.fault = bad;
      CHECK_THROWS_AS(mock::make_mock_gpu(o), UsageError);
    }
  }
}

TEST_CASE("accesses are counted and traced with register names", "[mock][pci]") {
  Rig g;
  g.card->reset_counters();
  std::vector<std::string> trace;
  g.card->set_trace(&trace);
  g.r(kMemsize);
  g.w(kScratch7, 0x12);
  g.put32(0, 1);
  g.v64(8);
  g.dev->config_read(0, 4);
  g.card->set_trace(nullptr);
  g.r(kMemsize);
  CHECK(trace ==
        std::vector<std::string>{"R RCC_DEV0_EPF0_RCC_CONFIG_MEMSIZE 0xde3 = 0x6000", "W SCRATCH_REG7 0xc047 = 0x12"});
  mock::AccessCounters c = g.card->counters();
  CHECK(c.mmio_reads == 2);
  CHECK(c.mmio_writes == 1);
  CHECK(c.bar0_reads == 1);
  CHECK(c.bar0_writes == 1);
  CHECK(c.config == 1);
}

TEST_CASE("MOCKPCI is a row of the interface table", "[mock][pci]") {
  mock::register_interfaces();
  const PciInterface* row = find_pci_interface("MOCKPCI");
  REQUIRE(row);
  CHECK(row->is_mock);
  DeviceSpec spec;
  spec.kind = "AMD";
  auto found = row->list(spec);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].name == "MOCKPCI+AMD:0");
  CHECK(found[0].usable);
  auto dev = row->open(spec);
  CHECK(dev->name() == "MOCKPCI+AMD:0");
  CHECK_FALSE(dev->firmware_folders().empty());
  CHECK_THROWS_AS(row->open(spec), TransportError);
  spec.arch = "gfx900";
  CHECK_THROWS_AS(row->list(spec), UsageError);
}
