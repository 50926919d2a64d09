// The driver's boot against the mock card: start states, failures at every step, and driver bugs made on purpose.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "am/am_device.hpp"
#include "drivers/base/error.hpp"
#include "mock/mock.hpp"
#include "tampered_pci.hpp"

using namespace baregpu;
using namespace baregpu::am;
namespace fs = std::filesystem;

namespace {

std::string text(const std::vector<mock::Violation>& v) {
  std::string out;
  for (const mock::Violation& x : v) out += x.rule + ": " + x.detail + "\n";
  return out;
}

bool broke(const mock::MockGpu& gpu, const std::string& rule) {
  for (const mock::Violation& v : gpu.violations())
    if (v.rule == rule) return true;
  return false;
}

std::unique_ptr<AmDevice> boot(mock::MockGpu& gpu, BootOptions options = {}) {
  return std::make_unique<AmDevice>(gpu.open("MOCK"), std::move(options));
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every gfx11 chip boots from every state by the right path, breaking no rule", "[am][boot]") {
  using mock::CardState;
  for (const char* arch : {"gfx1100", "gfx1101", "gfx1102"})
    for (const auto& [state, path] : {std::pair{CardState::kCold, BootPath::kCold},
                                      {CardState::kAmdgpu, BootPath::kReset},
                                      {CardState::kAmDirty, BootPath::kReset}}) {
      CAPTURE(arch, int(state));
      mock::MockOptions o;
      o.arch = arch;
      o.card = state;
      auto gpu = mock::make_mock_gpu(o);
      {
        auto device = boot(*gpu);
        CHECK(device->boot_report().path == path);
        CHECK(std::string(device->arch()) == arch);
      }
      CHECK(text(gpu->violations()) == "");
      // Left by ourselves: the short boot, and again.
      for (int i = 0; i < 2; ++i) {
        auto device = boot(*gpu);
        CHECK(device->boot_report().path == BootPath::kPartial);
      }
      CHECK(text(gpu->violations()) == "");
    }
}

TEST_CASE("a forced reset boots in full", "[am][boot]") {
  auto gpu = mock::make_mock_gpu({});
  boot(*gpu);
  BootOptions o;
  o.force_reset = true;
  CHECK(boot(*gpu, o)->boot_report().path == BootPath::kReset);
  CHECK(text(gpu->violations()) == "");
}

TEST_CASE("the card is opened by one at a time", "[am][boot]") {
  auto gpu = mock::make_mock_gpu({});
  auto device = boot(*gpu);
  CHECK_THROWS_AS(gpu->open("second"), Error);
  device.reset();
  CHECK_NOTHROW(boot(*gpu));
}

TEST_CASE("missing and damaged firmware leaves the card as it was", "[am][boot]") {
  const fs::path dir = fs::temp_directory_path() / ("baregpu-boot-" + std::to_string(::getpid()));
  fs::remove_all(dir);
  fs::create_directories(dir);
  mock::write_firmware("gfx1100", dir.string());
  auto gpu = mock::make_mock_gpu({});
  BootOptions o;
  o.firmware = FirmwareFolders::only({dir.string()});
  SECTION("none at all") {
    o.firmware = FirmwareFolders::only({"/nonexistent"});
    const std::string e = error_of([&] { boot(*gpu, o); });
    CHECK(e.find("psp_13_0_0_sos.bin") != e.npos);
    CHECK(e.find("firmware-amd-graphics") != e.npos);
  }
  SECTION("each file truncated") {
    for (const auto& entry : fs::directory_iterator(dir)) {
      const auto size = fs::file_size(entry);
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      fs::resize_file(entry, size / 2);
      CAPTURE(entry.path().string());
      const std::string e = error_of([&] { boot(*gpu, o); });
      // Only the files that the boot needs; linux-firmware has more.
      if (e != "") CHECK(e.find(entry.path().filename().string()) != e.npos);
      std::ofstream(entry.path(), std::ios::binary) << bytes;
    }
  }
  SECTION("a piece that is not signed") {
    const fs::path mec = dir / "gc_11_0_0_mec.bin";
    std::fstream f(mec, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(long(fs::file_size(mec)) - 700);
    f << "XXXXXXXXXXXXXXXX";
    f.close();
    const std::string e = error_of([&] { boot(*gpu, o); });
    CAPTURE(e);
    CHECK(e.find("gc_11_0_0_mec.bin") != e.npos);
  }
  gpu->clear_violations();
  CHECK_NOTHROW(boot(*gpu));
  CHECK(text(gpu->violations()) == "");
  fs::remove_all(dir);
}

TEST_CASE("a virtual function and a stalled card are refused with what to do", "[am][boot]") {
  mock::MockOptions o;
  o.card = mock::CardState::kVf;
  auto vf = mock::make_mock_gpu(o);
  CHECK(error_of([&] { boot(*vf); }).find("virtual function") != std::string::npos);
  o.card = mock::CardState::kStalled;
  auto stalled = mock::make_mock_gpu(o);
  CHECK(error_of([&] { boot(*stalled); }) != "");
}

TEST_CASE("a small BAR that cannot grow still boots; one that is too small says so", "[am][boot]") {
  mock::MockOptions o;
  o.bar0_resizable = false;
  auto gpu = mock::make_mock_gpu(o);
  {
    auto device = boot(*gpu);
    CHECK_FALSE(device->large_bar());
    Memory* m = device->allocate(64 * MiB, MemoryKind::kVram, false, "test");
    CHECK(m->size == 64 * MiB);
    device->free(m);
  }
  CHECK(text(gpu->violations()) == "");
  o.bar0_size = 16 * MiB;
  auto tiny = mock::make_mock_gpu(o);
  CHECK(error_of([&] { boot(*tiny); }).find("too small") != std::string::npos);
}

TEST_CASE("surprise removal at any register read ends the boot with a named error", "[am][boot][slow]") {
  // Every read early on, then samples: a full boot has several hundred.
  for (unsigned n = 1; n < 700; n += n < 40 ? 3 : 41) {
    mock::MockOptions o;
    o.fault = "all-ones@" + std::to_string(n);
    auto gpu = mock::make_mock_gpu(o);
    CAPTURE(n);
    const std::string e = error_of([&] { boot(*gpu); });
    if (n < 200) CHECK(e != "");
  }
}

TEST_CASE("an open that fails at any step is undone: the next one works", "[am][boot]") {
  for (unsigned n = 1; n <= 6; ++n) {
    mock::MockOptions o;
    o.fault = "fail-open@" + std::to_string(n);
    auto gpu = mock::make_mock_gpu(o);
    CAPTURE(n);
    const std::string e = error_of([&] { boot(*gpu); });
    if (e != "") CHECK_NOTHROW(boot(*gpu));
  }
}

TEST_CASE("a PSP that does not answer is a time-out that names its register", "[am][boot]") {
  mock::MockOptions o;
  o.fault = "psp-timeout@1";
  auto gpu = mock::make_mock_gpu(o);
  const std::string e = error_of([&] { boot(*gpu); });
  CAPTURE(e);
  CHECK(e.find("C2PMSG") != e.npos);
}

TEST_CASE("memory: aligned, guarded, bounded, and named by faults", "[am][memory]") {
  auto gpu = mock::make_mock_gpu({});
  auto device = boot(*gpu);
  Memory* a = device->allocate(5000, MemoryKind::kVram, true, "a");
  Memory* b = device->allocate(5000, MemoryKind::kHost, true, "b");
  CHECK(a->size == 8192);
  CHECK(a->va.value % 4096 == 0);
  CHECK(device->nearest(a->va + 100) == a);
  CHECK(device->nearest(b->va + b->size + 100) == b);
  a->cpu.write32(0, 0x12345678);
  CHECK(a->cpu.read32(0) == 0x12345678);
  CHECK_THROWS_AS(device->allocate(uint64_t{1} << 40, MemoryKind::kVram, false, "huge"), OutOfMemoryError);
  CHECK_THROWS_AS(device->allocate(0, MemoryKind::kVram, false, "none"), Error);
  device->free(a);
  device->free(b);
  device.reset();
  CHECK(text(gpu->violations()) == "");
}

// ---- driver bugs made on purpose: the mock must catch each ----

TEST_CASE("firmware sent in the wrong order is refused by the mock", "[am][strict]") {
  constexpr uint32_t kC2pmsg35 = 0x16063, kSysDrv = 0x10000, kSocDrv = 0xb0000;
  auto tamper = std::make_shared<test::Tamper>();
  tamper->write = [](uint32_t dword, uint32_t value) -> std::optional<uint32_t> {
    if (dword == kC2pmsg35 && value == kSysDrv) return kSocDrv;
    if (dword == kC2pmsg35 && value == kSocDrv) return kSysDrv;
    return value;
  };
  mock::MockOptions o;
  auto gpu = mock::make_mock_gpu(o);
  CHECK(error_of([&] { AmDevice(std::make_unique<test::TamperedPci>(gpu->open("MOCK"), tamper), {}); }) != "");
  CHECK(broke(*gpu, "psp-order"));
}

TEST_CASE("a boot that never flushes HDP fails on stale bytes", "[am][strict]") {
  constexpr uint32_t kHdpFlush = 0x7f000 / 4;
  auto tamper = std::make_shared<test::Tamper>();
  tamper->write = [](uint32_t dword, uint32_t value) -> std::optional<uint32_t> {
    return dword == kHdpFlush ? std::nullopt : std::optional(value);
  };
  auto gpu = mock::make_mock_gpu({});
  CHECK(error_of([&] { AmDevice(std::make_unique<test::TamperedPci>(gpu->open("MOCK"), tamper), {}); }) != "");
  CHECK(broke(*gpu, "hdp-stale-read"));
}

TEST_CASE("doorbells that were never routed or enabled are dropped", "[am][strict]") {
  // RCC_DOORBELL_APER_EN: without it the aperture swallows every doorbell.
  auto tamper = std::make_shared<test::Tamper>();
  tamper->write = [](uint32_t dword, uint32_t value) -> std::optional<uint32_t> {
    return dword == 0xde0 ? std::nullopt : std::optional(value);
  };
  auto gpu = mock::make_mock_gpu({});
  AmDevice device(std::make_unique<test::TamperedPci>(gpu->open("MOCK"), tamper), {});
  device.doorbell(kDoorbellMecRing0).write64(0, 4);
  for (int i = 0; i < 200 && gpu->violations().empty(); ++i) std::this_thread::sleep_for(Milliseconds(5));
  CHECK_FALSE(gpu->violations().empty());
}

// ---- golden trace ----

namespace {

/// Boot, one compute and one copy queue, shutdown, as text. Polls of one register shrink to their last read: their
/// number is the mock's choice.
std::vector<std::string> boot_trace() {
  auto gpu = mock::make_mock_gpu({});
  std::vector<std::string> out;
  std::string last_key;
  BootOptions o;
  o.progress = [&](const std::string& step) {
    out.push_back("# " + step);
    last_key.clear();
  };
  o.trace = [&](char rw, const char* name, uint32_t dword, uint32_t value) {
    std::ostringstream line;
    line << rw << ' ' << name << ' ' << std::hex << "0x" << dword;
    const std::string key = line.str();
    line << " = 0x" << value;
    if (rw == 'R' && key == last_key)
      out.back() = line.str();
    else
      out.push_back(line.str());
    last_key = rw == 'R' ? key : "";
  };
  auto device = boot(*gpu, o);
  Memory* ring = device->allocate(1 * MiB, MemoryKind::kVramUncached, false, "ring");
  Memory* pointers = device->allocate(4096, MemoryKind::kVramUncached, false, "pointers");
  Memory* eop = device->allocate(4096, MemoryKind::kVramUncached, false, "eop");
  o.progress("compute queue");
  device->setup_compute_queue({.ring = ring->va,
                               .ring_size = ring->size,
                               .rptr = pointers->va + 0x80,
                               .wptr = pointers->va + 0x38,
                               .eop = eop->va,
                               .eop_size = eop->size});
  o.progress("copy queue");
  device->setup_sdma_queue(
      {.ring = ring->va, .ring_size = ring->size, .rptr = pointers->va + 0x180, .wptr = pointers->va + 0x138});
  o.progress("shutdown");
  device->shutdown();
  return out;
}

}  // namespace

TEST_CASE("a session on a cold Navi31 makes the reviewed register accesses", "[am][boot][golden]") {
  const fs::path golden = fs::path(BAREGPU_SOURCE_DIR) / "tests/am/golden/boot_gfx1100.txt";
  std::vector<std::string> want;
  std::ifstream in(golden);
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with(";")) want.push_back(line);
  const std::vector<std::string> got = boot_trace();
  size_t i = 0;
  while (i < std::min(want.size(), got.size()) && want[i] == got[i]) ++i;
  if (i < want.size() || i < got.size()) {
    const fs::path actual = fs::temp_directory_path() / "boot_gfx1100.actual.txt";
    std::ofstream out(actual);
    for (const std::string& line : got) out << line << '\n';
    FAIL("line " << i + 1 << ": expected '" << (i < want.size() ? want[i] : "(end)") << "', got '"
                 << (i < got.size() ? got[i] : "(end)") << "'\nThe whole trace is in " << actual
                 << ": review it like code before it becomes the golden file");
  }
  CHECK(want.size() > 300);
}
