// The whole stack on the mock card: queues, copies, kernels, faults, recovery; and driver bugs made on purpose.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>

#include "am/am_device.hpp"
#include "compiler/compiler.hpp"
#include "drivers/base/error.hpp"
#include "hcq/amd/am_device.hpp"
#include "mock/mock.hpp"
#include "tests/am/tampered_pci.hpp"

using namespace baregpu;
using namespace baregpu::hcq;

namespace {

constexpr const char* kSource = R"(
kernel void add(global const int* a, global const int* b, global int* c, int n) {
  int i = get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}
kernel void count(global int* p) { p[0] += 1; }
kernel void wild(global int* p, ulong far) { p[far] = get_local_id(0); }
kernel void endless(global volatile int* p) { while (p[0] == 0) {} }
kernel void illegal(global int* p) { if (p[0] == 0) __asm__ volatile(".long 0xcffff000"); p[1] = 1; }
kernel void spill(global int* out, int k) {
  int big[200];
  for (int i = 0; i < 200; ++i) big[i] = i * k;
  int s = 0;
  for (int i = 0; i < 200; ++i) s += big[(i * 7 + get_global_id(0)) % 200];
  out[get_global_id(0)] = s;
}
kernel void local_sum(global const int* in, global int* out, local int* part) {
  int l = get_local_id(0);
  part[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l == 0) {
    int s = 0;
    for (int i = 0; i < get_local_size(0); ++i) s += part[i];
    out[get_group_id(0)] = s;
  }
}
)";

ProgramImage image(const std::string& arch = "gfx1100") {
  compiler::CompileOptions o;
  o.arch = arch;
  return compiler::load_code_object(compiler::compile(compiler::SourceKind::kOpenCl, kSource, "test.cl", o), "test.cl");
}

std::string text(const mock::MockGpu& gpu) {
  std::string out;
  for (const mock::Violation& x : gpu.violations()) out += x.rule + ": " + x.detail + "\n";
  return out;
}

struct Stack {
  explicit Stack(mock::MockOptions mo = {}, DeviceOptions o = {}, std::shared_ptr<test::Tamper> tamper = nullptr)
      : gpu(mock::make_mock_gpu(mo)) {
    if (!o.timeout_ms) o.timeout_ms = 20000;
    std::unique_ptr<PciDevice> pci = gpu->open("MOCK");
    if (tamper) pci = std::make_unique<test::TamperedPci>(std::move(pci), std::move(tamper));
    auto owned = std::make_unique<am::AmDevice>(std::move(pci), am::BootOptions{});
    am = owned.get();
    device = std::make_unique<amd::AmHcqDevice>(std::move(owned), o);
  }
  Buffer upload(const std::vector<int>& v) {
    Buffer b = device->allocator().allocate(v.size() * 4);
    device->copy_in(b, 0, std::as_bytes(std::span(v)));
    return b;
  }
  std::vector<int> download(const Buffer& b) {
    std::vector<int> v(b.size() / 4);
    device->copy_out(std::as_writable_bytes(std::span(v)), b, 0);
    return v;
  }
  std::shared_ptr<mock::MockGpu> gpu;
  am::AmDevice* am;
  std::unique_ptr<Device> device;
};

/// The error that `f` ends with.
template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  FAIL("no error");
  throw;
}

bool contains(const std::string& s, const std::string& part) { return s.find(part) != s.npos; }

}  // namespace

TEST_CASE("kernels and copies give right results and break no rule", "[hcq][mock]") {
  Stack s;
  Program p = s.device->load(image());
  std::vector<int> a(1000), b(1000);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 5000);
  Buffer da = s.upload(a), db = s.upload(b), dc = s.device->allocator().allocate(4000);
  s.device->launch(p.kernel("add"), {4}, {256}, std::array<Arg, 4>{da, db, dc, 1000});
  const std::vector<int> c = s.download(dc);
  for (int i = 0; i < 1000; ++i) REQUIRE(c[size_t(i)] == 5000 + 2 * i);
  // Copies between buffers at odd offsets and sizes.
  Buffer dd = s.upload(std::vector<int>(1000, -1));
  s.device->copy(dd, 13, dc, 40, 101);
  const std::vector<int> d = s.download(dd);
  CHECK(std::memcmp(reinterpret_cast<const char*>(d.data()) + 13, reinterpret_cast<const char*>(c.data()) + 40, 101) ==
        0);
  CHECK(d[0] == -1);
  CHECK(reinterpret_cast<const unsigned char*>(d.data())[114] == 0xff);
  CHECK_THROWS_AS(s.device->copy(dd, 3990, dc, 0, 11), Error);
  CHECK_THROWS_AS(s.device->copy(dd, 0, dd, 10, 100), Error);
  CHECK(text(*s.gpu) == "");
}

