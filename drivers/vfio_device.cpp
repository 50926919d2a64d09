#include "drivers/vfio_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"
#include "drivers/host_memory.hpp"
#include "drivers/iova.hpp"

// Sequence: Linux Documentation/driver-api/vfio.rst; structures: linux/vfio.h.
namespace baregpu {
namespace {

[[noreturn]] void fail(const std::string& device, const std::string& what, const std::string& source, int error,
                       const char* hint = "") {
  throw TransportError({.device = device,
                        .what = what,
                        .source = source + (error ? std::string(": ") + std::strerror(error) : ""),
                        .hint = hint});
}

/// One container with one group: an address space of its own.
class Container {
 public:
  Container(Os& os, const PciFunction& f) : os_(os), name_(f.bdf) {
    container_ = FileDescriptor(os_, os_.open("/dev/vfio/vfio", O_RDWR));
    if (!container_)
      fail(name_, "cannot open VFIO", "/dev/vfio/vfio", errno, "load the module: `sudo modprobe vfio-pci`");
    if (call("VFIO_GET_API_VERSION", container_, VFIO_GET_API_VERSION, nullptr) != VFIO_API_VERSION)
      fail(name_, "unknown VFIO API version", "VFIO_GET_API_VERSION", 0);
    const std::string node = vfio_group_node(os_, f);
    no_iommu_ = node.starts_with("/dev/vfio/noiommu-");
    group_ = FileDescriptor(os_, os_.open(node, O_RDWR));
    if (!group_) {
      const int e = errno;
      if (e == EBUSY)
        throw TransportError({.device = name_,
                              .what = "another process has the VFIO group",
                              .source = node,
                              .hint = "end that process first"},
                             "device_held");
      fail(name_, "cannot open the VFIO group", node, e,
           e == EACCES ? "give this user the node, e.g. `sudo chown $USER <node>`"
                       : "bind the function to vfio-pci; `baregpu info` tells how");
    }
    vfio_group_status status{};
    status.argsz = sizeof status;
    call("VFIO_GROUP_GET_STATUS", group_, VFIO_GROUP_GET_STATUS, &status);
    if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
      fail(name_, "the IOMMU group is not viable: a kernel driver has another function of it", node, 0,
           "`baregpu info` lists the function and how to release it");
    int container_fd = container_.get();
    call("VFIO_GROUP_SET_CONTAINER", group_, VFIO_GROUP_SET_CONTAINER, &container_fd);
    call("VFIO_SET_IOMMU", container_, VFIO_SET_IOMMU,
         reinterpret_cast<void*>(uintptr_t{no_iommu_ ? unsigned(VFIO_NOIOMMU_IOMMU) : unsigned(VFIO_TYPE1v2_IOMMU)}));
    std::string bdf = f.bdf;
    device_ = FileDescriptor(os_, os_.ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, bdf.data()));
    if (!device_) fail(name_, "VFIO does not give the function", "VFIO_GROUP_GET_DEVICE_FD", errno);
  }
  int device() const { return device_.get(); }
  bool no_iommu() const { return no_iommu_; }

  /// What the IOMMU can translate; everything below 2^39 minus the MSI window where the kernel does not say.
  std::vector<IovaRange> iova_ranges() {
    std::vector<std::byte> buffer(sizeof(vfio_iommu_type1_info));
    for (int i = 0; i < 2; ++i) {
      auto* info = reinterpret_cast<vfio_iommu_type1_info*>(buffer.data());
      info->argsz = uint32_t(buffer.size());
      call("VFIO_IOMMU_GET_INFO", container_, VFIO_IOMMU_GET_INFO, info);
      if (info->argsz <= buffer.size()) break;
      buffer.resize(std::min<uint32_t>(info->argsz, 1 << 16));
    }
    std::vector<IovaRange> out;
    vfio_iommu_type1_info info;
    std::memcpy(&info, buffer.data(), sizeof info);
    if (info.flags & VFIO_IOMMU_INFO_CAPS)
      // Each link is checked: the chain comes from outside and must end.
      for (uint32_t at = info.cap_offset, hops = 0;
           at && at + sizeof(vfio_info_cap_header) <= buffer.size() && hops < 64; ++hops) {
        vfio_info_cap_header cap;
        std::memcpy(&cap, buffer.data() + at, sizeof cap);
        if (cap.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE &&
            at + sizeof(vfio_iommu_type1_info_cap_iova_range) <= buffer.size()) {
          vfio_iommu_type1_info_cap_iova_range ranges;
          std::memcpy(&ranges, buffer.data() + at, sizeof ranges);
          for (uint32_t i = 0;
               i < ranges.nr_iovas && at + sizeof ranges + (i + 1) * sizeof(vfio_iova_range) <= buffer.size(); ++i) {
            vfio_iova_range r;
            std::memcpy(&r, buffer.data() + at + sizeof ranges + i * sizeof r, sizeof r);
            out.push_back({r.start, r.end});
          }
        }
        at = cap.next;
      }
    if (out.empty()) out = {{0, 0xfedfffff}, {0xfef00000, 0x7fffffffff}};
    return out;
  }

