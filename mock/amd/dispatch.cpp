// Dispatches of the compute block: registers to an executor's description, and what comes of wave faults.
#include <fmt/format.h>

#include "drivers/base/bits.hpp"
#include "mock/amd/gfx.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

// Offsets into the SH window (absolute dwords from 0x2e00: gc_11_0_0_offset.h).
constexpr unsigned sh(uint32_t dword) { return dword - kShWindow; }
constexpr unsigned kStart = sh(0x2e04), kNumThread = sh(0x2e07), kPgm = sh(0x2e0c), kScratchBase = sh(0x2e10),
                   kRsrc1 = sh(0x2e12), kRsrc2 = sh(0x2e13), kTmpring = sh(0x2e18), kRsrc3 = sh(0x2e28),
                   kUserData = sh(0x2e40);
using ShaderEn = Bits<0>;
using StartAt0 = Bits<2>;
using Wave32 = Bits<15>;
using LdsSize = Bits<23, 15>;
using Threads = Bits<15, 0>;
using WaveSize = Bits<26, 12>;
constexpr unsigned kMaxLdsGranules = 128;  // 64 KiB in 512-byte granules
// SQ_INTERRUPT of gfx11: encoding in ctx1[7:6], error type in ctx0[24:21], wave in ctx0[31:27].
constexpr uint32_t kSqError = 2u << 6, kSqIllegal = 1, kSqMemviol = 2;

}  // namespace

std::string Gfx::check_dispatch(const ComputeQueue& q, uint32_t initiator) const {
  struct Need {
    unsigned first, count;
    const char* name;
  };
  const Need needs[] = {{kPgm, 2, "COMPUTE_PGM"},
                        {kRsrc1, 2, "COMPUTE_PGM_RSRC1/2"},
                        {kRsrc3, 1, "COMPUTE_PGM_RSRC3"},
                        {kNumThread, 3, "COMPUTE_NUM_THREAD"},
                        {kTmpring, 1, "COMPUTE_TMPRING_SIZE"},
                        {kStart, StartAt0::get(initiator) ? 0u : 3u, "COMPUTE_START"}};
  // User data may stay unprogrammed: compilers ask for more registers than the kernel reads (on gfx11 so that the group
  // ids land in s14 and s15). A kernel that reads one sees the poison.
  for (const Need& n : needs)
    for (unsigned i = 0; i < n.count; ++i)
      if (!q.sh_written[n.first + i]) return fmt::format("{} (dword {}) was never programmed", n.name, i);
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) threads *= Threads::get(q.sh[kNumThread + i]);
  if (threads == 0 || threads > 1024) return fmt::format("{} work-items in a workgroup", threads);
  if (LdsSize::get(q.sh[kRsrc2]) > kMaxLdsGranules) return fmt::format("{} LDS granules", LdsSize::get(q.sh[kRsrc2]));
  if (!StartAt0::get(initiator) && (q.sh[kStart] | q.sh[kStart + 1] | q.sh[kStart + 2]))
    return "start registers are not 0";
  if (WaveSize::get(q.sh[kTmpring]) && (!q.sh_written[kScratchBase] || !(q.sh[kScratchBase] | q.sh[kScratchBase + 1])))
    return "TMPRING_SIZE asks for scratch, but COMPUTE_DISPATCH_SCRATCH_BASE is not set";
  if (!sh_bases_[0]) return "SH_MEM_BASES of VMID 0 is not set: no LDS and scratch apertures";
  if (!q.has_cus) return "no compute unit is enabled in the MQD's static thread masks";
  return {};
}

isa::DispatchInfo Gfx::describe(const ComputeQueue& q, uint32_t initiator) const {
  isa::DispatchInfo d;
  d.code_va = join32(q.sh[kPgm], q.sh[kPgm + 1]) << 8;
  d.rsrc1 = q.sh[kRsrc1], d.rsrc2 = q.sh[kRsrc2], d.rsrc3 = q.sh[kRsrc3];
  for (unsigned i = 0; i < 16; ++i) d.user_data[i] = q.sh[kUserData + i];
  for (unsigned i = 0; i < 3; ++i) d.group_size[i] = Threads::get(q.sh[kNumThread + i]);
  d.wave32 = Wave32::get(initiator);
  d.tmpring_size = q.sh[kTmpring];
  if (q.sh_written[kScratchBase]) d.scratch_base = join32(q.sh[kScratchBase], q.sh[kScratchBase + 1]) << 8;
  d.shared_aperture = uint64_t{sh_bases_[0] >> 16} << 48;
  d.private_aperture = uint64_t{sh_bases_[0] & 0xffff} << 48;
  d.unaligned_access = (sh_config_[0] >> 2 & 3) == 3;
  return d;
}

