#include "drivers/pci_functions.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <sstream>

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"

extern "C" {  // the header has no guard for C++
#include <pci/pci.h>
}

namespace baregpu {
namespace {

constexpr const char* kBus = "/sys/bus/pci";
constexpr uint64_t kFlagMemory = 0x200, kFlagPrefetch = 0x2000, kFlag64 = 0x100000;  // linux/ioport.h

// libpci's error hook may not return (its default ends the process); leaving its C frames by longjmp is what is left.
// No C++ object is created between setjmp and the calls.
thread_local std::jmp_buf* error_exit;
thread_local char error_text[256];
// GNU spelling: clang makes it part of the function's type, as the hook's type has it; [[noreturn]] is not.
__attribute__((noreturn)) void on_error(char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vsnprintf(error_text, sizeof error_text, format, args);
  va_end(args);
  std::longjmp(*error_exit, 1);
}
void ignore(char*, ...) {}

/// What is kept of one function while no C++ object may be made.
struct RawFunction {
  unsigned domain, bus, dev, func, class_code;
  uint16_t vendor, device, subsystem_vendor, subsystem_device;
  uint8_t revision;
  char model[160];
};
constexpr unsigned kMaxFunctions = 256;

bool scan(const char* bus_path, RawFunction* out, unsigned* count) {
  std::jmp_buf exit;
  error_exit = &exit;
  pci_access* volatile access = nullptr;
  if (setjmp(exit)) return false;  // the access structure leaks: libpci is in no state to be cleaned up
  access = pci_alloc();
  access->error = on_error;
  access->warning = ignore;
  access->debug = ignore;
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  char key[] = "sysfs.path";
  pci_set_param(access, key, const_cast<char*>(bus_path));
  pci_init(access);
  pci_scan_bus(access);
  *count = 0;
  for (pci_dev* d = access->devices; d && *count < kMaxFunctions; d = d->next) {
    pci_fill_info(d, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_SUBSYS | PCI_FILL_CLASS_EXT);
    const unsigned base = d->device_class >> 8;
    if ((d->vendor_id != 0x1002 && d->vendor_id != 0x10de) || (base != 0x03 && base != 0x12)) continue;
    RawFunction& r = out[(*count)++];
    r = {.domain = unsigned(d->domain),
         .bus = d->bus,
         .dev = d->dev,
         .func = d->func,
         .class_code = unsigned(d->device_class) << 8 | d->prog_if,
         .vendor = d->vendor_id,
         .device = d->device_id,
         .subsystem_vendor = d->subsys_vendor_id,
         .subsystem_device = d->subsys_id,
         .revision = d->rev_id,
         .model = {}};
    pci_lookup_name(access, r.model, sizeof r.model, PCI_LOOKUP_DEVICE | PCI_LOOKUP_VENDOR, d->vendor_id, d->device_id);
  }
  pci_cleanup(access);
  return true;
}

bool may_use(Os& os, const std::string& file) { return ::access(os.path(file).c_str(), R_OK | W_OK) == 0; }

/// Whether this process may see physical addresses: the PFN reads as 0 otherwise.
bool sees_physical_addresses(Os& os) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (page == MAP_FAILED) return false;
  *static_cast<volatile char*>(page) = 1;
  const uint64_t entry = os.pagemap(page, 1)[0];
  ::munmap(page, 4096);
  return (entry & ((uint64_t{1} << 55) - 1)) != 0;
}

bool locked_down(Os& os) {
  const auto mode = os.read_text("/sys/kernel/security/lockdown");
  return mode && (mode->find("[integrity]") != mode->npos || mode->find("[confidentiality]") != mode->npos);
}

void add_driver(std::vector<std::string>& out, const PciFunction& f, const char* wanted) {
  if (f.driver.empty() || f.driver == wanted) return;
  if (f.driver == "vfio-pci")
    out.push_back("vfio-pci has it: use DEV=VFIO+..., or release it with `echo " + f.bdf +
                  " | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind`");
  else
    out.push_back(
        fmt::format("the kernel driver {0} has it: end the programs that use it, then `echo {1} | sudo tee "
                    "/sys/bus/pci/drivers/{0}/unbind`",
                    f.driver, f.bdf));
}

}  // namespace

std::array<BarInfo, 6> read_bars(Os& os, const std::string& folder) {
  std::array<BarInfo, 6> bars{};
  std::istringstream in(os.read_text(folder + "/resource").value_or(""));
  uint64_t start, end, flags;
  for (unsigned i = 0; i < bars.size() && (in >> std::hex >> start >> end >> flags); ++i)
    if (end > start && (flags & kFlagMemory))
      bars[i] = {.bus = BusAddress(start),
                 .size = end - start + 1,
                 .prefetchable = (flags & kFlagPrefetch) != 0,
                 .is_64bit = (flags & kFlag64) != 0};
  return bars;
}