TEST_CASE("scratch, dynamic LDS and many launches in order", "[hcq][mock]") {
  Stack s;
  Program p = s.device->load(image());
  Buffer out = s.upload(std::vector<int>(64, 0));
  s.device->launch(p.kernel("spill"), {2}, {32}, std::array<Arg, 2>{out, 3});
  for (int v : s.download(out)) REQUIRE(v == 3 * 199 * 200 / 2);
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 0);
  Buffer din = s.upload(in), sums = s.upload(std::vector<int>(4, 0));
  s.device->launch(p.kernel("local_sum"), {4}, {64}, std::array<Arg, 3>{din, sums, Arg::local(256)});
  CHECK(s.download(sums) == std::vector<int>{2016, 6112, 10208, 14304});
  Buffer counter = s.upload({0});
  for (int i = 0; i < 500; ++i) s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
  CHECK(s.download(counter)[0] == 500);  // each saw the one before it
  CHECK(text(*s.gpu) == "");
}

TEST_CASE("work crosses the timeline's wrap", "[hcq][mock][timeline]") {
  for (const uint64_t start : {(uint64_t{1} << 31) - 3, (uint64_t{1} << 32) - 3}) {
    DeviceOptions o;
    o.timeline_start = start;
    Stack s({}, o);
    Program p = s.device->load(image());
    Buffer counter = s.upload({0}), other = s.upload({7});
    for (int i = 0; i < 10; ++i) {
      s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
      s.device->copy(other, 0, counter, 0, 4);
      REQUIRE(s.download(other)[0] == i + 1);
    }
    CHECK(s.device->timeline().last().count > start + 20);
    CHECK(text(*s.gpu) == "");
  }
}

TEST_CASE("a bound list runs again and again, patched between", "[hcq][mock]") {
  Stack s;
  Program p = s.device->load(image());
  std::vector<int> values(32, 1);
  Buffer a = s.upload(values), b = s.upload(values), c = s.upload(values);
  const Kernel& k = p.kernel("add");
  Buffer args = s.device->allocator().allocate(k.info->kernarg_size, BufferKind::kHost, true);
  std::vector<std::byte> bytes(k.info->kernarg_size);
  auto list = s.device->compute().make_list();
  list->memory_barrier();
  list->exec(k, args.va(), {1}, {32}, 0);
  const PatchSlot value = list->signal(s.device->timeline().last().signal, 0);
  list->bind(s.device->allocator());
  s.device->synchronize();  // lists that are submitted by hand are not ordered behind other queues
  for (int i = 0; i < 20; ++i) {
    // c = a + b, then a = b, b = c by swapping addresses: Fibonacci numbers.
    write_kernel_args(*k.info, std::array<Arg, 4>{a, b, c, 32}, {1}, {32}, bytes);
    args.cpu().write_block(0, bytes);
    const TimelinePoint done = s.device->timeline().next();
    list->set(value, done.value);
    s.device->compute().submit(*list, done);
    s.device->wait(done);
    std::swap(a, b);
    std::swap(b, c);
  }
  CHECK(s.download(b)[31] == 17711);  // F(22)
  CHECK(text(*s.gpu) == "");
}

TEST_CASE("times: every launch and copy has one, in order", "[hcq][mock]") {
  DeviceOptions o;
  o.profile = true;
  Stack s({}, o);
  Program p = s.device->load(image());
  Buffer counter = s.upload({0});
  s.device->take_profile();
  s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
  s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
  s.download(counter);
  const auto events = s.device->take_profile();
  REQUIRE(events.size() == 3);
  CHECK(events[0].name == "count");
  CHECK(events[2].name == "copy");
  for (size_t i = 0; i < 3; ++i) {
    CHECK(events[i].begin_ticks <= events[i].end_ticks);
    if (i) CHECK(events[i - 1].end_ticks <= events[i].begin_ticks);
  }
}

