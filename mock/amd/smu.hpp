// The system management unit (MP1): two mailboxes, clock tables, the metrics table, mode1 reset.
#pragma once
#include <array>
#include <cstdint>
#include <map>

namespace baregpu::mock {

class Machine;

/// Thread: the card's lock.
class Smu {
 public:
  explicit Smu(Machine& machine);
  void reset();
  /// Firmware runs: loaded by the PSP, or left by another driver.
  void set_running() { running_ = true; }
  bool running() const { return running_; }

 private:
  void message(uint32_t id);
  void debug_message(uint32_t id);
  uint32_t execute(uint32_t id, uint32_t& param);
  uint32_t dpm_freq(uint32_t param, uint32_t& out) const;
  uint32_t transfer_table(uint32_t table);

  Machine& m_;
  bool running_ = false, busy_ = false, features_on_ = false;
  bool table_hi_set_ = false, table_lo_set_ = false;
  uint64_t table_ = 0;
  uint32_t ppt_limit_ = 0;
  std::map<uint32_t, uint32_t> soft_min_, soft_max_;
};

}  // namespace baregpu::mock
