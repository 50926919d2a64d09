// What the blocks of one GPU share during bring-up and after.
#pragma once
#include <memory>
#include <string>

#include "am/discovery.hpp"
#include "am/register_block.hpp"
#include "am/vram.hpp"
#include "drivers/base/error.hpp"
#include "drivers/pci_device.hpp"

namespace baregpu::am {

/// Persistent memory at the bottom of VRAM. Order and sizes of the allocations are the contract between two sessions: a
/// partial boot must find the same objects at the same addresses (see kBootLayoutVersion).
class BootMemory {
 public:
  static constexpr uint64_t kSize = 32 * MiB;
  /// @throws Error when boot memory is full or sealed.
  VramOffset allocate(uint64_t size, uint64_t align = 4096) {
    uint64_t at = align_up(next_, align);
    if (sealed_ || at + size > kSize) throw Error("boot memory: allocation after boot, or more than 32 MiB");
    next_ = at + align_up(size, 4096);
    return VramOffset(at);
  }
  void seal() { sealed_ = true; }
  uint64_t used() const { return next_; }

 private:
  uint64_t next_ = 0;
  bool sealed_ = false;
};

/// Written to SCRATCH_REG7 by a finished boot. Change it whenever the order or size of boot allocations changes.
constexpr uint32_t kBootLayoutVersion = 0xB6000001;

/// Registers and memory of one GPU, filled step by step by AmDevice.
struct AmContext {
  AmContext(PciDevice& p, Mmio bar5) : pci(p), io(p, bar5) {}
  PciDevice& pci;
  RegisterIo io;
  Discovery discovery;
  std::unique_ptr<Vram> vram;
  BootMemory boot;
  std::unique_ptr<RegisterBlock> nbio, hdp, gc, mmhub, mp0, mp1, osssys;

  const std::string& name() const { return pci.name(); }
};

}  // namespace baregpu::am
