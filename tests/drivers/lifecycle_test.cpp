// Every step of opening a function fails once, in turn: what was taken by then is given back, and the next open works.
#include <linux/vfio.h>
#include <catch2/catch.hpp>

#include "drivers/base/error.hpp"
#include "drivers/sysfs_device.hpp"
#include "drivers/vfio_device.hpp"
#include "fake_sys.hpp"

using namespace baregpu;

namespace {

/// Fails the n-th system call that opening makes.
class FailingOs : public test::FakeOs {
 public:
  FailingOs() {
    add_gpu(kBdf);
    write("/dev/vfio/vfio", "");
    write("/dev/vfio/14", "");
  }
  int open(const std::string& absolute, int flags, mode_t mode = 0) override {
    if (fails()) return -1;
    const int fd = FakeOs::open(absolute, flags, mode);
    live += fd >= 0;
    return fd;
  }
  int close(int fd) override {
    --live;
    return FakeOs::close(fd);
  }
  int write_text(const std::string& absolute, const std::string& text) override {
    if (fails()) return errno;
    return FakeOs::write_text(absolute, text);
  }
  int ioctl(int, unsigned long request, void* argument) override {
    if (fails()) return -1;
    switch (request) {
      case VFIO_GROUP_GET_STATUS: static_cast<vfio_group_status*>(argument)->flags = VFIO_GROUP_FLAGS_VIABLE; return 0;
      case VFIO_GROUP_GET_DEVICE_FD: ++live; return ::dup(0);
      case VFIO_DEVICE_GET_INFO: {
        auto* i = static_cast<vfio_device_info*>(argument);
        i->flags = VFIO_DEVICE_FLAGS_PCI;
        i->num_regions = 9;
        return 0;
      }
      default: return 0;  // version 0, and structures left as zeros: no capabilities, no interrupts
    }
  }
  void arm(int n) { countdown = n; }
  bool fired() const { return countdown == 0; }

  static constexpr const char* kBdf = "0000:03:00.0";
  int live = 0;

 private:
  bool fails() {
    if (countdown <= 0 || --countdown != 0) return false;
    errno = EIO;
    return true;
  }
  int countdown = -1;
};

}  // namespace

TEST_CASE("sysfs: a failed open is undone wholly, at every step", "[drivers][lifecycle]") {
  FailingOs os;
  const PciFunction f = find_gpus(os, "AMD")[0];
  int steps = 0;
  for (int n = 1;; ++n) {
    CAPTURE(n);
    os.arm(n);
    bool fired = false;
    try {
      const auto d = open_sysfs_device(os, f);
      fired = os.fired();  // a step that it can do without
      os.arm(-1);
    } catch (const Error&) {
      fired = true;
      os.arm(-1);
    }
    if (!fired) break;
    ++steps;
    CHECK(os.live == 0);
    CHECK(os.read(f.folder() + "/power/control").starts_with("auto"));
    CHECK(os.read(f.folder() + "/enable")[0] == '0');
    CHECK_NOTHROW(open_sysfs_device(os, f));
    CHECK(os.live == 0);
  }
  CHECK(steps >= 4);  // lock, config, power, enable
}

TEST_CASE("VFIO: a failed open is undone wholly, at every step", "[drivers][lifecycle]") {
  FailingOs os;
  os.bind(os.kBdf, "vfio-pci");
  os.iommu(os.kBdf, "14", "DMA");
  const PciFunction f = find_gpus(os, "AMD")[0];
  int steps = 0;
  for (int n = 1;; ++n) {
    CAPTURE(n);
    os.arm(n);
    bool fired = false;
    try {
      const auto d = open_vfio_device(os, f);
      fired = os.fired();  // a step that it can do without
      os.arm(-1);
    } catch (const Error&) {
      fired = true;
      os.arm(-1);
    }
    if (!fired) break;
    ++steps;
    CHECK(os.live == 0);
    CHECK_NOTHROW(open_vfio_device(os, f));
    CHECK(os.live == 0);
  }
  CHECK(steps >= 9);  // lock, container, version, group, status, set container, set IOMMU, IOMMU info, device, ...
}
