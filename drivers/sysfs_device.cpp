#include "drivers/sysfs_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"
#include "drivers/host_memory.hpp"

namespace baregpu {
namespace {

class Mapping final : public BarMapping::Owner {
 public:
  Mapping(Os& os, void* at, uint64_t size, unsigned* live) : os_(os), at_(at), size_(size), live_(live) { ++*live_; }
  ~Mapping() override {
    os_.munmap(at_, size_);
    --*live_;
  }

 private:
  Os& os_;
  void* at_;
  uint64_t size_;
  unsigned* live_;
};

/// Puts a text back into an attribute in its destructor; empty = nothing to put back.
class Restore {
 public:
  Restore(Os& os, std::string file) : os_(os), file_(std::move(file)) {}
  ~Restore() {
    if (!text_.empty()) (void)os_.write_text(file_, text_);
  }
  Restore(const Restore&) = delete;
  const std::string& file() const { return file_; }
  void set(std::string text) { text_ = std::move(text); }

 private:
  Os& os_;
  std::string file_, text_;
};

class SysfsDevice final : public PciDevice {
 public:
  SysfsDevice(Os& os, const PciFunction& f)
      : os_(os), f_(f), lock_(os, f), power_(os, f.folder() + "/power/control"), enable_(os, f.folder() + "/enable") {
    config_ = FileDescriptor(os_, os_.open(f_.folder() + "/config", O_RDWR));
    if (!config_) fail("cannot open config space", "config", errno);
    // An unbound function may be suspended; config accesses wake it, mapped BARs do not.
    if (const auto before = os_.read_text(power_.file()); before && os_.write_text(power_.file(), "on") == 0)
      power_.set(*before);
    // `enable` counts: what is added here is taken back.
    if (const int e = os_.write_text(enable_.file(), "1"); e != 0) fail("cannot enable the function", "enable", e);
    enable_.set("0");
  }

  ~SysfsDevice() override {
    // Bus master first: nothing may be written into memory that is given back.
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
    const ssize_t n = os_.pread(config_.get(), &value, width, offset);
    // A function that was removed reads as a bus without a device would.
    return n == ssize_t(width) ? value : 0xffffffffu >> (32 - 8 * width);
  }

  void config_write(unsigned offset, unsigned width, uint32_t value) override {
    check_config(offset, width);
    if (os_.pwrite(config_.get(), &value, width, offset) != ssize_t(width))
      fail(fmt::format("cannot write config space at {:#x}", offset), "config", errno);
  }

  BarInfo bar_info(unsigned bar) override { return bar < f_.bars.size() ? f_.bars[bar] : BarInfo{}; }

  BarMapping map_bar(unsigned bar, BarCaching caching) override {
    const BarInfo info = bar_info(bar);
    if (info.size == 0) fail(fmt::format("BAR {} is absent or has no address", bar), "resource", 0);
    std::string file = fmt::format("{}/resource{}", f_.folder(), bar);
    // Write-combined files exist for prefetchable BARs only.
    if (caching == BarCaching::kWriteCombined && os_.exists(file + "_wc")) file += "_wc";
    FileDescriptor fd(os_, os_.open(file, O_RDWR));
    if (!fd) fail(fmt::format("cannot open BAR {}", bar), file, errno);
    void* at = os_.mmap(info.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) fail(fmt::format("cannot map BAR {} ({} bytes)", bar, info.size), file, errno);
    ::madvise(at, info.size, MADV_DONTFORK);
    return BarMapping(Mmio(at, info.size), std::make_unique<Mapping>(os_, at, info.size, &mappings_));
  }

