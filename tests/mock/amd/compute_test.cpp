// Compute queues by hand-made dwords: set-up, packets, visibility, refusals, hangs, teardown.
#include "tests/mock/amd/rig.hpp"

using namespace rig;
using mock::isa::Access;
using mock::isa::DispatchResult;
using mock::isa::FaultKind;

TEST_CASE("a queue runs packets and writes its fence, also across the ring's end", "[mock][compute]") {
  Queue g;
  CHECK(g.run({kNop1}, 1));
  for (uint32_t i = 2; i < 300; ++i) {
    CAPTURE(i, g.compute_put, g.notes());
    REQUIRE(g.run(std::vector<uint32_t>(i % 7, kNop1), i));
  }
  CHECK(g.compute_put > 1024);
  CHECK(g.v32(Rig::data(kPointerPage, 0x80)) == g.compute_put % 1024);  // the read pointer, modulo the ring
  CHECK(g.notes() == "");
}

TEST_CASE("RELEASE_MEM: data, clock, interrupt", "[mock][compute]") {
  Queue g;
  CHECK(g.run({}, 5));
  g.submit(release(kDone, 6, 2));
  REQUIRE(g.wait32(kDoneAt, 6));
  REQUIRE(g.wait([&] { return g.r(kIhWptr) != 0; }));
  auto iv = g.interrupts();
  REQUIRE(iv.size() == 1);
  CHECK(iv[0].client == 20);
  CHECK(iv[0].source == 181);
  CHECK(iv[0].ctx0 == 0xabc);
  CHECK(g.dev->wait_interrupt(std::chrono::milliseconds(500)));
  CHECK_FALSE(g.dev->wait_interrupt(std::chrono::milliseconds(1)));
  // Two stamps, 20 ms apart: 100 MHz.
  auto stamp = [&](uint64_t byte, uint32_t value) {
    auto p = release(page(kDataPage + 2) + byte, 0);
    p[2] = 3u << 29;
    REQUIRE(g.run(p, value));
  };
  stamp(0, 7);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stamp(8, 8);
  const uint64_t ticks = g.v64(Rig::data(kDataPage + 2, 8)) - g.v64(Rig::data(kDataPage + 2));
  CHECK(ticks >= 2'000'000);
  CHECK(ticks < 200'000'000);
  CHECK(g.notes() == "");
}

