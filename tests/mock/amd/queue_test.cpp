// Compute queues as hardware objects: set-up, doorbells, faults, teardown, interrupts.
#include "tests/mock/amd/rig.hpp"

using namespace rig;
using mock::isa::Access;
using mock::isa::DispatchResult;
using mock::isa::FaultKind;

TEST_CASE("wave faults: page fault, illegal instruction, memory violation", "[mock][compute]") {
  auto kind = GENERATE(FaultKind::kPageFault, FaultKind::kPermission, FaultKind::kIllegalInstruction,
                       FaultKind::kMemoryViolation);
  Queue g;
  g.cores->run = [&](auto&, auto&, auto&) {
    DispatchResult r;
    r.fault.kind = kind;
    r.fault.access = Access::kWrite;
    r.fault.address = page(100);
    r.fault.wave = 3;
    return r;
  };
  CHECK(g.hangs(dispatch(page(kCodePage), 1)));
  REQUIRE(g.wait([&] { return g.r(kIhWptr) != 0; }));
  auto iv = g.interrupts();
  REQUIRE(iv.size() == 1);
  if (kind == FaultKind::kPageFault || kind == FaultKind::kPermission) {
    CHECK(iv[0].client == 10);
    CHECK(iv[0].source == 0);
    CHECK((g.r(kGcFaultStatus) >> 18 & 1) == 1);
    CHECK((g.r(kGcFaultStatus) >> 4 & 0xf) == (kind == FaultKind::kPermission ? 2 : 0));
  } else {
    CHECK(iv[0].client == 20);
    CHECK(iv[0].source == 239);
    CHECK((iv[0].ctx1 >> 6 & 3) == 2);  // encoding: error
    CHECK((iv[0].ctx0 >> 21 & 0xf) == (kind == FaultKind::kMemoryViolation ? 2 : 1));
    CHECK(iv[0].ctx0 >> 27 == 3);
  }
  // The queue is stuck: a dequeue never completes, a reset of the micro engine ends it.
  g.dequeue(2);
  CHECK(g.active());
  g.w(kGrbmSoftReset, 1 | 1 << 18);
  g.w(kGrbmSoftReset, 0);
  CHECK_FALSE(g.active());
  g.cores->run = nullptr;
  g.setup_compute();
  g.put32(kDoneAt, 0);
  CHECK(g.run(dispatch(page(kCodePage), 1), 77));
}

TEST_CASE("an endless kernel ends by a dequeue that resets waves", "[mock][compute]") {
  Queue g;
  g.cores->run = [](auto&, auto&, const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    DispatchResult r;
    r.cancelled = true;
    return r;
  };
  g.submit(dispatch(page(kCodePage), 1));
  REQUIRE(g.wait([&] { return g.cores->runs == 1; }));
  g.dequeue(1);  // drain: waits for the shader
  CHECK(g.active());
  g.dequeue(2);
  CHECK(g.wait([&] { return !g.active(); }));
}

TEST_CASE("doorbells: range, route, aperture, pointers, nobody listening", "[mock][compute]") {
  Queue g;
  SECTION("no queue at that index") {
    g.ring(5, 4);
    CHECK(g.wait_broke("doorbell-without-queue"));
  }
  SECTION("outside the micro engine's range") {
    g.w(kMecRangeUpper, 0x10);
    g.ring(3, 4);
    CHECK(g.wait_broke("doorbell-without-queue"));
  }
  SECTION("aperture off") {
    g.w(kDoorbellAperEn, 0);
    g.ring(3, 4);
    CHECK(g.wait_broke("doorbell-route"));
  }
  SECTION("no S2A entry") {
    g.rsmu_write(kS2aEntry0, 0);
    g.ring(3, 4);
    CHECK(g.wait_broke("doorbell-route"));
  }
  SECTION("write pointers that make no sense are ignored") {
    CHECK(g.run({}, 1));
    g.ring(3, 2);
    CHECK(g.wait_broke("queue-wptr"));
    g.card->clear_violations();
    g.ring(3, 5000);
    CHECK(g.wait_broke("queue-wptr"));
    CHECK(g.run({}, 2));
  }
  SECTION("an inactive queue") {
    g.dequeue(1);
    CHECK_FALSE(g.active());
    g.ring(3, 4);
    CHECK(g.wait_broke("doorbell-without-queue"));
  }
  CHECK(g.card->counters().doorbells >= 1);
}

TEST_CASE("queue registers are banked and latched", "[mock][compute]") {
  Queue g;
  g.w(kGrbmGfxCntl, 4 | 1 << 8);  // queue 1
  CHECK(g.r(kHqdActive) == 0);
  CHECK(g.r(kHqd) == 0);
  g.w(kGrbmGfxCntl, 4);
  CHECK(g.r(kHqd) == lo(kFb + kMqd));
  g.w(kHqd + 8, 0x1234);
  CHECK(g.wait_broke("hqd-active-write"));
  CHECK(g.r(kHqd + 8) == lo(page(kRingPage) >> 8));
  g.w(kGrbmGfxCntl, 0);
}

