// PCI config space of the card: header, PM, PCIe, MSI, resizable BAR.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include "mock/amd/chips.hpp"
#include "mock/amd/rules.hpp"

namespace baregpu::mock {

/// Thread: the card's lock.
class ConfigSpace {
 public:
  ConfigSpace(const Chip& chip, Rules& rules, uint64_t vram_size, uint64_t bar0_size, bool resizable,
              bool virtual_function);

  uint32_t read(unsigned offset, unsigned width) const;
  void write(unsigned offset, unsigned width, uint32_t value);

  bool decode() const;  ///< memory enabled, D0, and the BARs where the bus was told they are
  bool bus_master() const { return word(0x04) & 0x4; }
  bool msi_enabled() const { return word(kMsi + 2) & 1; }
  bool resizable() const { return resizable_; }
  uint64_t bar_size(unsigned bar) const;
  uint64_t bar_address(unsigned bar) const;  ///< as assigned by the host
  /// Largest size of BAR0 that the capability offers.
  uint64_t largest_bar0() const;
  /// What the host's PCI core does for `resource0_resize`: moves and resizes with decode off.
  void host_resize_bar0(uint64_t size);
  /// What the host does at power-on and open: BARs assigned, memory decode on, MSI on if wanted.
  void host_enable(bool msi);
  /// A reset of the function: COMMAND, BARs, MSI and power state are lost until the driver restores them.
  void reset();

  static constexpr unsigned kPm = 0x50, kPcie = 0x64, kMsi = 0xa0, kRebar = 0x200;
  bool mapped = false;  ///< some BAR is mapped: resizing is refused

 private:
  uint16_t word(unsigned at) const { return uint16_t(bytes_[at] | bytes_[at + 1] << 8); }
  uint32_t dword(unsigned at) const { return word(at) | uint32_t(word(at + 2)) << 16; }
  void put(unsigned at, unsigned width, uint32_t v);
  void assign_bars();
  void write_bar(unsigned at, uint32_t value);

  Rules& rules_;
  std::array<uint8_t, 4096> bytes_{};
  std::array<uint64_t, 6> sizes_{}, assigned_{};
  uint64_t vram_size_;
  bool resizable_;
};

}  // namespace baregpu::mock
