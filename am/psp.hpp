// The PSP: secure processor that checks and loads all firmware.
#pragma once
#include <functional>
#include <string>

#include "am/chips.hpp"
#include "am/context.hpp"
#include "am/firmware.hpp"
#include "am/gmc.hpp"

namespace baregpu::am {

class Psp {
 public:
  Psp(AmContext& c, Gmc& gmc, Soc& soc) : c_(c), gmc_(gmc), soc_(soc), row_(psp_row(c.mp0->version())) {}
  void init_sw();
  /// Boots the secure OS and loads all firmware. `step` is told each step's name.
  void init_hw(const FirmwareSet& fw, const std::function<void(const std::string&)>& step);
  /// Whether the secure OS runs (C2PMSG_81, its sign of life).
  bool sos_alive() { return c_.mp0->read<MP0_SMN_C2PMSG_81>() != 0; }

 private:
  struct Command;
  struct Answer;
  void load_sos(const FirmwareSet& fw);
  void bootloader_step(uint32_t command, std::span<const std::byte> bytes, const char* name);
  void create_ring();
  Answer submit(const Command& command, const std::string& what);
  uint32_t load_toc(std::span<const std::byte> toc);
  void load_ip_fw(const FwPiece& piece);
  void setup_tmr(uint32_t size);
  void copy_to_msg1(std::span<const std::byte> bytes);

  AmContext& c_;
  Gmc& gmc_;
  Soc& soc_;
  const PspRow& row_;
  VramOffset msg1_, cmd_, fence_, ring_, tmr_;
  uint32_t fence_value_ = 0;
};

}  // namespace baregpu::am
