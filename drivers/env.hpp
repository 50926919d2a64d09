// The one place where environment variables are read (public).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baregpu {

/// Every environment variable that baregpu knows, parsed. The names are those that people of this field use; each has a
/// command-line or API equivalent (see env_table()).
struct Env {
  std::string dev;                         ///< DEV: device selection
  std::vector<unsigned> visible;           ///< VISIBLE_DEVICES: comma-separated indices; empty = all
  int debug = 0;                           ///< DEBUG: 0 warnings .. 3 trace
  bool am_reset = false;                   ///< AM_RESET=1: always boot from a full reset
  int am_debug = 0;                        ///< AM_DEBUG: 1 boot steps, 2 every register access
  std::vector<std::string> firmware_path;  ///< AM_FIRMWARE_PATH: colon-separated folders, searched first
  std::optional<bool> amd_aql;             ///< AMD_AQL: force AQL (1) or PM4 (0) queues
  bool amd_disable_sdma = false;           ///< AMD_DISABLE_SDMA=1: copies by compute kernels
  uint32_t wait_timeout_ms = 30000;        ///< HCQDEV_WAIT_TIMEOUT_MS
  std::string remote;                      ///< REMOTE: host[:port],...
  int profile = 0, pmc = 0, sqtt = 0;      ///< PROFILE, PMC, SQTT
  int jit = 1, beam = 0;                   ///< JIT, BEAM
  bool gmmu = true;                        ///< GMMU
  bool vfio = false;                       ///< VFIO=1: use vfio-pci for a PCI device
  std::string cache_dir;                   ///< BAREGPU_CACHE: compiled-kernel cache; default $XDG_CACHE_HOME/baregpu
  std::string clang;                       ///< BAREGPU_CLANG: the clang to use
  std::string path;                        ///< PATH: where clang and the linker are looked for
  std::string mock_card;                   ///< MOCK_CARD: cold|amdgpu|am|am-dirty|stalled|vf
  std::string mock_fault;                  ///< MOCK_FAULT: name@N,...
  std::string mock_state;                  ///< MOCK_STATE: folder for non-volatile state
  uint64_t mock_seed = 1;                  ///< MOCK_SEED
};

/// The process's environment, read once at first use. A variable that does not parse throws UsageError naming it.
const Env& env();
/// Parses an environment given as a look-up function (tests).
Env parse_env(const char* (*get)(const char* name));

struct EnvRow {
  const char* name;
  const char* values;
  const char* meaning;
  const char* equivalent;
};
/// The documentation table: one row a variable.
std::span<const EnvRow> env_table();

}  // namespace baregpu