TEST_CASE("bad launches are refused and the device stays usable", "[hcq][mock]") {
  Stack s;
  Program p = s.device->load(image());
  Buffer counter = s.upload({0});
  CHECK_THROWS_AS(p.kernel("nope"), Error);
  CHECK_THROWS_AS(s.device->launch(p.kernel("count"), {1}, {1}, {}), Error);
  CHECK_THROWS_AS(s.device->launch(p.kernel("count"), {0}, {1}, std::array<Arg, 1>{counter}), Error);
  CHECK_THROWS_AS(s.device->launch(p.kernel("count"), {1}, {2048}, std::array<Arg, 1>{counter}), Error);
  CHECK_THROWS_AS(s.device->load(image("gfx1101")), Error);
  s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
  CHECK(s.download(counter)[0] == 1);
  CHECK(text(*s.gpu) == "");
}

TEST_CASE("a fault names kernel and address, and the device works again after recover()", "[hcq][mock][fault]") {
  DeviceOptions o;
  o.timeout_ms = 400;
  Stack s({}, o);
  Program p = s.device->load(image());
  Buffer counter = s.upload({0, 0, 0, 0});
  auto works = [&](int want) {
    s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
    return s.download(counter)[0] == want;
  };
  REQUIRE(works(1));
  SECTION("page fault") {
    const uint64_t far = 2'000'000'000;
    const Error e = error_of([&] {
      s.device->launch(p.kernel("wild"), {1}, {1}, std::array<Arg, 2>{counter, far});
      s.device->synchronize();
    });
    CAPTURE(std::string(e.what()));
    CHECK(e.code() == "page_fault");
    CHECK(contains(e.what(), "'wild'"));
    char address[32];
    std::snprintf(address, sizeof address, "%#llx",
                  (unsigned long long)((counter.va().value + far * 4) & ~uint64_t{0xfff}));
    CHECK(contains(e.what(), address));
    CHECK(contains(e.what(), "past the end"));
  }
  SECTION("illegal instruction") {
    Buffer zero = s.upload({0, 0});
    const Error e = error_of([&] {
      s.device->launch(p.kernel("illegal"), {1}, {1}, std::array<Arg, 1>{zero});
      s.device->synchronize();
    });
    CAPTURE(std::string(e.what()));
    CHECK(e.code() == "illegal_instruction");
    CHECK(contains(e.what(), "'illegal'"));
    CHECK(contains(e.what(), fmt::format("code at {:#x}", p.kernel("illegal").code.value)));
  }
  SECTION("endless loop") {
    Buffer zero = s.upload({0});
    const Error e = error_of([&] {
      s.device->launch(p.kernel("endless"), {1}, {1}, std::array<Arg, 1>{zero});
      s.device->synchronize();
    });
    CAPTURE(std::string(e.what()));
    CHECK(e.code() == "timeout");
    CHECK(contains(e.what(), "'endless'"));
  }
  CHECK(error_of([&] { works(2); }).code() == "device_failed");
  s.device->recover();
  CHECK(works(2));
  CHECK(works(3));
}

TEST_CASE("after a hang the next open resets the card and works", "[hcq][mock][fault]") {
  auto gpu = mock::make_mock_gpu({});
  auto open = [&] {
    DeviceOptions o;
    o.timeout_ms = 300;
    return std::make_unique<amd::AmHcqDevice>(std::make_unique<am::AmDevice>(gpu->open("MOCK"), am::BootOptions{}), o);
  };
  {
    auto device = open();
    Program p = device->load(image());
    Buffer b = device->allocator().allocate(64);
    device->copy_in(b, 0, std::vector<std::byte>(64));
    CHECK_THROWS_AS((device->launch(p.kernel("endless"), {1}, {1}, std::array<Arg, 1>{b}), device->synchronize()),
                    TimeoutError);
  }
  auto device = open();
  CHECK(device->properties().boot_path == "reset");
  Program p = device->load(image());
  Buffer b = device->allocator().allocate(4);
  const int zero = 0;
  device->copy_in(b, 0, std::as_bytes(std::span(&zero, 1)));
  device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{b});
  int got = 0;
  device->copy_out(std::as_writable_bytes(std::span(&got, 1)), b, 0);
  CHECK(got == 1);
}

