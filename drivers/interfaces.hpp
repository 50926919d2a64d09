// The interface table: which ways to a GPU exist (DEV=NAME+KIND), and who is found on each (public).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/device_spec.hpp"
#include "drivers/pci_device.hpp"

namespace baregpu {

/// One GPU that an interface can see, opened or not. Listing takes no lock and changes nothing.
struct FoundDevice {
  std::string name;  ///< "0000:03:00.0", "MOCKPCI+AMD:0"
  PciId id;
  std::string model;                 ///< in words, as far as known
  std::string owner;                 ///< "no driver", "amdgpu", "vfio-pci", "locked by pid 12 (foo)", "mock"
  bool usable = false;               ///< nothing is missing and nobody holds it
  std::vector<std::string> missing;  ///< what stands in the way, each with what to do
};

/// A way to PCI GPUs: "PCI", "VFIO", "USB", "REMOTE", "MOCKPCI". Rows are plain values.
struct PciInterface {
  std::string name;
  std::string description;
  bool is_mock = false;
  /// Devices of spec.kind, in a stable order (index = spec.index). @throws TransportError if the way itself is broken.
  std::function<std::vector<FoundDevice>(const DeviceSpec&)> list;
  /// Opens list()[spec.index] exclusively. @throws Error that says who holds it or what is missing.
  std::function<std::unique_ptr<PciDevice>(const DeviceSpec&)> open;
};

/// Adds a row (a later row of the same name replaces the earlier: tests). Not thread-safe: call at start-up.
void register_pci_interface(PciInterface row);
std::span<const PciInterface> pci_interfaces();
const PciInterface* find_pci_interface(std::string_view name);
class Os;
/// Registers the interfaces of drivers/ itself: PCI (sysfs) and VFIO; over `os` in tests.
void register_native_interfaces();
void register_native_interfaces(Os& os);

}  // namespace baregpu