  /// 0 or an errno value.
  int map(void* at, uint64_t iova, uint64_t size) {
    vfio_iommu_type1_dma_map m{};
    m.argsz = sizeof m;
    m.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    m.vaddr = reinterpret_cast<uintptr_t>(at);
    m.iova = iova;
    m.size = size;
    return os_.ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &m) == 0 ? 0 : errno;
  }
  bool unmap(uint64_t iova, uint64_t size) noexcept {
    vfio_iommu_type1_dma_unmap u{};
    u.argsz = sizeof u;
    u.iova = iova;
    u.size = size;
    return os_.ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &u) == 0 && u.size == size;
  }
  int call(const char* name, const FileDescriptor& fd, unsigned long request, void* argument) {
    const int r = os_.ioctl(fd.get(), request, argument);
    if (r < 0) fail(name_, "a VFIO call failed", name, errno);
    return r;
  }
  int device_call(const char* name, unsigned long request, void* argument) {
    return call(name, device_, request, argument);
  }

 private:
  Os& os_;
  std::string name_;
  FileDescriptor container_, group_, device_;  // closed in reverse order
  bool no_iommu_ = false;
};

class Mapping final : public BarMapping::Owner {
 public:
  Mapping(Os& os, void* at, uint64_t size) : os_(os), at_(at), size_(size) {}
  ~Mapping() override { os_.munmap(at_, size_); }

 private:
  Os& os_;
  void* at_;
  uint64_t size_;
};

/// Memory mapped into the IOMMU for as long as it lives.
class MappedMemory final : public DmaBuffer::Owner {
 public:
  MappedMemory(Os& os, Container& c, IovaAllocator& iovas, uint64_t size, const std::string& device)
      : memory_(os, size, false), container_(c), iovas_(iovas), size_(size) {
    // Naturally aligned where that is cheap: the GPU's own page tables then use larger fragments.
    const uint64_t align = std::min<uint64_t>(uint64_t{1} << log2_floor(size), 2 * MiB);
    const auto at = iovas_.allocate(size, align);
    if (!at)
      throw OutOfMemoryError(
          {.device = device, .what = fmt::format("no IOMMU addresses for {} bytes", size), .source = {}, .hint = {}});
    iova_ = *at;
    if (const int e = container_.map(memory_.data(), iova_, size); e != 0) {
      iovas_.free(iova_, size);
      throw OutOfMemoryError({.device = device,
                              .what = fmt::format("the IOMMU cannot map {} bytes", size),
                              .source = std::string("VFIO_IOMMU_MAP_DMA: ") + std::strerror(e),
                              .hint = e == ENOMEM   ? "raise the limit of locked memory: `ulimit -l unlimited`"
                                      : e == ENOSPC ? "too many mappings: vfio_iommu_type1.dma_entry_limit"
                                                    : ""});
    }
  }
  ~MappedMemory() override {
    // An address that could not be unmapped is not handed out again.
    if (container_.unmap(iova_, size_))
      iovas_.free(iova_, size_);
    else
      log::warn("VFIO: unmapping {:#x} failed", iova_);
  }
  std::byte* data() const { return memory_.data(); }
  uint64_t iova() const { return iova_; }

 private:
  PinnedMemory memory_;
  Container& container_;
  IovaAllocator& iovas_;
  uint64_t size_, iova_ = 0;
};

