// A PCI function through /sys/bus/pci: no kernel driver, physical addresses, polling.
#pragma once
#include "drivers/device_lock.hpp"
#include "drivers/pci_functions.hpp"

namespace baregpu {

/// Opens `f` exclusively, enables memory decode and keeps it awake. @throws TransportError that says what is missing.
std::unique_ptr<PciDevice> open_sysfs_device(Os& os, const PciFunction& f);

}  // namespace baregpu
