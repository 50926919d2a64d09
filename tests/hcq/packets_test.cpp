// PM4 and SDMA dwords, worked out from Linux nvd.h and sdma_v6_0_0_pkt_open.h, and the rings they go to.
#include <catch2/catch.hpp>
#include <deque>

#include "hcq/amd/queues.hpp"
#include "host_memory.hpp"

using namespace baregpu;
using namespace baregpu::hcq;
using namespace baregpu::hcq::amd;
using Words = std::vector<uint32_t>;

namespace {

Words words(const CommandList& l) { return {l.words().begin(), l.words().end()}; }

const Pm4Target& target() {
  static const Pm4Target t = [] {
    Pm4Target p;
    p.gc = {11, 0, 0};
    p.hdp_flush_req = 0xe26;
    p.hdp_flush_done = 0xe27;
    return p;
  }();
  return t;
}
const SdmaTarget kSdma6{{6, 0, 0}}, kSdma4{{4, 4, 2}};

}  // namespace

TEST_CASE("PM4 packets have the documented dwords", "[hcq][pm4]") {
  Pm4List l(target());
  SECTION("wait: WAIT_REG_MEM, memory space, >=, every 4 clocks x 16") {
    const PatchSlot s = l.poll(GpuVa(0x1'2345'6780), Compare::kGreaterEqual, 9);
    CHECK(words(l) == Words{0xc0053c00, 0x15, 0x23456780, 1, 9, 0xffffffff, 4});
    l.set(s, 10);
    CHECK(l.words()[4] == 10);
  }
  SECTION("signal: RELEASE_MEM, 32-bit data, caches written back") {
    l.signal(GpuVa(0x2000), 5);
    REQUIRE(l.words().size() == 8);
    CHECK(l.words()[0] == 0xc0064900);
    CHECK((l.words()[1] & 0xfff) == 0x514);  // CACHE_FLUSH_AND_INV_TS_EVENT, index 5
    CHECK((l.words()[1] >> 20 & 3) == 3);    // GL2_INV, GL2_WB
    CHECK(l.words()[2] == 1u << 29);
    CHECK(l.words()[3] == 0x2000);
    CHECK(l.words()[5] == 5);
  }
  SECTION("timestamp: RELEASE_MEM, GPU clock") {
    l.timestamp(GpuVa(0x2008));
    CHECK(l.words()[2] == 3u << 29);
    CHECK_THROWS_AS(l.timestamp(GpuVa(0x2004)), Error);
  }
  SECTION("memory barrier: HDP flush by write-wait-write, then all caches") {
    l.memory_barrier();
    REQUIRE(l.words().size() == 7 + 8);
    CHECK(Words(l.words().begin(), l.words().begin() + 7) ==
          Words{0xc0053c00, 0x45, 0xe26, 0xe27, 0xffffffff, 0xffffffff, 4});
    CHECK(l.words()[7] == 0xc0065800);
    const uint32_t gcr = l.words()[14];
    CHECK((gcr & 3) == 1);        // GLI_INV all
    CHECK((gcr >> 14 & 3) == 3);  // GL2 inv, wb
  }
  SECTION("write: WRITE_DATA to memory, confirmed") {
    const uint32_t v[] = {1, 2};
    l.write(GpuVa(0x3000), v);
    CHECK(words(l) == Words{0xc0043700, 0x00100500, 0x3000, 0, 1, 2});
  }
  SECTION("indirect buffer") {
    CHECK(indirect_buffer(GpuVa(0x1'0000'0100), 20) == std::array<uint32_t, 4>{0xc0023f00, 0x100, 1, 20 | 1 << 23});
  }
  SECTION("what the hardware would refuse is refused here") {
    CHECK_THROWS_AS(l.poll(GpuVa(2), Compare::kEqual, 0), Error);
    CHECK_THROWS_AS(l.signal(GpuVa(1), 0), Error);
    CHECK_THROWS_AS(l.copy(GpuVa(0), GpuVa(0), 4), UnsupportedError);
    CHECK(l.words().empty());
  }
}

