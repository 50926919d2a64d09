// The security processor (MP0): boot loader mailbox, secure OS, command ring, firmware checks, TMR, RLC autoload.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

namespace baregpu::mock {

class Machine;

/// Thread: the card's lock.
class Psp {
 public:
  explicit Psp(Machine& machine);
  /// Power-on: boot loader waiting. `stalled`: the flash is empty or corrupt, nothing ever gets ready.
  void reset(bool stalled);
  /// State of a card that another driver has brought up.
  void set_running();
  bool sos_alive() const { return sos_alive_; }
  bool loaded(uint32_t fw_type) const { return loaded_.contains(fw_type); }

 private:
  void boot_command(uint32_t command);
  void finish_boot_command(uint32_t command);
  void ring_control(uint32_t value);
  void ring_wptr(uint32_t value);
  void run_frame(uint32_t wptr);
  uint32_t execute(uint32_t id, std::byte* buffer);
  uint32_t setup_tmr(const uint32_t* p);
  uint32_t load_ip_fw(const uint32_t* p);
  uint32_t load_toc(const uint32_t* p, std::byte* response);
  uint32_t autoload();
  bool read(uint64_t mc, std::span<std::byte> out);
  bool write(uint64_t mc, std::span<const std::byte> in);

  Machine& m_;
  bool stalled_ = false, ready_ = false, broken_ = false, sos_alive_ = false, ring_ = false;
  unsigned boot_step_ = 0;  // rank of the last accepted boot piece
  uint32_t boot_status_ = 0;
  uint32_t wptr_ = 0, done_wptr_ = 0;
  uint32_t tmr_needed_ = 0;
  bool tmr_ = false;
  std::set<uint32_t> loaded_;
};

}  // namespace baregpu::mock
