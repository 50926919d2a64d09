// Enumeration and the sysfs transport on a made-up /sys.
#include <sys/file.h>
#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "drivers/base/error.hpp"
#include "drivers/sysfs_device.hpp"
#include "fake_sys.hpp"

using namespace baregpu;
using test::FakeOs;

namespace {

bool any_contains(const std::vector<std::string>& list, const std::string& part) {
  for (const std::string& s : list)
    if (s.find(part) != s.npos) return true;
  return false;
}

template <class F>
std::string error_of(F&& f, std::string* code = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (code) *code = e.code();
    return e.what();
  }
  return "";
}

/// /proc/self/fd and /proc/self/maps entries that concern the fake tree.
unsigned open_files(const FakeOs& os) {
  unsigned n = 0;
  for (const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ec;
    n += std::filesystem::read_symlink(e.path(), ec).string().starts_with(os.path(""));
  }
  return n;
}

}  // namespace

TEST_CASE("GPUs are found by vendor and class, sorted, with owner and BARs", "[drivers][sysfs]") {
  FakeOs os;
  os.add_gpu("0000:0a:00.0");
  os.add_gpu("0000:03:00.0");
  os.add_gpu("0000:03:00.1", 0xab30, 0x1002, 0x040300);  // audio function
  os.add_gpu("0000:04:00.0", 0x2684, 0x10de);
  os.add_gpu("0000:05:00.0", 0x74a1, 0x1002, 0x120000);  // accelerator without display
  os.add_gpu("0000:06:00.0", 0x1234, 0x8086);
  os.bind("0000:0a:00.0", "amdgpu");
  const auto amd = find_gpus(os, "AMD");
  REQUIRE(amd.size() == 3);
  CHECK(amd[0].bdf == "0000:03:00.0");
  CHECK(amd[1].bdf == "0000:05:00.0");
  CHECK(amd[2].driver == "amdgpu");
  CHECK(amd[0].driver == "");
  CHECK(amd[0].id.vendor == 0x1002);
  CHECK(amd[0].id.device == 0x744c);
  CHECK(amd[0].id.class_code == 0x030000);
  CHECK(amd[0].bars[0].size == 256 * MiB);
  CHECK(amd[0].bars[0].bus.value == 0x6000000000);
  CHECK(amd[0].bars[0].prefetchable);
  CHECK(amd[0].bars[0].is_64bit);
  CHECK(amd[0].bars[1].size == 0);
  CHECK(amd[0].bars[4].size == 0);  // I/O ports
  CHECK(amd[0].bars[5].size == 1 * MiB);
  CHECK(find_gpus(os, "NV").size() == 1);
}

TEST_CASE("no PCI bus is an error that says so", "[drivers][sysfs]") {
  FakeOs os;
  std::filesystem::remove_all(os.path("/sys/bus"));
  CHECK(error_of([&] { find_gpus(os, "AMD"); }).find("no PCI bus") != std::string::npos);
}

TEST_CASE("what stands in the way is told with what to do", "[drivers][sysfs]") {
  FakeOs os;
  const std::string bdf = "0000:03:00.0";
  os.add_gpu(bdf);
  CHECK(sysfs_obstacles(os, find_gpus(os, "AMD")[0]).empty());
  SECTION("kernel driver") {
    os.bind(bdf, "amdgpu");
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]),
                       "echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers/amdgpu/unbind"));
  }
  SECTION("vfio-pci") {
    os.bind(bdf, "vfio-pci");
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]), "DEV=VFIO"));
  }
  SECTION("translating IOMMU") {
    os.iommu(bdf, "14", GENERATE(as<std::string>(), "DMA", "DMA-FQ"));
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]), "iommu=pt"));
  }
  SECTION("identity IOMMU is fine") {
    os.iommu(bdf, "14", "identity");
    CHECK(sysfs_obstacles(os, find_gpus(os, "AMD")[0]).empty());
  }
  SECTION("lockdown") {
    os.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]), "lockdown"));
  }
  SECTION("no physical addresses") {
    os.may_see_pfn = false;
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]), "CAP_SYS_ADMIN"));
  }
  SECTION("unassigned BAR") {
    os.write(os.folder(bdf) + "/resource", "0x0 0x0 0x0\n");
    CHECK(any_contains(sysfs_obstacles(os, find_gpus(os, "AMD")[0]), "rescan"));
  }
  SECTION("opening says the same and leaves nothing open") {
    os.bind(bdf, "amdgpu");
    std::string code;
    CHECK(error_of([&] { open_sysfs_device(os, find_gpus(os, "AMD")[0]); }, &code).find("amdgpu") != std::string::npos);
    CHECK(code == "not_ready");
    CHECK(open_files(os) == 0);
  }
}