bool Gfx::dispatch(ComputeQueue& q, uint32_t x, uint32_t y, uint32_t z, uint32_t initiator,
                   std::unique_lock<std::mutex>& lock) {
  if (!ShaderEn::get(initiator) || x == 0 || y == 0 || z == 0) {
    m_.rules.broken("dispatch-state",
                    fmt::format("dispatch of {} x {} x {} groups, initiator {:#x}: nothing runs", x, y, z, initiator));
    return true;
  }
  if (std::string why = check_dispatch(q, initiator); !why.empty() && m_.rules.broken("dispatch-state", why)) {
    hang(q, 0, why);
    return false;
  }
  isa::DispatchInfo d = describe(q, initiator);
  d.groups = {x, y, z};
  // Executors read through host pointers: look at least at the first line of the code for bytes stuck in the HDP.
  if (Mapping map = m_.gc.lookup(d.code_va, "shader"); map.status == Mapping::Status::kOk && !map.system)
    m_.memory.check_hdp(map.target + (d.code_va - map.va_begin), 64, "shader (code)");
  // Pairs of user data that are addresses (kernel arguments, dispatch packet): their first bytes too.
  for (unsigned i = 0; i + 1 < 16; i += 2) {
    if (!q.sh_written[kUserData + i] || !q.sh_written[kUserData + i + 1]) continue;
    const uint64_t va = join32(d.user_data[i], d.user_data[i + 1]);
    if (!m_.gc.in_tables(va)) continue;
    if (Mapping map = m_.gc.lookup(va, "shader"); map.status == Mapping::Status::kOk && !map.system)
      m_.memory.check_hdp(map.target + (va - map.va_begin), 16, "shader (arguments)");
  }
  if (m_.stopping()) return false;

  const uint64_t epoch = q.epoch;
  stop_.store(false);
  running_waves_ = true;
  running_queue_ = &q;
  lock.unlock();
  isa::DispatchResult r;
  std::string failure;
  try {
    r = executor_->run(d, space_, stop_);
  } catch (const std::exception& e) {  // an exception must not end the engine's thread
    failure = e.what();
  }
  lock = m_.engine_lock();
  running_waves_ = false;
  running_queue_ = nullptr;
  m_.note_waves_ended();
  if (q.epoch != epoch) return false;  // torn down meanwhile
  if (!failure.empty()) {
    m_.rules.broken("dispatch-state", "executor: " + failure);
    hang(q, 0, failure);
    return false;
  }
  if (r.fault.kind != isa::FaultKind::kNone) {
    report_wave_fault(q, r.fault);
    return false;
  }
  if (r.completed) return true;
  if (q.dequeue)
    deactivate(q);
  else
    hang(q, 0, "waves were stopped");
  return false;
}

void Gfx::report_wave_fault(ComputeQueue& q, const isa::WaveFault& f) {
  const bool write = f.access == isa::Access::kWrite || f.access == isa::Access::kAtomic;
  switch (f.kind) {
    case isa::FaultKind::kNone: return;
    case isa::FaultKind::kPageFault:
      m_.gc.raise_fault(f.address, write, Mapping::Status::kInvalid, 0, Client::kShader);
      break;
    case isa::FaultKind::kPermission:
      m_.gc.raise_fault(f.address, write, Mapping::Status::kOk,
                        f.access == isa::Access::kExecute ? 4
                        : write                           ? 2
                                                          : 1,
                        Client::kShader);
      break;
    case isa::FaultKind::kIllegalInstruction:
    case isa::FaultKind::kTrap:
    case isa::FaultKind::kMemoryViolation: {
      uint32_t type = f.kind == isa::FaultKind::kMemoryViolation ? kSqMemviol : kSqIllegal;
      m_.ih.push(IhClient::kGrbmCp, kIhSqInterrupt, uint8_t(1u << 2 | q.pipe | q.queue << 4),
                 {type << 21 | (f.wave & 0x1f) << 27, kSqError, 0, 0});
      break;
    }
  }
  hang(q, 0, fmt::format("wave fault at {:#x}: {}", f.pc, f.text));
}

}  // namespace baregpu::mock
