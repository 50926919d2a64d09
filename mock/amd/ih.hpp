// The interrupt handler block: two rings of 32-byte entries in memory, and the MSI.
#pragma once
#include <array>
#include <cstdint>

namespace baregpu::mock {

class Machine;

/// Interrupt clients and sources (soc21_ih_clientid.h, ivsrcid/gfx and sdma headers).
enum class IhClient : uint8_t { kGfx = 10, kVmc = 18, kGrbmCp = 20 };
constexpr uint8_t kIhFault = 0, kIhSdmaTrap = 49, kIhSdmaHang = 55, kIhCpRsvdBit = 180, kIhCpEop = 181,
                  kIhCpBadOpcode = 183, kIhCpPrivReg = 184, kIhSqInterrupt = 239;

/// Thread: the card's lock.
class Ih {
 public:
  explicit Ih(Machine& machine);
  /// Delivers one entry; dropped while the ring is off.
  void push(IhClient client, uint8_t source, uint8_t ring_id, std::array<uint32_t, 4> context);
  void reset();

 private:
  struct Ring {
    const char* suffix;
    uint32_t wptr = 0, rptr = 0;
    bool overflow = false, clear_pulse = false;
  };
  void attach(Ring& ring);
  void write_control(Ring& ring, uint32_t value);
  void write_rptr(Ring& ring, uint32_t value);
  uint32_t size(const Ring& ring) const;

  Machine& m_;
  std::array<Ring, 2> rings_{Ring{.suffix = ""}, Ring{.suffix = "_RING1"}};
};

}  // namespace baregpu::mock