TEST_CASE("the micro engine must be started, the MQD be right, the EOP buffer be there", "[mock][compute]") {
  SECTION("halted") {
    Queue g;
    g.w(kMecCntl, 1u << 30 | 1 << 26);
    CHECK(g.hangs({}));
    CHECK(g.wait_broke("mec-not-started"));
  }
  SECTION("wrong start address") {
    Queue g;
    g.w(kGrbmGfxCntl, 4), g.w(kMecStartLo, 0x1000), g.w(kGrbmGfxCntl, 0);
    g.w(kMecCntl, 0x10000), g.w(kMecCntl, 0);
    CHECK(g.wait_broke("mec-not-started"));
  }
  SECTION("an MQD without its header") {
    Queue g;
    g.put32(kMqd, 0);
    g.flush();
    CHECK(g.hangs({}));
    CHECK(g.wait_broke("mqd-image"));
  }
  SECTION("an MQD that was not flushed") {
    Queue g;
    g.put32(kMqd, 0xc0310800);
    g.submit({kNop1}, false);
    CHECK(g.wait_broke("hdp-stale-read"));
  }
  SECTION("no EOP buffer") {
    Queue g(Rig::amdgpu(), 0);
    CHECK(g.hangs({}));
    CHECK(g.r(kGcFaultStatus) != 0);
    CHECK(g.r(kGcFaultLo) == lo(page(kEopPage) >> 12));
  }
}

TEST_CASE("stale ring contents: no flush before the doorbell", "[mock][compute]") {
  Queue g;
  CHECK(g.run({}, 1));
  g.submit(release(kDone, 2), false);
  CHECK(g.wait_broke("hdp-stale-read"));
  CHECK(g.v32(kDoneAt) == 1);
}

TEST_CASE("the interrupt ring: pointer unit, overflow, MSI only with everything on", "[mock][ih]") {
  Queue g;
  g.setup_ih(5);  // 32 dwords: 4 entries
  g.w(kIhRptr, 3);
  CHECK(g.wait_broke("ih-rptr-unit"));
  g.w(kIhRptr, 0);
  std::vector<uint32_t> many;
  for (int i = 0; i < 5; ++i) many = many + release(kDone, 1, 1);
  CHECK(g.run(many, 9));
  CHECK(g.wait_broke("ih-overflow"));
  CHECK((g.r(kIhWptr) & 1) == 1);
  g.w(kIhCntl, g.r(kIhCntl) | 1u << 31);
  CHECK((g.r(kIhWptr) & 1) == 0);
  while (g.dev->wait_interrupt(std::chrono::milliseconds(1))) {
  }
  g.setup_ih();
  g.dev->set_bus_master(false);
  CHECK(g.run(release(kDone, 10, 1), 11));
  CHECK_FALSE(g.dev->wait_interrupt(std::chrono::milliseconds(20)));
  CHECK(g.interrupts().size() == 1);  // in the ring all the same: it is in VRAM
}

TEST_CASE("injected hangs and a lost interrupt message", "[mock][compute]") {
  mock::MockOptions o = Rig::amdgpu();
  o.fault = "hang@3,msi-lost@1";
  Queue g(o);
  g.submit(release(kDone, 1, 1));
  REQUIRE(g.wait32(kDoneAt, 1));
  CHECK_FALSE(g.dev->wait_interrupt(std::chrono::milliseconds(20)));
  CHECK(g.run({}, 2));
  CHECK(g.hangs({}));
}

TEST_CASE("mode1 during work ends it, and the card boots cold", "[mock][reset]") {
  Queue g;
  g.cores->run = [](auto&, auto&, const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::yield();
    DispatchResult r;
    r.cancelled = true;
    return r;
  };
  g.submit(dispatch(page(kCodePage), 1));
  REQUIRE(g.wait([&] { return g.cores->runs == 1; }));
  g.w(kSmuDebugMsg, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  g.dev->config_write(0x10, 4, 0xc), g.dev->config_write(0x14, 4, 0x180);
  g.dev->config_write(0x18, 4, 0xc), g.dev->config_write(0x1c, 4, 0x190);
  g.dev->config_write(0x24, 4, 0xf0000000);
  g.dev->set_bus_master(true);
  CHECK(g.r(kPsp81) == 0);
  CHECK(g.r(kHqdActive) == 0);
}

TEST_CASE("host memory that is freed under a running kernel stays until the kernel ends", "[mock][queue]") {
  Queue g;
  auto host = std::make_unique<DmaBuffer>(g.dev->alloc_dma(4096, false));
  g.map(40, host->pages()[0].value | kSystemLeaf);
  g.flush();
  std::atomic<bool> go{false};
  g.cores->run = [&](auto&, mock::isa::AddressSpace& m, const std::atomic<bool>&) {
    auto t = m.translate(page(40), Access::kWrite);
    const uint64_t generation = m.generation();
    while (!go) std::this_thread::yield();
    t.host[0] = std::byte{1};  // through an address from before
    CHECK(m.generation() != generation);
    CHECK_FALSE(m.translate(page(40), Access::kWrite).valid);
    DispatchResult r;
    r.completed = true;
    return r;
  };
  g.submit(dispatch(page(kCodePage), 1) + release(kDone, 3));
  REQUIRE(g.wait([&] { return g.cores->runs == 1; }));
  host.reset();
  go = true;
  CHECK(g.wait32(kDoneAt, 3));
  CHECK(g.wait_broke("dma-unmapped"));
}

TEST_CASE("arguments that were not flushed are noted, an executor's exception hangs the queue only", "[mock][queue]") {
  Queue g;
  SECTION("arguments") {
    CHECK(g.run({}, 1));
    // The ring and its packets first, then the arguments: the doorbell follows without a flush.
    g.submit({kNop1});
    CHECK(g.run({}, 2));
    auto p = dispatch(page(kCodePage), 1);
    for (uint32_t d : p) g.put32(Rig::data(kRingPage, g.compute_put++ % 1024 * 4), d);
    g.flush();
    g.put32(Rig::data(kDataPage), 0x77);
    g.ring(3, g.compute_put);
    CHECK(g.wait_broke("hdp-stale-read"));
  }
  SECTION("exception") {
    g.cores->run = [](auto&, auto&, auto&) -> DispatchResult { throw std::runtime_error("boom"); };
    CHECK(g.hangs(dispatch(page(kCodePage), 1)));
    CHECK(g.wait_broke("dispatch-state"));
  }
}
