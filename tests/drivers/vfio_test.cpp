// VFIO over a made-up kernel, and its address allocator.
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "drivers/base/error.hpp"
#include "drivers/iova.hpp"
#include "drivers/vfio_device.hpp"
#include "fake_sys.hpp"

using namespace baregpu;

namespace {

/// vfio-pci and type1, with the answers that linux/vfio.h documents. Calls out of order fail as the kernel's do.
class FakeVfio : public test::FakeOs {
 public:
  enum { kContainer = 1000, kGroup, kDevice };
  FakeVfio() {
    add_gpu("0000:03:00.0");
    bind("0000:03:00.0", "vfio-pci");
    iommu("0000:03:00.0", "14", "DMA");
    write("/dev/vfio/vfio", "");
    write("/dev/vfio/14", "");
  }
  int open(const std::string& absolute, int flags, mode_t mode = 0) override {
    if (absolute == "/dev/vfio/vfio") return ++live, kContainer;
    if (absolute == "/dev/vfio/14" || absolute == "/dev/vfio/noiommu-14") {
      if (group_error) {
        errno = group_error;
        return -1;
      }
      return ++live, kGroup;
    }
    return FakeOs::open(absolute, flags, mode);
  }
  int close(int fd) override {
    if (fd >= kContainer) return --live, 0;
    return FakeOs::close(fd);
  }
  ssize_t pread(int fd, void* out, size_t size, off_t offset) override {
    if (fd != kDevice) return FakeOs::pread(fd, out, size, offset);
    std::memcpy(out, config.data() + (offset - kConfigOffset), size);
    return ssize_t(size);
  }
  ssize_t pwrite(int fd, const void* in, size_t size, off_t offset) override {
    if (fd != kDevice) return FakeOs::pwrite(fd, in, size, offset);
    std::memcpy(config.data() + (offset - kConfigOffset), in, size);
    return ssize_t(size);
  }
  void* mmap(size_t size, int protection, int flags, int fd, off_t offset) override {
    if (fd != kDevice) return FakeOs::mmap(size, protection, flags, fd, offset);
    mapped_offset = uint64_t(offset);
    return Os::mmap(size, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    auto no = [](int e) {
      errno = e;
      return -1;
    };
    switch (request) {
      case VFIO_GET_API_VERSION: return 0;
      case VFIO_GROUP_GET_STATUS:
        static_cast<vfio_group_status*>(argument)->flags = viable ? VFIO_GROUP_FLAGS_VIABLE : 0;
        return 0;
      case VFIO_GROUP_SET_CONTAINER:
        return *static_cast<int*>(argument) == kContainer ? (has_group = true, 0) : no(EBADF);
      case VFIO_SET_IOMMU:
        return has_group && argument == reinterpret_cast<void*>(no_iommu ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1v2_IOMMU)
                   ? (has_iommu = true, 0)
                   : no(EINVAL);
      case VFIO_GROUP_GET_DEVICE_FD: return has_iommu ? (++live, kDevice) : no(EINVAL);
      case VFIO_IOMMU_GET_INFO: {
        if (no_iommu) return no(ENOTTY);
        struct RangeCap {
          vfio_info_cap_header header;
          uint32_t nr_iovas, reserved;
          vfio_iova_range ranges[2];
        };
        struct Answer {
          vfio_iommu_type1_info info;
          RangeCap cap;
        };
        static_assert(offsetof(RangeCap, ranges) == sizeof(vfio_iommu_type1_info_cap_iova_range));
        auto* info = static_cast<vfio_iommu_type1_info*>(argument);
        const uint32_t room = info->argsz;
        Answer a{};
        a.info.argsz = sizeof a;
        a.info.flags = VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS;
        a.info.cap_offset = room >= sizeof a ? offsetof(Answer, cap) : 0;
        a.cap.header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
        a.cap.header.next = loop_caps ? offsetof(Answer, cap) : 0;
        a.cap.nr_iovas = 2;
        a.cap.ranges[0] = {0, 0xfedfffff};
        a.cap.ranges[1] = {0xfef00000, 0x7fffffffff};
        std::memcpy(argument, &a, std::min<size_t>(room, sizeof a));
        return 0;
      }
      case VFIO_IOMMU_MAP_DMA: {
        const auto* m = static_cast<vfio_iommu_type1_dma_map*>(argument);
        if (no_iommu) return no(ENOTTY);
        if (map_error) return no(map_error);
        if ((m->iova | m->size | m->vaddr) % 4096 || m->size == 0) return no(EINVAL);
        if (m->iova <= 0xfeefffff && m->iova + m->size > 0xfee00000) return no(EINVAL);  // the MSI window
        for (auto [at, size] : maps)
          if (m->iova < at + size && at < m->iova + m->size) return no(EEXIST);
        maps[m->iova] = m->size;
        return 0;
      }
      case VFIO_IOMMU_UNMAP_DMA: {
        auto* u = static_cast<vfio_iommu_type1_dma_unmap*>(argument);
        if (!maps.contains(u->iova) || maps[u->iova] != u->size)
          u->size = 0;
        else
          maps.erase(u->iova);
        return 0;
      }
      case VFIO_DEVICE_GET_INFO: {
        auto* i = static_cast<vfio_device_info*>(argument);
        i->flags = VFIO_DEVICE_FLAGS_PCI | (can_reset ? VFIO_DEVICE_FLAGS_RESET : 0u);
        i->num_regions = 9;
        i->num_irqs = 5;
        return 0;
      }
      case VFIO_DEVICE_GET_REGION_INFO: {
        auto* r = static_cast<vfio_region_info*>(argument);
        r->offset = uint64_t{r->index} << 40;
        r->size = r->index == 0 ? 256 << 20 : r->index == 5 ? 1 << 20 : r->index == 7 ? 4096 : 0;
        r->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
                   (r->index < 6 ? unsigned(VFIO_REGION_INFO_FLAG_MMAP) : 0u);
        return 0;
      }
      case VFIO_DEVICE_GET_IRQ_INFO: {
        auto* i = static_cast<vfio_irq_info*>(argument);
        i->count = i->index == VFIO_PCI_MSI_IRQ_INDEX    ? msi_vectors
                   : i->index == VFIO_PCI_MSIX_IRQ_INDEX ? msix_vectors
                                                         : 0;
        i->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
        return 0;
      }
      case VFIO_DEVICE_SET_IRQS: {
        const auto* s = static_cast<vfio_irq_set*>(argument);
        if (s->index != VFIO_PCI_MSI_IRQ_INDEX && s->index != VFIO_PCI_MSIX_IRQ_INDEX) return no(EINVAL);
        if (s->count > (s->index == VFIO_PCI_MSI_IRQ_INDEX ? msi_vectors : msix_vectors)) return no(EINVAL);
        irq_index = int(s->index);
        std::memcpy(&event, s->data, sizeof event);
        return 0;
      }
      case VFIO_DEVICE_RESET: return ++resets, 0;
      default: return FakeOs::ioctl(fd, request, argument);
    }
  }

  static constexpr off_t kConfigOffset = off_t{7} << 40;
  std::vector<char> config = [] {
    std::vector<char> c(4096, 0);
    c[0] = 0x02, c[1] = 0x10, c[2] = 0x4c, c[3] = 0x74, c[4] = 0x03;
    return c;
  }();
  int live = 0, group_error = 0, map_error = 0, resets = 0, event = -1, irq_index = -1;
  unsigned msi_vectors = 1, msix_vectors = 0;
  bool no_iommu = false, can_reset = true, viable = true, has_group = false, has_iommu = false, loop_caps = false;
  uint64_t mapped_offset = 0;
  std::map<uint64_t, uint64_t> maps;
};

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

TEST_CASE("a VFIO function maps, resets, interrupts and gives everything back", "[drivers][vfio]") {
  FakeVfio os;
  const PciFunction f = find_gpus(os, "AMD")[0];
  {
    auto d = open_vfio_device(os, f);
    CHECK(d->config_read(0, 4) == 0x744c1002);
    d->set_bus_master(true);
    CHECK(os.config[4] == 7);
    BarMapping b = d->map_bar(5, BarCaching::kUncached);
    CHECK(b.size() == 1 * MiB);
    CHECK(os.mapped_offset == uint64_t{5} << 40);
    CHECK_THROWS_AS(d->map_bar(2, BarCaching::kUncached), TransportError);
    DmaBuffer m = d->alloc_dma(3 * 4096 + 1, false);
    REQUIRE(m.pages().size() == 4);
    CHECK(m.pages()[0].value >= 4096);
    for (size_t i = 1; i < 4; ++i) CHECK(m.pages()[i] - m.pages()[i - 1] == 4096);
    CHECK(os.maps.size() == 1);
    m = DmaBuffer();
    CHECK(os.maps.empty());
    CHECK(d->has_interrupt());
    CHECK_FALSE(d->wait_interrupt(std::chrono::milliseconds(1)));
    ::eventfd_write(os.event, 1);
    ::eventfd_write(os.event, 1);
    CHECK(d->wait_interrupt(std::chrono::milliseconds(100)));
    CHECK_FALSE(d->wait_interrupt(std::chrono::milliseconds(1)));
    d->reset();
    CHECK(os.resets == 1);
    os.map_error = ENOMEM;
    CHECK(error_of([&] { d->alloc_dma(4096, false); }).find("ulimit") != std::string::npos);
  }
  CHECK(os.live == 0);
  CHECK((os.config[4] & 4) == 0);  // bus master off before memory goes
}

TEST_CASE("what goes wrong with VFIO is told, and nothing stays open", "[drivers][vfio]") {
  FakeVfio os;
  const PciFunction f = find_gpus(os, "AMD")[0];
  os.group_error = EBUSY;
  CHECK(error_of([&] { open_vfio_device(os, f); }).find("another process") != std::string::npos);
  os.group_error = EACCES;
  CHECK(error_of([&] { open_vfio_device(os, f); }).find("chown") != std::string::npos);
  os.group_error = 0;
  os.viable = false;
  CHECK(error_of([&] { open_vfio_device(os, f); }).find("not viable") != std::string::npos);
  CHECK(os.live == 0);
  os.viable = true;
  os.loop_caps = true;  // a capability chain that never ends
  CHECK_NOTHROW(open_vfio_device(os, f));
  os.add_gpu("0000:03:00.1", 0xab30, 0x1002, 0x040300);
  os.bind("0000:03:00.1", "snd_hda_intel");
  std::filesystem::create_directories(os.path("/sys/kernel/iommu_groups/14/devices/0000:03:00.1"));
  const std::string e = error_of([&] { open_vfio_device(os, f); });
  CHECK(e.find("0000:03:00.1 shares IOMMU group 14 and snd_hda_intel has it") != e.npos);
  os.bind("0000:03:00.0", "amdgpu");
  CHECK(error_of([&] { open_vfio_device(os, find_gpus(os, "AMD")[0]); }).find("driver_override") != std::string::npos);
}

TEST_CASE("MSI-X serves where MSI is not there; with neither the function is polled", "[drivers][vfio]") {
  FakeVfio os;
  const PciFunction f = find_gpus(os, "AMD")[0];
  os.msi_vectors = 0;
  os.msix_vectors = 4;
  {
    auto d = open_vfio_device(os, f);
    CHECK(os.irq_index == VFIO_PCI_MSIX_IRQ_INDEX);
    ::eventfd_write(os.event, 1);
    CHECK(d->wait_interrupt(std::chrono::milliseconds(100)));
  }
  os.msix_vectors = 0;
  auto d = open_vfio_device(os, f);
  CHECK_FALSE(d->has_interrupt());
  CHECK_THROWS_AS(d->wait_interrupt(std::chrono::milliseconds(1)), UnsupportedError);
}

TEST_CASE("without an IOMMU VFIO gives interrupts and BARs, and memory has physical addresses", "[drivers][vfio]") {
  FakeVfio os;
  os.no_iommu = true;
  std::filesystem::remove(os.path("/dev/vfio/14"));
  os.write("/dev/vfio/noiommu-14", "");
  const PciFunction f = find_gpus(os, "AMD")[0];
  CHECK(vfio_obstacles(os, f).empty());
  {
    auto d = open_vfio_device(os, f);
    DmaBuffer m = d->alloc_dma(8192, false);
    REQUIRE(m.pages().size() == 2);
    CHECK(m.pages()[0].value ==
          (reinterpret_cast<uintptr_t>(m.cpu()) & 0xffffffff000));  // the fake's page frame numbers
    CHECK(d->has_interrupt());
    d->set_dma_bits(40);
    os.may_see_pfn = false;
    CHECK(error_of([&] { d->alloc_dma(4096, false); }).find("CAP_SYS_ADMIN") != std::string::npos);
  }
  CHECK(os.live == 0);
}

TEST_CASE("the width of DMA addresses is kept, and cannot change under live memory", "[drivers][vfio]") {
  FakeVfio os;
  auto d = open_vfio_device(os, find_gpus(os, "AMD")[0]);
  d->set_dma_bits(24);  // 16 MiB
  {
    DmaBuffer m = d->alloc_dma(8 * MiB, false);
    CHECK(m.pages().back().value < 16 * MiB);
    CHECK_THROWS_AS(d->set_dma_bits(32), Error);
    CHECK_NOTHROW(d->set_dma_bits(24));
    CHECK_THROWS_AS(d->alloc_dma(16 * MiB, false), OutOfMemoryError);
  }
  d->set_dma_bits(44);
  CHECK_NOTHROW(d->alloc_dma(32 * MiB, false));
}

TEST_CASE("a reset that VFIO does not have is refused, one after which the function is gone is an error",
          "[drivers][vfio]") {
  FakeVfio os;
  const PciFunction f = find_gpus(os, "AMD")[0];
  {
    os.can_reset = false;
    CHECK_THROWS_AS(open_vfio_device(os, f)->reset(), UnsupportedError);
  }
  os.can_reset = true;
  auto d = open_vfio_device(os, f);
  os.config.assign(4096, char(0xff));
  CHECK(error_of([&] { d->reset(); }).find("did not come back") != std::string::npos);
}

TEST_CASE("IOVAs never overlap, avoid holes, fit the device, and come back", "[drivers][iova]") {
  const IovaRange ranges[] = {{0, 0xfedfffff}, {0xfef00000, 0x7fffffffff}};
  IovaAllocator a(ranges, 33);
  std::mt19937 rng(1);
  std::map<uint64_t, uint64_t> live;
  for (int i = 0; i < 5000; ++i) {
    if (rng() % 3 || live.empty()) {
      const uint64_t size = (1 + rng() % 5000) * 4096, align = uint64_t{4096} << (rng() % 10);
      const auto at = a.allocate(size, align);
      if (!at) continue;
      REQUIRE(*at % align == 0);
      REQUIRE(*at >= 4096);
      REQUIRE(*at + size <= uint64_t{1} << 33);
      REQUIRE((*at + size <= 0xfee00000 || *at >= 0xfef00000));
      auto next = live.lower_bound(*at);
      if (next != live.end()) REQUIRE(*at + size <= next->first);
      if (next != live.begin()) REQUIRE(std::prev(next)->second <= *at);
      live[*at] = *at + size;
    } else {
      auto it = std::next(live.begin(), long(rng() % live.size()));
      a.free(it->first, it->second - it->first);
      live.erase(it);
    }
  }
  for (auto [at, end] : live) a.free(at, end - at);
  CHECK(a.allocate(0xfee00000 - 4096, 4096) == 4096);  // merged again
  CHECK(a.allocate((uint64_t{1} << 33) - 0xfef00000, 4096) == 0xfef00000);
  CHECK_FALSE(a.allocate(4096, 4096));
}
