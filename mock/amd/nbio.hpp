// The bus interface: index windows, HDP flush registers, doorbell aperture and routing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace baregpu::mock {

class Machine;

/// Doorbell memory: a slot holds kNoDoorbell until the driver stores a value; engines take it out.
constexpr uint64_t kNoDoorbell = ~uint64_t{0};
constexpr uint64_t kDoorbellBarSize = 2ull << 20;
/// Doorbells that are watched: AM drivers use indices below 0x200 (MEC 0.., SDMA 0x100..).
constexpr unsigned kWatchedDoorbells = 0x200;

class Nbio {
 public:
  explicit Nbio(Machine& machine);
  ~Nbio();
  Nbio(const Nbio&) = delete;
  Nbio& operator=(const Nbio&) = delete;

  std::byte* doorbells() { return doorbells_; }
  /// Whether some slot holds a value. Thread: any; no lock.
  bool doorbell_waiting() const;
  /// Delivers all waiting doorbells to their queues. Thread: the card's lock.
  void take_doorbells();
  void reset();
  /// Whether IFWI has finished (RCC_CONFIG_MEMSIZE, C2PMSG_33).
  void set_ifwi_ready(bool ready) { ifwi_ready_ = ready; }

 private:
  bool routed(unsigned index, uint32_t awid) const;
  /// An access through an index window; windows do not reach each other.
  uint32_t window_read(uint32_t dword);
  void window_write(uint32_t dword, uint32_t value);
  bool window_open(uint32_t dword);
  bool die_selected();

  Machine& m_;
  std::byte* doorbells_ = nullptr;
  bool ifwi_ready_ = true;
};

}  // namespace baregpu::mock
