// A PCI function that is only memory: enough for code that needs registers and VRAM but no hardware behaviour.
#pragma once
#include <vector>

#include "drivers/base/error.hpp"
#include "drivers/pci_device.hpp"

namespace baregpu::test {

class FakePci final : public PciDevice {
 public:
  const std::string& name() const override { return name_; }
  PciId id() const override { return {.vendor = 0x1002, .device = 0x744c}; }
  uint32_t config_read(unsigned, unsigned) override { return 0x744c1002; }
  void config_write(unsigned, unsigned, uint32_t) override {}
  BarInfo bar_info(unsigned) override { return {}; }
  BarMapping map_bar(unsigned, BarCaching) override { throw Error("no BAR"); }
  uint64_t resize_bar_to_largest(unsigned) override { return 0; }
  DmaBuffer alloc_dma(uint64_t, bool) override { throw Error("no DMA"); }
  void reset() override {}

 private:
  std::string name_ = "fake";
};

}  // namespace baregpu::test