namespace {

struct KernelFixture {
  KernelInfo info;
  std::string label = "k";
  Kernel kernel{&info, GpuVa(0x2000'0000'1100), GpuVa(0x2000'0000'1000), &label};
  KernelFixture() {
    info.name = "k";
    info.rsrc1 = 0x00ac0041;
    info.rsrc2 = 0x84;
    info.properties = 1 << 3 | 1 << 10;
    info.kernarg_size = 32;
    info.wave32 = true;
    info.group_segment_size = 2048;
  }
  /// The value that the list's SET_SH_REG packets give a register.
  static std::optional<uint32_t> sh(const CommandList& l, uint32_t reg) {
    std::optional<uint32_t> value;
    for (size_t i = 0; i < l.words().size();) {
      const uint32_t header = l.words()[i], count = (header >> 16 & 0x3fff) + 1;
      if ((header >> 8 & 0xff) == 0x76)
        for (uint32_t k = 1; k < count; ++k)
          if (0x2c00 + l.words()[i + 1] + k - 1 == reg) value = l.words()[i + 1 + k];
      i += 1 + count;
    }
    return value;
  }
};

}  // namespace

TEST_CASE("a launch sets the registers that the program needs", "[hcq][pm4]") {
  KernelFixture f;
  Pm4List l(target());
  const ExecSlots slots = l.exec(f.kernel, GpuVa(0x2000'1000'0040), {5, 6, 7}, {16, 4, 1}, 100);
  CHECK(f.sh(l, 0x2e0c) == 0x00000011u);  // PGM_LO: 0x200000001100 >> 8
  CHECK(f.sh(l, 0x2e0d) == 0x20u);
  CHECK(f.sh(l, 0x2e12) == (f.info.rsrc1 | 1u << 20));
  CHECK(f.sh(l, 0x2e13) == (0x84u | 5u << 15));  // 2148 bytes of LDS: five granules of 512
  CHECK(f.sh(l, 0x2e07) == 16u);
  CHECK(f.sh(l, 0x2e08) == 4u);
  CHECK(f.sh(l, 0x2e09) == 1u);
  CHECK(f.sh(l, 0x2e40) == 0x10000040u);  // kernarg pointer in s[0:1]
  CHECK(f.sh(l, 0x2e41) == 0x2000u);
  CHECK(f.sh(l, 0x2e18) == 0u);  // no scratch
  CHECK(l.words()[slots.groups.dword] == 5);
  CHECK(l.words()[slots.groups.dword - 1] == 0xc0031500);  // DISPATCH_DIRECT
  CHECK(l.words()[slots.groups.dword + 3] == 0x8005);      // COMPUTE_SHADER_EN, FORCE_START_AT_000, CS_W32_EN
  l.set(slots.kernargs, 0x2000'2000'0000);
  CHECK(f.sh(l, 0x2e40) == 0x20000000u);
  l.set(slots.groups, {9, 8, 7});
  CHECK(l.words()[slots.groups.dword + 2] == 7);
  CHECK_THROWS_AS(l.set(slots.groups, {0, 1, 1}), Error);
}

TEST_CASE("impossible launches are refused before anything is encoded", "[hcq][pm4]") {
  KernelFixture f;
  Pm4List l(target());
  auto refused = [&](const char* why, GpuVa args, Dim3 groups, Dim3 block, uint32_t lds) {
    CAPTURE(why);
    CHECK_THROWS_AS(l.exec(f.kernel, args, groups, block, lds), Error);
    CHECK(l.words().empty());
  };
  refused("no groups", GpuVa(64), {0, 1, 1}, {}, 0);
  refused("too many work-items", GpuVa(64), {}, {1024, 2, 1}, 0);
  refused("a product that wraps around", GpuVa(64), {}, {0xffffffff, 0xffffffff, 1}, 0);
  refused("LDS", GpuVa(64), {}, {64}, 64 * 1024);
  refused("misaligned arguments", GpuVa(68), {}, {64}, 0);
  f.info.max_flat_workgroup_size = 64;
  refused("more than the kernel was compiled for", GpuVa(64), {}, {65}, 0);
  f.info.reqd_workgroup_size = {16, 16, 1};
  f.info.max_flat_workgroup_size = 256;
  refused("not the required size", GpuVa(64), {}, {256}, 0);
  f.info.reqd_workgroup_size = {};
  f.info.private_segment_size = 16;
  refused("scratch was not set up", GpuVa(64), {}, {64}, 0);
  f.info.private_segment_size = 0;
  f.info.properties |= 1 << 2;  // queue pointer: nothing to point to
  refused("unsupported user SGPRs", GpuVa(64), {}, {64}, 0);
}

