// A /sys, /proc and /dev in a folder of the test's own, with the text formats of Linux 6.1.
#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "drivers/os.hpp"

namespace baregpu::test {

namespace fs = std::filesystem;

class FakeOs : public Os {
 public:
  FakeOs() : root_(fs::temp_directory_path() / fmt::format("baregpu-sys-{}-{}", ::getpid(), next_++)) {
    for (const char* dir : {"sys/bus/pci/devices", "sys/kernel/iommu_groups", "proc", "dev/vfio", "tmp"})
      fs::create_directories(root_ / dir);
  }
  ~FakeOs() override { fs::remove_all(root_); }
  std::string path(const std::string& absolute) const override { return root_.string() + absolute; }
  void* mmap(size_t size, int protection, int flags, int fd, off_t offset) override {
    if (flags & MAP_HUGETLB) {
      if (!huge_pages) {
        errno = ENOMEM;
        return MAP_FAILED;
      }
      flags &= ~(MAP_HUGETLB | 63 << MAP_HUGE_SHIFT);
    }
    return Os::mmap(size, protection, flags & ~MAP_LOCKED, fd, offset);
  }
  std::vector<uint64_t> pagemap(const void* va, size_t pages) override {
    std::vector<uint64_t> out;
    for (size_t i = 0; i < pages; ++i)
      out.push_back(may_see_pfn
                        ? uint64_t{1} << 63 | (((reinterpret_cast<uintptr_t>(va) / 4096 + i) & 0xffffffff) + pfn_offset)
                        : 0x8180000000000000);
    return out;
  }

  void write(const std::string& absolute, const std::string& text) {
    fs::create_directories(fs::path(path(absolute)).parent_path());
    std::ofstream(path(absolute), std::ios::binary) << text;
  }
  std::string read(const std::string& absolute) { return read_text(absolute).value_or("(none)"); }
  std::string folder(const std::string& bdf) const { return "/sys/bus/pci/devices/" + bdf; }

  /// A Navi31 as the kernel shows one that nobody has: BAR0 of 256 MiB, BAR2 2 MiB, BAR5 1 MiB.
  void add_gpu(const std::string& bdf, uint16_t device = 0x744c, uint16_t vendor = 0x1002,
               uint32_t class_code = 0x030000) {
    const std::string dir = folder(bdf);
    write(dir + "/vendor", fmt::format("{:#06x}\n", vendor));
    write(dir + "/device", fmt::format("{:#06x}\n", device));
    write(dir + "/subsystem_vendor", "0x1da2\n");
    write(dir + "/subsystem_device", "0xe471\n");
    write(dir + "/class", fmt::format("{:#08x}\n", class_code));
    write(dir + "/revision", "0xc8\n");
    write(dir + "/irq", "0\n");
    write(dir + "/enable", "0\n");
    write(dir + "/power/control", "auto\n");
    write(dir + "/resource",
          "0x0000006000000000 0x000000600fffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 "
          "0x0000000000000000\n"
          "0x0000006010000000 0x00000060101fffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 "
          "0x0000000000000000\n"
          "0x000000000000e000 0x000000000000e0ff 0x0000000000040101\n0x00000000fcb00000 0x00000000fcbfffff "
          "0x0000000000040200\n");
    std::string config(4096, '\0');
    config[0] = char(vendor), config[1] = char(vendor >> 8), config[2] = char(device), config[3] = char(device >> 8);
    config[4] = 0x02;  // memory decode
    config[8] = char(0xc8), config[9] = char(class_code), config[10] = char(class_code >> 8),
    config[11] = char(class_code >> 16);
    config[0x2c] = char(0xa2), config[0x2d] = 0x1d, config[0x2e] = 0x71, config[0x2f] = char(0xe4);
    write(dir + "/config", config);
    for (auto [n, size] : {std::pair{0, 256 << 20}, {2, 2 << 20}, {5, 1 << 20}}) {
      write(fmt::format("{}/resource{}", dir, n), "");
      fs::resize_file(path(fmt::format("{}/resource{}", dir, n)), uintmax_t(size));
    }
    write(dir + "/resource0_wc", "");
    fs::resize_file(path(dir + "/resource0_wc"), 256 << 20);
  }
  void bind(const std::string& bdf, const std::string& driver) {
    fs::create_directories(path("/sys/bus/pci/drivers/" + driver));
    fs::remove(path(folder(bdf) + "/driver"));
    fs::create_directory_symlink("../../drivers/" + driver, path(folder(bdf) + "/driver"));
  }
  void iommu(const std::string& bdf, const std::string& group, const std::string& type) {
    fs::create_directories(path("/sys/kernel/iommu_groups/" + group + "/devices/" + bdf));
    write("/sys/kernel/iommu_groups/" + group + "/type", type + "\n");
    fs::create_directory_symlink("../../../../kernel/iommu_groups/" + group, path(folder(bdf) + "/iommu_group"));
  }

  bool may_see_pfn = true, huge_pages = true;
  uint64_t pfn_offset = 0;  ///< the low 32 bits of a virtual page number stand for the physical one

 protected:
  fs::path root_;

 private:
  static inline int next_ = 0;
};

}  // namespace baregpu::test