class VfioDevice final : public PciDevice {
 public:
  VfioDevice(Os& os, const PciFunction& f)
      : os_(os),
        f_(f),
        lock_(os, f),
        container_(os, f),
        iovas_(container_.no_iommu() ? std::vector<IovaRange>() : container_.iova_ranges(), dma_bits_) {
    vfio_device_info info{};
    info.argsz = sizeof info;
    container_.device_call("VFIO_DEVICE_GET_INFO", VFIO_DEVICE_GET_INFO, &info);
    if (!(info.flags & VFIO_DEVICE_FLAGS_PCI) || info.num_regions <= VFIO_PCI_CONFIG_REGION_INDEX)
      fail(name(), "VFIO does not know it as a PCI function", "VFIO_DEVICE_GET_INFO", 0);
    can_reset_ = info.flags & VFIO_DEVICE_FLAGS_RESET;
    config_ = region(VFIO_PCI_CONFIG_REGION_INDEX);
    set_up_interrupt();
  }

  ~VfioDevice() override {
    try {
      set_bus_master(false);
    } catch (const std::exception& e) {
      log::info("{}: {}", name(), e.what());
    }
  }

  const std::string& name() const override { return f_.bdf; }
  PciId id() const override { return f_.id; }

  uint32_t config_read(unsigned offset, unsigned width) override {
    check_config(offset, width);
    uint32_t value = 0;
    const ssize_t n = os_.pread(container_.device(), &value, width, off_t(config_.offset + offset));
    return n == ssize_t(width) ? value : 0xffffffffu >> (32 - 8 * width);
  }
  void config_write(unsigned offset, unsigned width, uint32_t value) override {
    check_config(offset, width);
    if (os_.pwrite(container_.device(), &value, width, off_t(config_.offset + offset)) != ssize_t(width))
      fail(name(), fmt::format("cannot write config space at {:#x}", offset), "VFIO config region", errno);
  }

  BarInfo bar_info(unsigned bar) override { return bar < f_.bars.size() ? f_.bars[bar] : BarInfo{}; }

  BarMapping map_bar(unsigned bar, BarCaching) override {  // VFIO maps uncached; write-combining is not offered
    if (bar > VFIO_PCI_BAR5_REGION_INDEX) throw Error(fmt::format("{}: there is no BAR {}", name(), bar));
    const vfio_region_info r = region(bar);
    if (r.size == 0) fail(name(), fmt::format("BAR {} is absent or has no address", bar), "VFIO region", 0);
    if (!(r.flags & VFIO_REGION_INFO_FLAG_MMAP))
      fail(name(), fmt::format("BAR {} cannot be mapped", bar), "VFIO region flags", 0);
    void* at = os_.mmap(r.size, PROT_READ | PROT_WRITE, MAP_SHARED, container_.device(), off_t(r.offset));
    if (at == MAP_FAILED)
      fail(name(), fmt::format("cannot map BAR {} ({} bytes)", bar, uint64_t{r.size}), "VFIO region", errno);
    ::madvise(at, r.size, MADV_DONTFORK);
    return BarMapping(Mmio(at, r.size), std::make_unique<Mapping>(os_, at, r.size));
  }

  // The kernel refuses it while vfio-pci has the function; it must be done through sysfs before binding.
  uint64_t resize_bar_to_largest(unsigned bar) override { return bar_info(bar).size; }

  DmaBuffer alloc_dma(uint64_t size, bool contiguous) override {
    if (size == 0) throw Error("0 bytes of DMA memory were asked for");
    size = align_up(size, 4096);
    if (container_.no_iommu()) {
      auto memory = std::make_unique<PinnedMemory>(os_, size, contiguous);
      std::vector<BusAddress> pages = memory->physical_pages(size, dma_bits_, name());
      const Mmio view(memory->data(), size);  // before `memory` is moved: arguments have no order
      return DmaBuffer(view, std::move(pages), std::move(memory));
    }
    auto memory = std::make_unique<MappedMemory>(os_, container_, iovas_, size, name());  // one run of addresses always
    std::vector<BusAddress> pages;
    for (uint64_t at = 0; at < size; at += 4096) pages.push_back(BusAddress(memory->iova() + at));
    const Mmio view(memory->data(), size);  // before `memory` is moved: arguments have no order
    return DmaBuffer(view, std::move(pages), std::move(memory));
  }
  void set_dma_bits(unsigned bits) override {
    if (!container_.no_iommu() && bits != dma_bits_) {
      // Addresses that are in use would be handed out a second time.
      if (iovas_.in_use())
        throw Error(fmt::format("{}: the width of DMA addresses must be set before the first allocation", name()));
      iovas_ = IovaAllocator(container_.iova_ranges(), bits);
    }
    dma_bits_ = bits;
  }

