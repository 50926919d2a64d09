// The rows of the interface table that drivers/ has itself: PCI (sysfs) and VFIO.
#include "drivers/base/error.hpp"
#include "drivers/interfaces.hpp"
#include "drivers/pci_functions.hpp"
#include "drivers/sysfs_device.hpp"
#include "drivers/vfio_device.hpp"

namespace baregpu {
namespace {

using Obstacles = std::vector<std::string> (*)(Os&, const PciFunction&);
using Open = std::unique_ptr<PciDevice> (*)(Os&, const PciFunction&);

PciInterface row(const char* name, const char* description, Os& os, Obstacles obstacles, Open open) {
  PciInterface r;
  r.name = name;
  r.description = description;
  r.list = [&os, obstacles](const DeviceSpec& spec) {
    std::vector<FoundDevice> out;
    if (!os.exists("/sys/bus/pci/devices"))
      return out;  // a container or VM without PCI: nothing there, not an error of listing
    for (const PciFunction& f : find_gpus(os, spec.kind)) {
      FoundDevice d{.name = f.bdf,
                    .id = f.id,
                    .model = f.model,
                    .owner = f.driver.empty() ? "no driver" : f.driver,
                    .usable = false,
                    .missing = obstacles(os, f)};
      if (const std::string holder = lock_holder(os, f); !holder.empty()) {
        d.owner = "in use by " + holder;
        d.missing.push_back(holder + " is using it: end that process first");
      }
      d.usable = d.missing.empty();
      out.push_back(std::move(d));
    }
    return out;
  };
  r.open = [&os, open, name = r.name](const DeviceSpec& spec) {
    const std::vector<PciFunction> found = find_gpus(os, spec.kind);
    if (spec.index >= found.size())
      throw TransportError({.device = spec.str(),
                            .what = "there is no such device on " + name,
                            .source = std::to_string(found.size()) + " found",
                            .hint = "`baregpu info` lists them"},
                           "no_device");
    return open(os, found[spec.index]);
  };
  return r;
}

}  // namespace

void register_native_interfaces(Os& os) {
  register_pci_interface(row("PCI", "sysfs: physical addresses, polling", os, sysfs_obstacles, open_sysfs_device));
  register_pci_interface(row("VFIO", "vfio-pci: IOMMU and interrupts", os, vfio_obstacles, open_vfio_device));
}

void register_native_interfaces() { register_native_interfaces(real_os()); }

}  // namespace baregpu