TEST_CASE("an open function has config space, BARs and DMA memory, and closing undoes it", "[drivers][sysfs]") {
  FakeOs os;
  os.add_gpu("0000:03:00.0");
  const PciFunction f = find_gpus(os, "AMD")[0];
  {
    auto d = open_sysfs_device(os, f);
    CHECK(os.read(f.folder() + "/enable") == "1");
    CHECK(os.read(f.folder() + "/power/control") == "on");
    CHECK(d->config_read(0, 4) == 0x744c1002);
    d->set_bus_master(true);
    CHECK(d->bus_master());
    CHECK((d->config_read(4, 2) & 0x406) == 0x406);  // INTx off, bus master, memory
    CHECK_THROWS_AS(d->config_read(2, 4), Error);
    CHECK_THROWS_AS(d->config_read(4096, 1), Error);
    BarMapping registers = d->map_bar(5, BarCaching::kUncached), vram = d->map_bar(0, BarCaching::kWriteCombined);
    CHECK(registers.size() == 1 * MiB);
    registers.mmio().write32(0x100, 0xabcd1234);
    CHECK(d->map_bar(5, BarCaching::kUncached).mmio().read32(0x100) == 0xabcd1234);
    CHECK_THROWS_AS(d->map_bar(1, BarCaching::kUncached), TransportError);
    vram.mmio().write32(0, 7);
    CHECK(os.read_text(f.folder() + "/resource0_wc")->substr(0, 1) ==
          std::string(1, '\7'));  // the write-combined file was taken
    DmaBuffer m = d->alloc_dma(5000, false);
    CHECK(m.size() == 8192);
    REQUIRE(m.pages().size() == 2);
    CHECK(m.pages()[0].value == (reinterpret_cast<uintptr_t>(m.cpu()) & 0xffffffff000));
    DmaBuffer big = d->alloc_dma(1 * MiB, true);
    for (size_t i = 1; i < big.pages().size(); ++i) REQUIRE(big.pages()[i] - big.pages()[i - 1] == 4096);
    CHECK_THROWS_AS(d->alloc_dma(4 * MiB, true), Error);
    os.huge_pages = false;
    CHECK(error_of([&] { d->alloc_dma(1 * MiB, true); }).find("nr_hugepages") != std::string::npos);
    os.may_see_pfn = false;
    CHECK(error_of([&] { d->alloc_dma(4096, false); }).find("CAP_SYS_ADMIN") != std::string::npos);
    os.may_see_pfn = true;
    d->set_dma_bits(32);
    os.pfn_offset = uint64_t{1} << 40;
    CHECK(error_of([&] { d->alloc_dma(4096, false); }).find("32 address bits") != std::string::npos);
    CHECK_THROWS_AS(d->reset(), UnsupportedError);
    CHECK_FALSE(d->has_interrupt());
    CHECK_THROWS_AS(d->wait_interrupt(std::chrono::milliseconds(1)), UnsupportedError);
  }
  CHECK(os.read(f.folder() + "/enable")[0] == '0');
  CHECK(os.read(f.folder() + "/power/control").starts_with("auto"));
  CHECK((os.read_text(f.folder() + "/config")->at(4) & 4) == 0);
  CHECK(open_files(os) == 0);
}

TEST_CASE("a BAR is left alone where it cannot grow", "[drivers][sysfs]") {
  FakeOs os;
  os.add_gpu("0000:03:00.0");
  const PciFunction f = find_gpus(os, "AMD")[0];
  auto d = open_sysfs_device(os, f);
  CHECK(d->resize_bar_to_largest(0) == 256 * MiB);  // no such file
  os.write(f.folder() + "/resource0_resize", "0000000000000100\n");
  CHECK(d->resize_bar_to_largest(0) == 256 * MiB);  // it is the largest
  CHECK(os.read(f.folder() + "/resource0_resize") == "0000000000000100");
  os.write(f.folder() + "/resource0_resize", "0000000000000f00\n");
  {
    BarMapping m = d->map_bar(5, BarCaching::kUncached);
    CHECK_THROWS_AS(d->resize_bar_to_largest(0), Error);
  }
  CHECK(d->resize_bar_to_largest(0) == 256 * MiB);                     // this kernel takes the write and does nothing
  CHECK(os.read(f.folder() + "/resource0_resize").starts_with("11"));  // 2^11 MiB was asked for, as a number of bits
}

TEST_CASE("the lock keeps others out, names the holder, and dies with it", "[drivers][lock]") {
  FakeOs os;
  os.add_gpu("0000:03:00.0");
  const PciFunction f = find_gpus(os, "AMD")[0];
  int pipe_fd[2];
  REQUIRE(::pipe(pipe_fd) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(os.path(lock_path(f)).c_str(), O_RDWR | O_CREAT, 0666);
    const bool ok = fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    (void)!::write(pipe_fd[1], ok ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char ready = 0;
  REQUIRE(::read(pipe_fd[0], &ready, 1) == 1);
  REQUIRE(ready == 'y');
  // The kernel's own table names the holder; the fake tree gets a copy of the real one.
  std::ifstream in("/proc/locks");
  os.write("/proc/locks", std::string(std::istreambuf_iterator<char>(in), {}));
  os.write("/proc/" + std::to_string(child) + "/comm", "holder\n");
  std::string code;
  const std::string e = error_of([&] { open_sysfs_device(os, f); }, &code);
  CAPTURE(e);
  CHECK(code == "device_held");
  CHECK(e.find("in use by") != e.npos);
  if (os.read("/proc/locks").find(std::to_string(child)) != std::string::npos)
    CHECK(e.find(std::to_string(child) + " (holder)") != e.npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_NOTHROW(open_sysfs_device(os, f));
  ::close(pipe_fd[0]);
  ::close(pipe_fd[1]);
}

TEST_CASE("the interface table lists and refuses", "[drivers][interfaces]") {
  FakeOs os;
  os.add_gpu("0000:03:00.0");
  os.add_gpu("0000:0a:00.0");
  os.bind("0000:0a:00.0", "amdgpu");
  register_native_interfaces(os);
  const PciInterface* pci = find_pci_interface("PCI");
  REQUIRE(pci);
  const DeviceSpec spec{.iface = "PCI", .kind = "AMD"};
  const auto found = pci->list(spec);
  REQUIRE(found.size() == 2);
  CHECK(found[0].usable);
  CHECK(found[0].owner == "no driver");
  CHECK_FALSE(found[1].usable);
  CHECK(found[1].owner == "amdgpu");
  CHECK_NOTHROW(pci->open(spec));
  DeviceSpec far = spec;
  far.index = 5;
  std::string code;
  error_of([&] { pci->open(far); }, &code);
  CHECK(code == "no_device");
  CHECK(find_pci_interface("NOPE") == nullptr);
}
