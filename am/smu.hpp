// The SMU (MP1) mailbox: power features, clocks, mode1 reset.
#pragma once
#include "am/chips.hpp"
#include "am/context.hpp"
#include "am/gmc.hpp"

namespace baregpu::am {

/// PPSMC messages of SMU 13.0.0/7/10 (Linux smu_v13_0_0_ppsmc.h).
enum class SmuMessage : uint32_t {
  kGetSmuVersion = 0x2,
  kEnableAllSmuFeatures = 0x6,
  kSetDriverDramAddrHigh = 0xe,
  kSetDriverDramAddrLow = 0xf,
  kSetSoftMinByFreq = 0x19,
  kSetSoftMaxByFreq = 0x1a,
  kGetDpmFreqByIndex = 0x1f,
  kMode1Reset = 0x2f,
};
enum class Clock : uint32_t { kGfx = 0, kSoc = 1, kUclk = 2, kFclk = 3 };

class Smu {
 public:
  Smu(AmContext& c, Gmc& gmc) : c_(c), gmc_(gmc) {}
  void init_sw() { table_ = c_.boot.allocate(0x4000); }
  void init_hw();
  /// Whether the SMU answers at all.
  bool alive();
  /// Sends and waits for the answer; returns the value that comes back in the parameter register.
  /// @throws TimeoutError, or Error naming the message and the decoded response.
  uint32_t send(SmuMessage message, uint32_t argument, Milliseconds timeout = Milliseconds(10000));
  /// Sets all clocks to their highest (true) or lowest level.
  void set_clocks(bool highest);
  /// Asks for mode1 reset; the answer may never come. `mailbox` as in chips.cpp's row or the other one.
  void request_mode1(ResetMailbox mailbox, uint32_t message, uint32_t argument);

 private:
  AmContext& c_;
  Gmc& gmc_;
  VramOffset table_;
};

}  // namespace baregpu::am