TEST_CASE("WRITE_DATA, COPY_DATA, WAIT_REG_MEM and SET_UCONFIG_REG", "[mock][compute]") {
  Queue g;
  const uint64_t a = page(kDataPage + 2), b = page(kDataPage + 3);
  CHECK(g.run({pm4(0x37, 5), 5 << 8 | 1 << 20,
               lo(a),        hi(a),
               0x11,         0x22,  // WRITE_DATA
               pm4(0x40, 5), 2 | 2 << 8 | 1 << 16,
               lo(a),        hi(a),
               lo(b),        hi(b),  // COPY_DATA, 64 bits
               pm4(0x79, 2), 0x47,
               0xfeed,  // SCRATCH_REG7
               pm4(0x40, 5), 4 | 2 << 8,
               0xc047,       0,
               lo(b + 8),    hi(b)},
              1));  // register to memory
  CHECK(g.v64(Rig::data(kDataPage + 3)) == 0x22'00000011ull);
  CHECK(g.v32(Rig::data(kDataPage + 3, 8)) == 0xfeed);
  CHECK(g.r(kScratch7) == 0xfeed);
  // A wait holds the queue until memory changes: by the CPU, through the HDP.
  CHECK_FALSE(g.run({pm4(0x3c, 6), 5 | 1 << 4, lo(a + 16), hi(a), 3, 0xffffffff, 4}, 2, 30));
  g.put32(Rig::data(kDataPage + 2, 16), 4);
  g.flush();
  CHECK(g.wait32(kDoneAt, 2));
  // Write-wait-write on the HDP flush registers: bytes that wait in the buffer get through.
  g.put32(Rig::data(kDataPage + 4), 0x77);
  CHECK(g.run({pm4(0x3c, 6), 5 | 1 << 6, kHdpReq, kHdpDone, 0xffffffff, 0xffffffff, 4, pm4(0x40, 5), 2 | 2 << 8,
               lo(page(kDataPage + 4)), hi(a), lo(b), hi(b)},
              3));
  CHECK(g.v32(Rig::data(kDataPage + 3)) == 0x77);
  CHECK(g.notes() == "");
}

TEST_CASE("indirect buffers, two deep, and PRED_EXEC", "[mock][compute]") {
  Queue g;
  const uint64_t ib = page(kIbPage), inner = page(kIbPage + 1), a = page(kDataPage + 2);
  auto write = [&](uint64_t va, uint32_t v) { return std::vector<uint32_t>{pm4(0x37, 4), 5 << 8, lo(va), hi(va), v}; };
  auto put = [&](unsigned p, const std::vector<uint32_t>& d) {
    for (size_t i = 0; i < d.size(); ++i) g.put32(Rig::data(p, 4 * i), d[i]);
  };
  auto call = [&](uint64_t va, size_t n) {
    return std::vector<uint32_t>{pm4(0x3f, 3), lo(va), hi(va), uint32_t(n) | 1 << 23};
  };
  auto in = write(a, 1);
  auto out = write(a + 4, 2) + call(inner, in.size()) + std::vector<uint32_t>{pm4(0x23, 1), 2u << 24 | 5} +
             write(a + 8, 3) + std::vector<uint32_t>{pm4(0x23, 1), 1u << 24 | 5} + write(a + 12, 4);
  put(kIbPage, out);
  put(kIbPage + 1, in);
  CHECK(g.run(call(ib, out.size()), 1));
  const uint64_t at = Rig::data(kDataPage + 2);
  CHECK(g.v32(at) == 1);
  CHECK(g.v32(at + 4) == 2);
  CHECK(g.v32(at + 8) == 0);  // for another die
  CHECK(g.v32(at + 12) == 4);
  CHECK(g.notes() == "");
  CHECK(g.run({pm4(0x23, 1), 2u << 24 | 0}, 2));
  CHECK(g.wait_broke("pred-exec-in-ring"));
}

TEST_CASE("malformed packets hang the queue and raise the CP's interrupt", "[mock][compute]") {
  struct Bad {
    std::vector<uint32_t> dwords;
    const char* rule;
    uint32_t source;
  };
  const uint64_t ib = page(kIbPage);
  const std::vector<Bad> bad = {
      {{0x00000000, 0}, "ring-packet-malformed", 183},                    // type 0
      {{pm4(0x99, 1), 0}, "ring-packet-malformed", 183},                  // unknown opcode
      {{pm4(0x10, 1) | 0x40, 0}, "ring-packet-malformed", 180},           // reserved bit
      {{pm4(0x15, 3), 1, 1, 1}, "ring-packet-malformed", 183},            // short DISPATCH_DIRECT
      {{pm4(0x46, 1), 0x3f}, "ring-packet-malformed", 183},               // unknown event
      {{pm4(0x3f, 3), lo(ib), hi(ib), 8}, "ring-packet-malformed", 183},  // IB without VALID
      {{pm4(0x3f, 3), lo(ib) | 2, hi(ib), 8 | 1 << 23}, "unaligned", 183},
      {{pm4(0x76, 2), 0x3ff + 1, 0}, "register-window", 184},
      {{pm4(0x79, 2), 0x4000, 0}, "register-window", 184},
      {{pm4(0x3c, 6), 3 | 1 << 4, lo(page(kDataPage)) | 1, hi(ib), 0, 0, 4}, "unaligned", 183},
  };
  for (const Bad& b : bad) {
    Queue g;
    CAPTURE(b.rule, b.dwords[0]);
    CHECK(g.hangs(b.dwords));
    CHECK(g.wait_broke(b.rule));
    auto iv = g.interrupts();
    REQUIRE(iv.size() == 1);
    CHECK(iv[0].client == 20);
    CHECK(iv[0].source == b.source);
  }
}

TEST_CASE("a dispatch reaches the shader cores as the registers describe it", "[mock][compute]") {
  Queue g;
  g.cores->run = [](const mock::isa::DispatchInfo& d, mock::isa::AddressSpace& m, const std::atomic<bool>&) {
    auto t = m.translate(d.user_data[0] | uint64_t{d.user_data[1]} << 32, Access::kWrite);
    DispatchResult r;
    if (!t.valid || !t.writable) return r;
    const uint32_t v = d.groups[0];
    std::memcpy(t.host + ((d.user_data[0] | uint64_t{d.user_data[1]} << 32) - t.va_begin), &v, 4);
    r.completed = true;
    return r;
  };
  CHECK(g.run(dispatch(page(kCodePage), 12), 1));
  CHECK(g.v32(Rig::data(kDataPage)) == 12);
  const auto& d = g.cores->last;
  CHECK(d.code_va == page(kCodePage));
  CHECK(d.rsrc1 == 0x00ac0041);
  CHECK(d.group_size == std::array<uint32_t, 3>{64, 1, 1});
  CHECK(d.wave32);
  CHECK(d.unaligned_access);
  CHECK(d.shared_aperture == 1ull << 48);
  CHECK(d.private_aperture == 2ull << 48);
  CHECK(g.notes() == "");
}

TEST_CASE("the instruction cache is invalidated by ACQUIRE_MEM with GLI_INV only", "[mock][compute]") {
  Queue g;
  CHECK(g.run({pm4(0x58, 7), 0, ~0u, ~0u, 0, 0, 0, 0x3f0}, 1));
  CHECK(g.cores->invalidations == 0);
  CHECK(g.run({pm4(0x58, 7), 0, ~0u, ~0u, 0, 0, 0, 0xc3f1}, 2));
  CHECK(g.cores->invalidations == 1);
}

TEST_CASE("translations for shaders change their generation with an invalidate", "[mock][compute]") {
  Queue g;
  std::vector<uint64_t> generations;
  g.cores->run = [&](auto&, mock::isa::AddressSpace& m, auto&) {
    generations.push_back(m.generation());
    CHECK_FALSE(m.translate(page(100), Access::kRead).valid);
    auto t = m.translate(page(4), Access::kRead);
    CHECK(t.valid);
    CHECK(t.va_begin <= page(4));
    CHECK(t.va_end > page(4));
    DispatchResult r;
    r.completed = true;
    return r;
  };
  CHECK(g.run(dispatch(page(kCodePage), 1), 1));
  CHECK(g.run(dispatch(page(kCodePage), 1), 2));
  g.invalidate_gc();
  CHECK(g.run(dispatch(page(kCodePage), 1), 3));
  REQUIRE(generations.size() == 3);
  CHECK(generations[0] == generations[1]);
  CHECK(generations[2] != generations[1]);
}

TEST_CASE("compute state that was not programmed, or is out of range, hangs", "[mock][compute]") {
  auto good = dispatch(page(kCodePage), 1);
  auto without = [&](size_t at, size_t n) {
    auto p = good;
    p.erase(p.begin() + long(at), p.begin() + long(at + n));
    return p;
  };
  std::vector<std::vector<uint32_t>> bad = {without(0, 4), without(4, 4), without(8, 3), without(11, 3),
                                            without(18, 10)};
  bad.push_back(good);
  bad.back()[23] = 2048;  // work-items
  for (const auto& p : bad) {
    Queue g;
    CHECK(g.hangs(p));
    CHECK(g.wait_broke("dispatch-state"));
    CHECK(g.cores->runs == 0);
  }
}
