// The interrupt handler block: rings in VRAM that every other block's interrupts arrive in.
#pragma once
#include <array>
#include <functional>

#include "am/context.hpp"
#include "am/gmc.hpp"

namespace baregpu::am {

/// One entry of an IH ring (8 dwords).
struct IhEntry {
  uint8_t client = 0, source = 0, ring = 0, vmid = 0;
  uint16_t pasid = 0;
  uint64_t timestamp = 0;  ///< 48 bits, 100 MHz
  std::array<uint32_t, 4> context{};
};

/// Client and source numbers that the driver acts on (Linux soc15_ih_clientid.h SOC21_*, irqsrcs_gfx_11_0_0.h).
namespace ih {
constexpr uint8_t kClientGfx = 10, kClientVmc = 18, kClientGrbmCp = 20;
constexpr uint8_t kSourceVmFault = 0, kSourceSdmaTrap = 49, kSourceSdmaHang = 55, kSourceCpEop = 181,
                  kSourceCpReserved = 180, kSourceCpBadOpcode = 183, kSourceCpPrivReg = 184, kSourceCpPrivInstr = 185,
                  kSourceSq = 239;
}  // namespace ih

class Ih {
 public:
  static constexpr uint64_t kRingSize = 256 * KiB, kEntrySize = 32;
  Ih(AmContext& c, Gmc& gmc) : c_(c), gmc_(gmc) {}
  void init_sw();
  void init_hw();
  /// Takes every entry that has arrived. Returns the number; an overflow is reported through `lost`.
  unsigned drain(const std::function<void(const IhEntry&)>& take, bool* lost = nullptr);

 private:
  AmContext& c_;
  Gmc& gmc_;
  VramOffset ring_, pointers_, ring1_, pointers1_;
  uint32_t rptr_ = 0;  // bytes
};

}  // namespace baregpu::am