TEST_CASE("SDMA packets have the documented dwords", "[hcq][sdma]") {
  SdmaList l(kSdma6);
  SECTION("copy") {
    l.copy(GpuVa(0x1'0000'0000), GpuVa(0x2'0000'0040), 100);
    CHECK(words(l) == Words{1, 99, 0, 0x40, 2, 0, 1});
  }
  SECTION("fence: uncached from SDMA 5 on") {
    l.signal(GpuVa(0x1000), 7);
    CHECK(words(l) == Words{0x00030005, 0x1000, 0, 7});
    SdmaList old(kSdma4);
    old.signal(GpuVa(0x1000), 7);
    CHECK(old.words()[0] == 5);
  }
  SECTION("poll memory, >=") {
    l.poll(GpuVa(0x1000), Compare::kGreaterEqual, 7);
    CHECK(words(l) == Words{0xd0000008, 0x1000, 0, 7, 0xffffffff, 0x0fff0004});
  }
  SECTION("timestamp") {
    l.timestamp(GpuVa(0x40));
    CHECK(words(l) == Words{0x20d, 0x40, 0});
  }
  SECTION("write") {
    const uint32_t v[] = {8, 9};
    l.write(GpuVa(0x40), v);
    CHECK(words(l) == Words{2, 0x40, 0, 1, 8, 9});
  }
  SECTION("copies are split at the engine's limit") {
    auto [t, limit] = GENERATE(table<const SdmaTarget*, uint64_t>({{&kSdma6, 1u << 30}, {&kSdma4, 1u << 22}}));
    SdmaList s(*t);
    s.copy(GpuVa(0x10'0000'0000), GpuVa(0x20'0000'0000), 2 * limit + 1);
    REQUIRE(s.words().size() == 21);
    CHECK(s.words()[1] == limit - 1);
    CHECK(s.words()[15] == 0);  // one byte
    CHECK(s.words()[17] == 2 * limit % (uint64_t{1} << 32));
  }
}

namespace {

/// A queue over host memory with a consumer that the test steps.
struct RingFixture {
  test::HostMemory memory;
  test::HostTimeline t;
  Allocator allocator{memory, t.timeline};
  uint64_t bell = 0;
  std::deque<TimelinePoint> pending;
  int waits = 0, flushes = 0;
  bool flushed_after_pointer = true;
  std::unique_ptr<AmdQueue> queue;
  static constexpr uint64_t kBytes = 4096;

  explicit RingFixture(QueueKind kind) {
    QueueMemory m{allocator.allocate(kBytes, BufferKind::kHost, true),
                  allocator.allocate(4096, BufferKind::kHost, true)};
    QueueHooks hooks{[this](const TimelinePoint& p) {
                       ++waits;
                       complete(p);
                     },
                     [this] {
                       ++flushes;
                       // The order of the submit protocol: write pointer, HDP flush, doorbell.
                       flushed_after_pointer &= queue->memory().pointers.cpu().read64(QueueMemory::kWptr) != bell;
                     }};
    if (kind == QueueKind::kCompute)
      queue = make_pm4_queue(std::move(m), Mmio(&bell, 8), hooks, target());
    else
      queue = make_sdma_queue(std::move(m), Mmio(&bell, 8), hooks, kSdma6);
  }
  void complete(const TimelinePoint& p) {
    while (!pending.empty() && pending.front().count <= p.count) {
      t.signal(pending.front());
      pending.pop_front();
    }
  }
  TimelinePoint submit(const CommandList& l) {
    const TimelinePoint p = t.timeline.next();
    queue->submit(l, p);
    pending.push_back(p);
    return p;
  }
  uint32_t word(uint64_t i) const { return queue->memory().ring.cpu().read32(i % (kBytes / 4) * 4); }
};

}  // namespace