  uint64_t resize_bar_to_largest(unsigned bar) override {
    const uint64_t before = bar_info(bar).size;
    const std::string file = fmt::format("{}/resource{}_resize", f_.folder(), bar);
    const auto text = os_.read_text(file);
    if (!text) return before;  // not resizable, or a kernel before 6.1
    if (mappings_) throw Error(fmt::format("{}: BAR {} cannot be resized while BARs are mapped", name(), bar));
    uint64_t mask = std::strtoull(text->c_str(), nullptr, 16);  // bit n: 2^n MiB
    int error = 0;
    while (mask && (uint64_t{1} << 20 << log2_floor(mask)) > bar_info(bar).size) {
      const unsigned n = log2_floor(mask);
      mask &= ~(uint64_t{1} << n);
      error = os_.write_text(file, std::to_string(n));
      f_.bars = read_bars(os_, f_.folder());  // addresses change, of the other BARs too
      if (error == 0) break;
      if (bar_info(bar).size == 0 && before) {
        // Some kernels leave the BAR without an address when the new size does not fit.
        (void)os_.write_text(file, std::to_string(log2_floor(before >> 20)));
        f_.bars = read_bars(os_, f_.folder());
        if (bar_info(bar).size == 0)
          throw TransportError(
              {.device = name(),
               .what = fmt::format("BAR {} lost its address in a failed resize to {} MiB", bar, uint64_t{1} << n),
               .source = std::strerror(error),
               .hint = fmt::format("`echo 1 | sudo tee {}/remove`, then `echo 1 | sudo tee /sys/bus/pci/rescan`",
                                   f_.folder())});
      }
    }
    const uint64_t now = bar_info(bar).size;
    if (error && now == before)
      log::info("{}: BAR {} stays at {} MiB: {}", name(), bar, now >> 20, std::strerror(error));
    return now;
  }

  DmaBuffer alloc_dma(uint64_t size, bool contiguous) override {
    if (size == 0) throw Error("0 bytes of DMA memory were asked for");
    size = align_up(size, 4096);
    auto memory = std::make_unique<PinnedMemory>(os_, size, contiguous);
    std::vector<BusAddress> pages = memory->physical_pages(size, dma_bits_, name());
    const Mmio view(memory->data(), size);  // before `memory` is moved: arguments have no order
    return DmaBuffer(view, std::move(pages), std::move(memory));
  }
  void set_dma_bits(unsigned bits) override { dma_bits_ = bits; }

  void reset() override {
    const std::string file = f_.folder() + "/reset";
    if (!os_.exists(file))
      throw UnsupportedError({.device = name(),
                              .what = "the kernel has no way to reset this function",
                              .source = file,
                              .hint = "a function that shares its bus with others cannot be reset by it"});
    if (const int e = os_.write_text(file, "1"); e != 0) fail("reset failed", "reset", e);
    for (int i = 0; i < 100; ++i) {
      const uint32_t id = config_read(0, 2);
      if (id == f_.id.vendor) return;  // 0xffff while in reset, 0x0001 while it asks for a retry
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    fail("the function did not come back after a reset", "config", 0);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& file, int error) const {
    const char* hint =
        error == EACCES || error == EPERM    ? "run as root; with kernel lockdown (Secure Boot) use DEV=VFIO+..."
        : error == EBUSY                     ? "a kernel driver has it; `baregpu info` tells how to release it"
        : error == ENODEV || error == ENOENT ? "the function is gone: `echo 1 | sudo tee /sys/bus/pci/rescan`"
                                             : "";
    throw TransportError({.device = name(),
                          .what = what,
                          .source = file + (error ? std::string(": ") + std::strerror(error) : ""),
                          .hint = hint});
  }
  void check_config(unsigned offset, unsigned width) const {
    if ((width != 1 && width != 2 && width != 4) || offset % width || offset + width > 4096)
      throw Error(fmt::format("{}: config space access of {} bytes at {:#x}", name(), width, offset));
  }

  Os& os_;
  PciFunction f_;
  DeviceLock lock_;
  FileDescriptor config_;
  Restore power_, enable_;  // in the order of bring-up
  unsigned mappings_ = 0, dma_bits_ = 44;
};

}  // namespace

std::unique_ptr<PciDevice> open_sysfs_device(Os& os, const PciFunction& f) {
  const std::vector<std::string> obstacles = sysfs_obstacles(os, f);
  if (!obstacles.empty()) {
    std::string text = "the GPU cannot be used through sysfs";
    for (const std::string& o : obstacles) text += "\n  " + o;
    throw TransportError({.device = f.bdf, .what = text, .source = {}, .hint = {}}, "not_ready");
  }
  return std::make_unique<SysfsDevice>(os, f);
}

}  // namespace baregpu
