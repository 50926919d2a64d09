// Which GPUs are on the PCI bus, who owns them, and what stands in the way of using them.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "drivers/interfaces.hpp"
#include "drivers/os.hpp"

namespace baregpu {

/// One PCI function as sysfs shows it.
struct PciFunction {
  std::string bdf;  ///< "0000:03:00.0"; domains may be wider
  PciId id;
  std::string model;        ///< from pci.ids, or the numbers
  std::string driver;       ///< "" = none bound
  std::string iommu_group;  ///< "" = no IOMMU
  std::string iommu_type;   ///< "identity", "DMA", "DMA-FQ", "" without IOMMU
  std::array<BarInfo, 6> bars;

  std::string folder() const { return "/sys/bus/pci/devices/" + bdf; }
};

/// Display and accelerator functions of AMD ("AMD") or NVIDIA ("NV"), sorted by address. A function that vanishes while
/// it is looked at is left out. @throws TransportError if there is no PCI bus or it cannot be listed.
std::vector<PciFunction> find_gpus(Os& os, const std::string& kind);

/// The BARs of a function, from its `resource` file.
std::array<BarInfo, 6> read_bars(Os& os, const std::string& folder);

/// What keeps the sysfs transport from using it, each with what to do; empty = ready.
std::vector<std::string> sysfs_obstacles(Os& os, const PciFunction& f);
/// The same for VFIO.
std::vector<std::string> vfio_obstacles(Os& os, const PciFunction& f);

/// The file of the function's VFIO group: "/dev/vfio/14", or "/dev/vfio/noiommu-14" where there is no IOMMU.
std::string vfio_group_node(Os& os, const PciFunction& f);

/// The lock file that all users of this GPU agree on.
std::string lock_path(const PciFunction& f);
/// "pid 12 (name)" of the process that holds the lock, "" if nobody does. Takes no lock itself.
std::string lock_holder(Os& os, const PciFunction& f);

}  // namespace baregpu
