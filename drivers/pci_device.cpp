#include "drivers/pci_device.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

namespace baregpu {

bool PciDevice::wait_interrupt(std::chrono::milliseconds) {
  throw UnsupportedError(
      {.device = name(), .what = "this transport has no interrupts", .source = {}, .hint = "poll, or use VFIO=1"});
}

bool PciDevice::bus_master() { return config_read(kPciCommand, 2) & kPciCommandBusMaster; }

void PciDevice::set_bus_master(bool on) {
  uint32_t command = config_read(kPciCommand, 2);
  if (command == 0xffff)
    throw TransportError({.device = name(),
                          .what = "device does not answer",
                          .source = "PCI_COMMAND reads 0xffff",
                          .hint = "check power and link; a rescan or reboot may be needed"},
                         "device_lost");
  // Memory decode goes on with bus master; it is left alone when bus master goes off, so that registers stay readable.
  uint32_t want = on ? (command | kPciCommandMemory | kPciCommandBusMaster | kPciCommandIntxDisable)
                     : (command & ~uint32_t{kPciCommandBusMaster});
  config_write(kPciCommand, 2, want);
  uint32_t got = config_read(kPciCommand, 2);
  if ((got ^ want) & (kPciCommandBusMaster | (on ? kPciCommandMemory : 0)))
    throw TransportError({.device = name(),
                          .what = fmt::format("could not switch bus mastering {}", on ? "on" : "off"),
                          .source = fmt::format("PCI_COMMAND wrote {:#06x}, reads {:#06x}", want, got),
                          .hint = "without it the GPU cannot reach host memory"});
}

}  // namespace baregpu
