// Timeline, allocator, kernel arguments.
#include <catch2/catch.hpp>
#include <cstring>

#include "hcq/kernel_args.hpp"
#include "host_memory.hpp"

using namespace baregpu;
using namespace baregpu::hcq;

TEST_CASE("a timeline crosses 2^31 and 2^32 without an early or a missed wait", "[hcq][timeline]") {
  for (const uint64_t start :
       {uint64_t{0}, (uint64_t{1} << 31) - 3, (uint64_t{1} << 32) - 3, (uint64_t{1} << 34) - 3}) {
    CAPTURE(start);
    test::HostTimeline t(start);
    std::vector<TimelinePoint> points;
    for (int i = 0; i < 10; ++i) {
      const TimelinePoint p = t.timeline.next();
      CHECK(p.count > start);
      CHECK(p.value != 0);
      if (!points.empty()) CHECK(p.count > points.back().count);
      points.push_back(p);
    }
    for (size_t done = 0; done <= points.size(); ++done) {
      if (done) t.signal(points[done - 1]);
      for (size_t i = 0; i < points.size(); ++i) {
        CAPTURE(done, i);
        CHECK(t.timeline.reached(points[i]) == (i < done));
        CHECK(t.packet_wait(points[i]) == (i < done));  // the queues see what the CPU sees
      }
    }
    CHECK(t.timeline.done() == points.back().count);
  }
}

TEST_CASE("prepare() without commit() uses up no position", "[hcq][timeline]") {
  test::HostTimeline t((uint64_t{1} << 32) - 2);
  const TimelinePoint a = t.timeline.prepare(), b = t.timeline.prepare();
  CHECK(a.count == b.count);
  CHECK(t.timeline.last().count == (uint64_t{1} << 32) - 2);
  t.timeline.commit(a);
  t.signal(a);
  const TimelinePoint c = t.timeline.prepare();
  CHECK(c.value == 1);  // a new epoch
  CHECK_FALSE(t.packet_wait(c));
  t.timeline.commit(c);
  CHECK(t.timeline.reached(a));
  CHECK_FALSE(t.timeline.reached(c));
}

TEST_CASE("force_done releases every waiter", "[hcq][timeline]") {
  test::HostTimeline t;
  const TimelinePoint a = t.timeline.next(), b = t.timeline.next();
  t.timeline.force_done();
  CHECK(t.timeline.reached(a));
  CHECK(t.timeline.reached(b));
  CHECK_FALSE(t.timeline.reached(t.timeline.next()));
}

TEST_CASE("a freed buffer is reused only after the work before its release", "[hcq][allocator]") {
  test::HostMemory memory;
  test::HostTimeline t;
  Allocator a(memory, t.timeline);
  GpuVa first;
  TimelinePoint use;
  {
    Buffer b = a.allocate(5000);
    first = b.va();
    CHECK(b.size() == 5000);
    CHECK(b.capacity() == 8192);
    use = t.timeline.next();
  }
  CHECK(a.cached_bytes() == 8192);
  Buffer other = a.allocate(5000);
  CHECK(other.va() != first);  // the GPU may still write there
  CHECK(a.trim() == 0);
  t.signal(use);
  Buffer again = a.allocate(8000);  // same size class
  CHECK(again.va() == first);
  CHECK(memory.allocations == 2);
  CHECK(a.live_bytes() == 16384);
}

TEST_CASE("lack of memory empties the cache first", "[hcq][allocator]") {
  test::HostMemory memory;
  memory.limit = 1 * MiB;
  test::HostTimeline t;
  Allocator a(memory, t.timeline);
  { Buffer b = a.allocate(700 * 1024); }
  Buffer c = a.allocate(900 * 1024);
  CHECK(memory.frees == 1);
  CHECK_THROWS_AS(a.allocate(200 * 1024), OutOfMemoryError);
  CHECK_THROWS_AS(a.allocate(0), Error);
}

namespace {

struct ArgsFixture {
  test::HostMemory memory;
  test::HostTimeline t;
  Allocator allocator{memory, t.timeline};
};

}  // namespace