TEST_CASE("PM4 words wrap around the ring and every submission rings with its pointer", "[hcq][ring]") {
  RingFixture f(QueueKind::kCompute);
  uint64_t put = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    Pm4List l(target());
    l.poll(GpuVa(0x1000), Compare::kEqual, i);
    f.submit(l);
    for (uint64_t k = 0; k < 7; ++k) REQUIRE(f.word(put + k) == l.words()[k]);
    put += 7;
    REQUIRE(f.bell == put);
    // Nothing that is still pending may have been overwritten.
    REQUIRE(f.pending.size() * 7 < f.kBytes / 4);
  }
  CHECK(f.waits > 0);
  CHECK(f.flushes == 3000);
  CHECK(f.flushed_after_pointer);
}

TEST_CASE("an SDMA packet never crosses the ring's end, and each is seen once and in order", "[hcq][ring]") {
  RingFixture f(QueueKind::kCopy);
  uint64_t get = 0;
  uint32_t next = 0;
  auto drain = [&] {  // the engine's view: byte pointers, NOPs skipped, packets in one piece
    while (get * 4 < f.bell) {
      const uint32_t header = f.word(get);
      if (header == 0) {
        ++get;
        continue;
      }
      REQUIRE((header & 0xff) == 1);
      REQUIRE(get % (f.kBytes / 4) + 7 <= f.kBytes / 4);
      REQUIRE(f.word(get + 1) == next++ % 1000);
      get += 7;
    }
    REQUIRE(get * 4 == f.bell);
  };
  for (uint32_t i = 0; i < 2000; ++i) {
    SdmaList l(kSdma6);
    l.copy(GpuVa(0), GpuVa(0x10000), i % 1000 + 1);
    f.submit(l);
    drain();
  }
  CHECK(next == 2000);
}

TEST_CASE("bound lists cost one packet in the ring", "[hcq][ring]") {
  SECTION("compute: four dwords") {
    RingFixture f(QueueKind::kCompute);
    Pm4List l(target());
    for (int i = 0; i < 200; ++i) l.poll(GpuVa(0x1000), Compare::kEqual, 1);
    CHECK_THROWS_AS(f.submit(l), Error);  // 1400 dwords do not fit a quarter of 1024
    l.bind(f.allocator);
    f.submit(l);
    CHECK(f.bell == 4);
    CHECK(f.word(0) == 0xc0023f00);
    CHECK(f.word(3) == (1400u | 1u << 23));
  }
  SECTION("copy: INDIRECT ends on a multiple of eight dwords, wherever the ring stands") {
    RingFixture f(QueueKind::kCopy);
    SdmaList bound(kSdma6);
    bound.copy(GpuVa(0), GpuVa(0x10000), 16);
    bound.bind(f.allocator);
    CHECK(bound.words().size() % 8 == 0);
    CHECK(bound.bound_va().value % 32 == 0);
    for (int i = 0; i < 1000; ++i) {
      SdmaList l(kSdma6);
      if (i % 3)
        l.signal(GpuVa(0x1000), 1);
      else
        l.timestamp(GpuVa(0x40));
      f.submit(l);
      f.submit(bound);
      const uint64_t end = f.bell / 4;
      REQUIRE(end % 8 == 0);
      REQUIRE(f.word(end - 6) == 4);
      REQUIRE(f.word(end - 3) == bound.words().size());
    }
  }
}

TEST_CASE("a list goes only to a queue of its kind, and not empty", "[hcq][ring]") {
  RingFixture f(QueueKind::kCompute);
  SdmaList s(kSdma6);
  s.signal(GpuVa(0x1000), 1);
  CHECK_THROWS_AS(f.submit(s), Error);
  Pm4List empty(target());
  CHECK_THROWS_AS(f.submit(empty), Error);
  CHECK(f.bell == 0);
}