TEST_CASE("copies larger than the staging memory arrive whole", "[hcq][mock]") {
  Stack s;
  std::vector<int> big(3'000'001);
  for (size_t i = 0; i < big.size(); ++i) big[i] = int(i * 2654435761u);
  Buffer b = s.upload(big);
  CHECK(s.download(b) == big);
  CHECK(text(*s.gpu) == "");
}

TEST_CASE("a small BAR works through the copy engine", "[hcq][mock]") {
  mock::MockOptions o;
  o.bar0_resizable = false;
  Stack s(o);
  Program p = s.device->load(image());
  Buffer counter = s.upload({41});
  s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
  CHECK(s.download(counter)[0] == 42);
  CHECK(text(*s.gpu) == "");
}

// ---- driver bugs made on purpose ----

TEST_CASE("without the TLB invalidate, a reused address reaches the old page and the mock says so",
          "[hcq][mock][strict]") {
  auto tamper = std::make_shared<test::Tamper>();
  Stack s({}, {}, tamper);
  const uint32_t request = s.am->gc().address<am::GCVM_INVALIDATE_ENG17_REQ>(),
                 ack = s.am->gc().address<am::GCVM_INVALIDATE_ENG17_ACK>();
  Buffer source = s.upload(std::vector<int>(1024, 0x11111111));
  am::Memory* first = s.am->allocate(4096, am::MemoryKind::kHost, true, "first");
  const GpuVa va = first->va;
  auto* queue = s.device->copy_queue();
  auto copy_to = [&](GpuVa to) {
    auto list = queue->make_list();
    list->copy(to, source.va(), 4096);
    const TimelinePoint done = s.device->timeline().next();
    list->signal(done.signal, done.value);
    queue->submit(*list, done);
    s.device->wait(done);
  };
  copy_to(va);
  CHECK(first->cpu.read32(0) == 0x11111111);
  // The bug: the invalidate is not sent (and its acknowledgement is not missed).
  tamper->write = [=](uint32_t dword, uint32_t value) -> std::optional<uint32_t> {
    return dword == request ? std::nullopt : std::optional(value);
  };
  tamper->read = [=](uint32_t dword) -> std::optional<uint32_t> {
    return dword == ack ? std::optional<uint32_t>(0xffff) : std::nullopt;
  };
  s.am->free(first);
  am::Memory* blocker = s.am->allocate(4096, am::MemoryKind::kVram, false, "takes other pages");
  am::Memory* second = s.am->allocate(4096, am::MemoryKind::kHost, true, "second");
  am::Memory* reused = blocker->va == va ? blocker : second;
  REQUIRE(reused->va == va);  // the case that matters: the address is used again
  try {
    copy_to(va);
  } catch (const Error&) {
    // The old page may be gone by now, which the hardware reports as a fault.
  }
  bool caught = false;
  for (const mock::Violation& v : s.gpu->violations()) caught |= v.rule == "stale-translation";
  CAPTURE(text(*s.gpu));
  CHECK(caught);
}

TEST_CASE("without the HDP flush, a kernel reads stale arguments and the mock says so", "[hcq][mock][strict]") {
  auto tamper = std::make_shared<test::Tamper>();
  DeviceOptions o;
  o.timeout_ms = 300;
  Stack s({}, o, tamper);
  Program p = s.device->load(image());
  Buffer counter = s.upload({0});
  s.device->launch(p.kernel("count"), {1}, {1},
                   std::array<Arg, 1>{counter});  // the flush inside the packets is used up
  s.device->synchronize();
  tamper->write = [](uint32_t dword, uint32_t value) -> std::optional<uint32_t> {
    return dword == 0x7f000 / 4 ? std::nullopt : std::optional(value);
  };
  bool caught = false;
  try {
    for (int i = 0; i < 20; ++i) s.device->launch(p.kernel("count"), {1}, {1}, std::array<Arg, 1>{counter});
    s.device->synchronize();
  } catch (const Error&) {
  }
  for (const mock::Violation& v : s.gpu->violations()) caught |= v.rule == "hdp-stale-read";
  CAPTURE(text(*s.gpu));
  CHECK(caught);
}
