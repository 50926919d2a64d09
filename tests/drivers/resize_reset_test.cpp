// BAR resize, reset and loss of a function, against a made-up kernel that answers as Linux 6.1 does.
#include <catch2/catch.hpp>

#include "drivers/base/error.hpp"
#include "drivers/sysfs_device.hpp"
#include "fake_sys.hpp"

using namespace baregpu;

namespace {

/// resourceN_resize as Documentation/ABI/testing/sysfs-bus-pci has it: read = mask of sizes, write = bit number.
class ResizingOs : public test::FakeOs {
 public:
  ResizingOs() {
    add_gpu(kBdf);
    write(folder(kBdf) + "/resource0_resize", "0000000000007f00\n");  // 256 MiB .. 16 GiB
  }
  int write_text(const std::string& absolute, const std::string& text) override {
    if (absolute == folder(kBdf) + "/resource0_resize") {
      asked.push_back(text);
      const unsigned n = unsigned(std::stoul(text));
      if (busy) return EBUSY;
      if (n > largest) {
        if (loses_address && n != 8) assign(0);
        return ENOSPC;
      }
      if (lost_for_good) return ENOSPC;
      assign(uint64_t{1} << (20 + n));
      return 0;
    }
    if (absolute == folder(kBdf) + "/reset") {
      ++resets;
      if (reset_error) return reset_error;
      if (vanishes_in_reset) FakeOs::write(folder(kBdf) + "/config", std::string(4096, '\xff'));
      return 0;
    }
    return FakeOs::write_text(absolute, text);
  }
  void assign(uint64_t size) {
    const std::string first =
        size ? fmt::format("{:#018x} {:#018x} 0x000000000014220c\n", uint64_t{0x8000000000}, 0x8000000000 + size - 1)
             : "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    FakeOs::write(folder(kBdf) + "/resource",
                  first +
                      "0x0 0x0 0x0\n0x0000008800000000 0x00000088001fffff 0x000000000014220c\n0x0 0x0 0x0\n0x0 0x0 "
                      "0x0\n0x00000000fcb00000 0x00000000fcbfffff 0x0000000000040200\n");
  }

  static constexpr const char* kBdf = "0000:03:00.0";
  std::vector<std::string> asked;
  unsigned largest = 14, resets = 0;
  int reset_error = 0;
  bool busy = false, loses_address = false, lost_for_good = false, vanishes_in_reset = false;
};

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a BAR grows to the largest size, and its new address is the one that counts", "[drivers][sysfs][resize]") {
  ResizingOs os;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  CHECK(d->bar_info(0).bus.value == 0x6000000000);
  CHECK(d->resize_bar_to_largest(0) == 16 * GiB);
  CHECK(os.asked == std::vector<std::string>{"14"});
  CHECK(d->bar_info(0).size == 16 * GiB);
  CHECK(d->bar_info(0).bus.value == 0x8000000000);
  CHECK(d->bar_info(2).bus.value == 0x8800000000);  // the others move too
}

TEST_CASE("where the bridge has less room, the next smaller size is tried", "[drivers][sysfs][resize]") {
  ResizingOs os;
  os.largest = 11;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  CHECK(d->resize_bar_to_largest(0) == 2 * GiB);
  CHECK(os.asked == std::vector<std::string>{"14", "13", "12", "11"});
}

TEST_CASE("a resize that is refused leaves the BAR as it was", "[drivers][sysfs][resize]") {
  ResizingOs os;
  os.busy = true;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  CHECK(d->resize_bar_to_largest(0) == 256 * MiB);
  CHECK(d->bar_info(0).bus.value == 0x6000000000);
}

TEST_CASE("a BAR that lost its address in a failed resize gets it back, or the error says how",
          "[drivers][sysfs][resize]") {
  ResizingOs os;
  os.largest = 8;
  os.loses_address = true;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  SECTION("back") { CHECK(d->resize_bar_to_largest(0) == 256 * MiB); }
  SECTION("gone") {
    os.lost_for_good = true;
    const std::string e = error_of<TransportError>([&] { d->resize_bar_to_largest(0); });
    CAPTURE(e);
    CHECK(e.find("lost its address") != e.npos);
    CHECK(e.find("/sys/bus/pci/rescan") != e.npos);
  }
}

TEST_CASE("a reset is asked of the kernel, and the function must come back", "[drivers][sysfs][reset]") {
  ResizingOs os;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  CHECK(error_of<UnsupportedError>([&] { d->reset(); }).find("no way to reset") != std::string::npos);  // no such file
  os.write(os.folder(os.kBdf) + "/reset", "");
  d->reset();
  CHECK(os.resets == 1);
  os.reset_error = ENOTTY;
  CHECK(error_of<TransportError>([&] { d->reset(); }).find(os.kBdf) != std::string::npos);
  os.reset_error = 0;
  os.vanishes_in_reset = true;
  CHECK(error_of<TransportError>([&] { d->reset(); }).find("did not come back") != std::string::npos);
}

TEST_CASE("a function that is gone reads as all ones, and bus mastering says so", "[drivers][sysfs]") {
  ResizingOs os;
  auto d = open_sysfs_device(os, find_gpus(os, "AMD")[0]);
  CHECK_THROWS_AS(d->config_read(1, 2), Error);
  CHECK_THROWS_AS(d->config_read(4096, 4), Error);
  CHECK_THROWS_AS(d->config_read(0, 8), Error);
  std::filesystem::resize_file(os.path(os.folder(os.kBdf) + "/config"),
                               0);  // reads of a removed function return nothing
  CHECK(d->config_read(0, 4) == 0xffffffff);
  CHECK(d->config_read(0, 2) == 0xffff);
  CHECK(d->config_read(0, 1) == 0xff);
  std::string code;
  try {
    d->set_bus_master(true);
  } catch (const Error& e) {
    code = e.code();
  }
  CHECK(code == "device_lost");
}
