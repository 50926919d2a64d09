// What differs between chips, as rows. Everything else comes from discovery.
#pragma once
#include <span>

#include "am/regs/tables.hpp"

namespace baregpu::am {

/// One row a GC version.
struct GcRow {
  IpVersion gc;
  const char* chip;  ///< "Navi31"
  const char* arch;  ///< LLVM target: the third version digit and the ISA's do not match (Linux kfd_device.c)
};

/// One row an MP0 (PSP) version.
struct PspRow {
  IpVersion mp0;
  bool spl_sends_kdb;  ///< the SPL step sends the key database again (Linux psp_v13_0.c)
  bool boot_time_tmr;  ///< the boot loader has set up the trusted memory region
  bool autoload;       ///< RLC autoload after all firmware is in
};

/// How mode1 reset is asked for, one row an MP1 (SMU) version.
enum class ResetMailbox { kNormal, kDebug };
struct SmuRow {
  IpVersion mp1;
  ResetMailbox mode1_mailbox;
  uint32_t mode1_message, mode1_argument;
  unsigned mode1_wait_ms;
};

/// @throws UnsupportedError naming the version and what is supported.
const GcRow& gc_row(IpVersion gc);
const PspRow& psp_row(IpVersion mp0);
const SmuRow& smu_row(IpVersion mp1);
std::span<const GcRow> gc_rows();

}  // namespace baregpu::am
