// The PCI function that a driver opens.
#pragma once
#include <memory>
#include <string>

#include "drivers/pci_device.hpp"

namespace baregpu::mock {

class Machine;

/// Opens the card exclusively; `card` keeps it alive. @throws TransportError if it is open already.
std::unique_ptr<PciDevice> open_mock_device(Machine& machine, std::shared_ptr<void> card, std::string name,
                                            std::string firmware_folder);

}  // namespace baregpu::mock
