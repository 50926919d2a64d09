// A PCI function through vfio-pci: an IOMMU confines its DMA, interrupts arrive as eventfds, a crash leaves nothing
// behind.
#pragma once
#include "drivers/device_lock.hpp"
#include "drivers/pci_functions.hpp"

namespace baregpu {

/// Opens `f`, which vfio-pci has, exclusively. Opening and closing resets the function where it has a reset method.
/// @throws TransportError that says what is missing.
std::unique_ptr<PciDevice> open_vfio_device(Os& os, const PciFunction& f);

}  // namespace baregpu