  void reset() override {
    if (!can_reset_)
      throw UnsupportedError({.device = name(),
                              .what = "VFIO has no way to reset this function alone",
                              .source = "VFIO_DEVICE_GET_INFO",
                              .hint = {}});
    container_.device_call("VFIO_DEVICE_RESET", VFIO_DEVICE_RESET, nullptr);
    for (int i = 0; i < 100 && config_read(0, 2) != f_.id.vendor; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (config_read(0, 2) != f_.id.vendor)
      fail(name(), "the function did not come back after a reset", "VFIO config region", 0);
  }

  bool has_interrupt() const override { return bool(event_); }
  bool wait_interrupt(std::chrono::milliseconds timeout) override {
    if (!event_) return PciDevice::wait_interrupt(timeout);
    pollfd p{event_.get(), POLLIN, 0};
    if (::poll(&p, 1, int(timeout.count())) <= 0) return false;
    uint64_t count;
    return ::read(event_.get(), &count, sizeof count) == sizeof count;  // several interrupts arrive as one count
  }

 private:
  vfio_region_info region(unsigned index) {
    vfio_region_info r{};
    r.argsz = sizeof r;
    r.index = index;
    container_.device_call("VFIO_DEVICE_GET_REGION_INFO", VFIO_DEVICE_GET_REGION_INFO, &r);
    return r;
  }

  /// One MSI, or one MSI-X vector, as an eventfd. A function without either is polled.
  void set_up_interrupt() {
    for (const unsigned index : {unsigned(VFIO_PCI_MSI_IRQ_INDEX), unsigned(VFIO_PCI_MSIX_IRQ_INDEX)}) {
      vfio_irq_info info{};
      info.argsz = sizeof info;
      info.index = index;
      if (os_.ioctl(container_.device(), VFIO_DEVICE_GET_IRQ_INFO, &info) != 0 || info.count == 0 ||
          !(info.flags & VFIO_IRQ_INFO_EVENTFD))
        continue;
      FileDescriptor event(os_, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!event) fail(name(), "cannot make an eventfd", "eventfd", errno);
      alignas(vfio_irq_set) std::byte buffer[sizeof(vfio_irq_set) + sizeof(int32_t)]{};
      vfio_irq_set set{};
      set.argsz = sizeof buffer;
      set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
      set.index = index;
      set.count = 1;
      const int32_t fd = event.get();
      std::memcpy(buffer, &set, sizeof set);
      std::memcpy(buffer + sizeof set, &fd, sizeof fd);
      if (os_.ioctl(container_.device(), VFIO_DEVICE_SET_IRQS, buffer) != 0) {
        log::info("{}: no interrupt: {}", name(), std::strerror(errno));
        continue;
      }
      event_ = std::move(event);
      return;
    }
  }
  void check_config(unsigned offset, unsigned width) const {
    if ((width != 1 && width != 2 && width != 4) || offset % width || offset + width > 4096)
      throw Error(fmt::format("{}: config space access of {} bytes at {:#x}", name(), width, offset));
  }

  Os& os_;
  PciFunction f_;
  DeviceLock lock_;
  unsigned dma_bits_ = 44;
  Container container_;
  IovaAllocator iovas_;
  vfio_region_info config_{};
  FileDescriptor event_;
  bool can_reset_ = false;
};

}  // namespace

std::unique_ptr<PciDevice> open_vfio_device(Os& os, const PciFunction& f) {
  const std::vector<std::string> obstacles = vfio_obstacles(os, f);
  if (!obstacles.empty()) {
    std::string text = "the GPU cannot be used through VFIO";
    for (const std::string& o : obstacles) text += "\n  " + o;
    throw TransportError({.device = f.bdf, .what = text, .source = {}, .hint = {}}, "not_ready");
  }
  return std::make_unique<VfioDevice>(os, f);
}

}  // namespace baregpu
