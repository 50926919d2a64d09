#include "drivers/interfaces.hpp"

#include <algorithm>

namespace baregpu {
namespace {

std::vector<PciInterface>& table() {
  static std::vector<PciInterface> rows;
  return rows;
}

}  // namespace

void register_pci_interface(PciInterface row) {
  std::erase_if(table(), [&](const PciInterface& r) { return r.name == row.name; });
  table().push_back(std::move(row));
}

std::span<const PciInterface> pci_interfaces() { return table(); }

const PciInterface* find_pci_interface(std::string_view name) {
  for (const PciInterface& r : table())
    if (r.name == name) return &r;
  return nullptr;
}

}  // namespace baregpu