std::vector<PciFunction> find_gpus(Os& os, const std::string& kind) {
  if (!os.exists(kBus + std::string("/devices")))
    throw TransportError({.device = {},
                          .what = "this machine shows no PCI bus",
                          .source = std::string(kBus) + " does not exist",
                          .hint = "a container needs /sys of the host"});
  std::vector<RawFunction> raw(kMaxFunctions);
  unsigned count = 0;
  const std::string bus = os.path(kBus);
  if (!scan(bus.c_str(), raw.data(), &count))
    throw TransportError(
        {.device = {}, .what = std::string("the PCI bus cannot be listed: ") + error_text, .source = kBus, .hint = {}});
  std::vector<PciFunction> out;
  for (unsigned i = 0; i < count; ++i) {
    const RawFunction& r = raw[i];
    if (kind != (r.vendor == 0x1002 ? "AMD" : "NV")) continue;
    PciFunction f;
    f.bdf = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", r.domain, r.bus, r.dev, r.func);
    f.id = {.vendor = r.vendor,
            .device = r.device,
            .subsystem_vendor = r.subsystem_vendor,
            .subsystem_device = r.subsystem_device,
            .class_code = r.class_code,
            .revision = r.revision};
    if (!os.exists(f.folder())) continue;  // vanished meanwhile
    f.model = r.model;
    f.driver = os.link_name(f.folder() + "/driver");
    f.iommu_group = os.link_name(f.folder() + "/iommu_group");
    if (!f.iommu_group.empty())
      f.iommu_type = os.read_text("/sys/kernel/iommu_groups/" + f.iommu_group + "/type").value_or("unknown");
    f.bars = read_bars(os, f.folder());
    out.push_back(std::move(f));
  }
  std::sort(out.begin(), out.end(), [](const PciFunction& a, const PciFunction& b) { return a.bdf < b.bdf; });
  return out;
}

std::vector<std::string> sysfs_obstacles(Os& os, const PciFunction& f) {
  std::vector<std::string> out;
  add_driver(out, f, "");
  if (!f.iommu_group.empty() && f.iommu_type != "identity")
    out.push_back(
        fmt::format("an IOMMU translates its addresses (group {}, type {}), so physical addresses do not work: use "
                    "DEV=VFIO+..., or boot with iommu=pt",
                    f.iommu_group, f.iommu_type));
  if (locked_down(os))
    out.push_back(
        "kernel lockdown (Secure Boot) forbids access to PCI resources: use DEV=VFIO+..., or switch Secure Boot off");
  if (!may_use(os, f.folder() + "/config") || !may_use(os, f.folder() + "/resource0"))
    out.push_back("no permission for " + f.folder() + "/config and resource files: run as root");
  else if (!sees_physical_addresses(os))
    out.push_back("no permission to see physical addresses (/proc/self/pagemap): run as root or with CAP_SYS_ADMIN");
  if (f.bars[0].size == 0)
    out.push_back(
        fmt::format("BAR 0 has no address: `echo 1 | sudo tee {}/remove`, then `echo 1 | sudo tee /sys/bus/pci/rescan`",
                    f.folder()));
  return out;
}

std::vector<std::string> vfio_obstacles(Os& os, const PciFunction& f) {
  std::vector<std::string> out;
  if (f.driver != "vfio-pci") {
    const std::string unbind = f.driver.empty() ? "" : fmt::format("echo {} > {}/driver/unbind; ", f.bdf, f.folder());
    out.push_back(
        fmt::format("vfio-pci does not have it{}: as root, `modprobe vfio-pci; {}echo vfio-pci > {}/driver_override; "
                    "echo {} > /sys/bus/pci/drivers_probe`",
                    f.driver.empty() ? "" : " (" + f.driver + " has)", unbind, f.folder(), f.bdf));
  }
  if (f.iommu_group.empty()) {
    out.push_back(
        "there is no IOMMU: enable it in the firmware setup (VT-d, AMD-Vi) and boot with intel_iommu=on or "
        "amd_iommu=on; DEV=PCI+... works without one");
    return out;
  }
  for (const std::string& other : os.list("/sys/kernel/iommu_groups/" + f.iommu_group + "/devices")) {
    if (other == f.bdf) continue;
    const std::string driver = os.link_name("/sys/bus/pci/devices/" + other + "/driver");
    // Bridges' own driver and these two leave the hardware alone (linux vfio.c, vfio_driver_allowed).
    if (driver.empty() || driver == "vfio-pci" || driver == "pcieport" || driver == "pci-stub") continue;
    out.push_back(
        fmt::format("{} shares IOMMU group {} and {} has it: `echo {} | sudo tee /sys/bus/pci/drivers/{}/unbind`",
                    other, f.iommu_group, driver, other, driver));
  }
  const std::string node = vfio_group_node(os, f);
  if (f.driver == "vfio-pci" && !may_use(os, node))
    out.push_back(fmt::format("no permission for {0}: `sudo chown $USER {0}`", node));
  return out;
}

std::string vfio_group_node(Os& os, const PciFunction& f) {
  // The kernel names the group otherwise where vfio runs without an IOMMU (enable_unsafe_noiommu_mode).
  const std::string node = "/dev/vfio/" + f.iommu_group, unsafe = "/dev/vfio/noiommu-" + f.iommu_group;
  return !os.exists(node) && os.exists(unsafe) ? unsafe : node;
}

std::string lock_path(const PciFunction& f) {
  // Other userspace stacks of this kind lock the same name, so that they and we keep out of each other's way.
  return fmt::format("/tmp/{}_{}.lock", f.id.vendor == 0x1002 ? "am" : "nv", f.bdf);
}

std::string lock_holder(Os& os, const PciFunction& f) {
  struct stat st;
  if (::stat(os.path(lock_path(f)).c_str(), &st) != 0) return "";
  std::istringstream locks(os.read_text("/proc/locks").value_or(""));
  const std::string wanted = fmt::format("{:02x}:{:02x}:{}", major(st.st_dev), minor(st.st_dev), st.st_ino);
  for (std::string line; std::getline(locks, line);) {
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    std::istringstream fields(line);
    std::string number, type, mode, access, pid, file;
    fields >> number >> type >> mode >> access >> pid >> file;
    if (type == "FLOCK" && file == wanted)
      return fmt::format("pid {} ({})", pid, os.read_text("/proc/" + pid + "/comm").value_or("another namespace"));
  }
  return "";
}

}  // namespace baregpu