TEST_CASE("the argument ring waits for its oldest user when it wraps", "[hcq][args]") {
  ArgsFixture f;
  KernelArgsRing ring(f.allocator.allocate(4096, BufferKind::kHost, true), f.t.timeline);
  std::vector<TimelinePoint> waited;
  auto wait = [&](const TimelinePoint& p) {
    waited.push_back(p);
    f.t.signal(p);
  };
  auto take = [&](uint64_t size) {
    auto slot = ring.allocate(size, wait);
    const TimelinePoint p = f.t.timeline.next();
    ring.retire_with(p);
    return std::pair{slot.va, p};
  };
  const auto [a, pa] = take(2000);
  const auto [b, pb] = take(2000);
  CHECK(waited.empty());
  CHECK(b - a == 2048);
  const auto [c, pc] = take(2000);
  CHECK(c == a);
  REQUIRE(waited.size() == 1);
  CHECK(waited[0].count == pa.count);
  const auto [d, pd] = take(100);  // behind c, where b still is
  REQUIRE(waited.size() == 2);
  CHECK(waited[1].count == pb.count);
  CHECK(d == b);
  CHECK_THROWS_AS(ring.allocate(5000, wait), Error);
  CHECK(take(4096).first == a);  // the whole ring, once everything is done
}

namespace {

KernelInfo kernel() {
  KernelInfo k;
  k.name = "k";
  k.kernarg_size = 24 + 256;
  k.group_segment_size = 100;
  k.args = {{.name = "p", .kind = ArgKind::kGlobalBuffer, .offset = 0, .size = 8},
            {.name = "n", .kind = ArgKind::kByValue, .offset = 8, .size = 4},
            {.name = "l", .kind = ArgKind::kDynamicSharedPointer, .offset = 12, .size = 4},
            {.name = "d", .kind = ArgKind::kByValue, .offset = 16, .size = 8},
            {.kind = ArgKind::kHiddenBlockCountX, .offset = 24, .size = 4},
            {.kind = ArgKind::kHiddenBlockCountY, .offset = 28, .size = 4},
            {.kind = ArgKind::kHiddenGroupSizeX, .offset = 36, .size = 2},
            {.kind = ArgKind::kHiddenRemainderX, .offset = 42, .size = 2},
            {.kind = ArgKind::kHiddenGridDims, .offset = 88, .size = 2},
            {.kind = ArgKind::kHiddenDynamicLdsSize, .offset = 144, .size = 4}};
  return k;
}

template <class T>
T at(const std::vector<std::byte>& v, size_t offset) {
  T out;
  std::memcpy(&out, v.data() + offset, sizeof out);
  return out;
}

}  // namespace

TEST_CASE("explicit and hidden arguments land where the metadata says", "[hcq][args]") {
  std::vector<std::byte> out(280, std::byte{0xcc});
  const std::array<Arg, 4> args{Arg(GpuVa(0x1234'5678'9abc)), 7, Arg::local(512), 2.5};
  CHECK(write_kernel_args(kernel(), args, {3, 5, 1}, {64, 2, 1}, out) == 12 + 512);  // LDS pointer 100 aligned to 112
  CHECK(at<uint64_t>(out, 0) == 0x1234'5678'9abc);
  CHECK(at<int>(out, 8) == 7);
  CHECK(at<uint32_t>(out, 12) == 112);
  CHECK(at<double>(out, 16) == 2.5);
  CHECK(at<uint32_t>(out, 24) == 3);
  CHECK(at<uint32_t>(out, 28) == 5);
  CHECK(at<uint16_t>(out, 36) == 64);
  CHECK(at<uint16_t>(out, 42) == 0);
  CHECK(at<uint16_t>(out, 88) == 2);
  CHECK(at<uint32_t>(out, 144) == 524);
}

TEST_CASE("arguments that do not match are refused with the kernel's list", "[hcq][args]") {
  std::vector<std::byte> out(280);
  const Arg p(GpuVa(0x1000)), n(7), l = Arg::local(4), d(1.0);
  struct Case {
    std::vector<Arg> args;
    const char* expect;
  };
  for (const Case& c : {Case{{p, n, l}, "3 arguments given"}, Case{{p, n, l, d, d}, "5 arguments given, it takes 4"},
                        Case{{n, n, l, d}, "argument 0 must be a buffer"},
                        Case{{p, d, l, d}, "argument 1 has 8 bytes, the kernel's has 4"}}) {
    try {
      write_kernel_args(kernel(), c.args, {}, {}, out);
      FAIL("accepted");
    } catch (const Error& e) {
      CAPTURE(std::string(e.what()));
      CHECK(std::string(e.what()).find(c.expect) != std::string::npos);
      CHECK(e.code() == "kernel_args");
    }
  }
}
