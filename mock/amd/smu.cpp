#include "mock/amd/smu.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "drivers/base/bits.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

// Results and messages of SMU 13.0.0/7/10 (smu_v13_0_0_ppsmc.h).
constexpr uint32_t kOk = 1, kFailed = 0xff, kUnknown = 0xfe, kPrereq = 0xfd, kBusy = 0xfc;
enum Message : uint32_t {
  kTest = 0x1,
  kGetVersion = 0x2,
  kGetIfVersion = 0x3,
  kMaskLow = 0x4,
  kMaskHigh = 0x5,
  kEnableAll = 0x6,
  kDisableAll = 0x7,
  kRunningLow = 0xc,
  kRunningHigh = 0xd,
  kDramHigh = 0xe,
  kDramLow = 0xf,
  kToDram = 0x12,
  kFromDram = 0x13,
  kSoftMin = 0x19,
  kSoftMax = 0x1a,
  kHardMin = 0x1b,
  kHardMax = 0x1c,
  kMinFreq = 0x1d,
  kMaxFreq = 0x1e,
  kFreqByIndex = 0x1f,
  kWorkload = 0x24,
  kAllowGfxOff = 0x28,
  kDisallowGfxOff = 0x29,
  kPrepareUnload = 0x2e,
  kMode1 = 0x2f,
  kSetPpt = 0x32,
  kGetPpt = 0x33,
};
constexpr uint32_t kDebugMode1 = 2;
constexpr uint32_t kSmuVersion = 0x004e7e00, kIfVersion = 0x3d;  // 78.126.0, smu_13_0_0 driver interface

// Clock tables in MHz by PPCLK id: GFXCLK and UCLK as on the boards, the others plausible. GFXCLK is fine-grained: two
// entries, the ends of a range.
const std::vector<uint32_t>& levels(uint32_t clk) {
  static const std::vector<uint32_t> kGfx = {500, 2482}, kSoc = {960, 1000, 1200}, kMem = {96, 456, 772, 1249},
                                     kFabric = {1200, 1600, 2000}, kNone;
  switch (clk) {
    case 0: return kGfx;
    case 1: return kSoc;
    case 2: return kMem;
    case 3: return kFabric;
    default: return kNone;
  }
}

constexpr uint32_t kTableMetrics = 5;  // TABLE_SMU_METRICS of smu13_driver_if_v13_0_0.h
constexpr size_t kMetricsBytes = 256;

}  // namespace

Smu::Smu(Machine& machine) : m_(machine) {
  m_.regs.on_write("MP1_SMN_C2PMSG_66", [this](uint32_t v) { message(v); });
  m_.regs.on_write("MP1_SMN_C2PMSG_75", [this](uint32_t v) { debug_message(v); });
}

void Smu::reset() {
  running_ = busy_ = features_on_ = table_hi_set_ = table_lo_set_ = false;
  table_ = 0;
  ppt_limit_ = 300;
  soft_min_.clear();
  soft_max_.clear();
}

void Smu::message(uint32_t id) {
  m_.regs.set("MP1_SMN_C2PMSG_66", id);
  if (!running_) return;  // nobody answers
  if (m_.regs.get("MP1_SMN_C2PMSG_90") != 0)
    m_.rules.broken("smu-mailbox", fmt::format("message {:#x} with the old response {:#x} still there", id,
                                               m_.regs.get("MP1_SMN_C2PMSG_90")));
  if (busy_) {
    m_.rules.broken("smu-mailbox", fmt::format("message {:#x} while another one runs", id));
    m_.regs.set("MP1_SMN_C2PMSG_90", kBusy);
    return;
  }
  if (m_.faults.hit(FaultPoint::kSmuTimeout)) return;
  busy_ = true;
  uint32_t param = m_.regs.get("MP1_SMN_C2PMSG_82");  // latched now
  m_.defer([this, id, param] {
    uint32_t out = param;
    uint32_t result = execute(id, out);
    busy_ = false;
    m_.regs.set("MP1_SMN_C2PMSG_82", out);
    m_.regs.set("MP1_SMN_C2PMSG_90", result);
  });
}

void Smu::debug_message(uint32_t id) {
  m_.regs.set("MP1_SMN_C2PMSG_75", id);
  if (!running_) return;
  if (id == kDebugMode1) return m_.mode1_reset();
  m_.defer([this] { m_.regs.set("MP1_SMN_C2PMSG_54", kUnknown); });
}

uint32_t Smu::dpm_freq(uint32_t param, uint32_t& out) const {
  const std::vector<uint32_t>& l = levels(param >> 16);
  uint32_t index = param & 0xffff;
  if (l.empty()) return kFailed;
  const uint32_t fine = param >> 16 == 0 ? 1u << 31 : 0;  // GFXCLK is a range
  if (index == 0xff) {
    out = uint32_t(l.size()) | fine;
    return kOk;
  }
  if (index >= l.size()) return kFailed;
  out = l[index] | fine;
  return kOk;
}

uint32_t Smu::transfer_table(uint32_t table) {
  if (!table_hi_set_ || !table_lo_set_) return kPrereq;
  if (table != kTableMetrics) return kFailed;
  if (!m_.in_fb(table_, kMetricsBytes)) {
    m_.rules.broken("psp-address", fmt::format("SMU table at {:#x} is not in the frame buffer", table_));
    return kFailed;
  }
  // The layout of the metrics is the driver's business; recognisable numbers are enough here.
  std::vector<uint32_t> words(kMetricsBytes / 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i < 4 ? levels(uint32_t(i)).back() : 40 + uint32_t(i % 16);
  m_.memory.vram_write(table_ - kFbBase, std::as_bytes(std::span(words)), "SMU");
  return kOk;
}

uint32_t Smu::execute(uint32_t id, uint32_t& p) {
  switch (id) {
    case kTest: ++p; return kOk;
    case kGetVersion: p = kSmuVersion; return kOk;
    case kGetIfVersion: p = kIfVersion; return kOk;
    case kMaskLow:
    case kMaskHigh: return kOk;
    case kEnableAll: features_on_ = true; return kOk;
    case kDisableAll: features_on_ = false; return kOk;
    case kRunningLow: p = features_on_ ? 0xffffffff : 0; return kOk;
    case kRunningHigh: p = features_on_ ? 0x1f : 0; return kOk;
    case kDramHigh: table_ = join32(lo32(table_), p), table_hi_set_ = true; return kOk;
    case kDramLow: table_ = join32(p, hi32(table_)), table_lo_set_ = true; return kOk;
    case kToDram: return transfer_table(p);
    case kFromDram: return kFailed;
    case kSoftMin:
    case kHardMin:
      if (levels(p >> 16).empty()) return kFailed;
      if (!features_on_) return kPrereq;
      soft_min_[p >> 16] = p & 0xffff;
      return kOk;
    case kSoftMax:
    case kHardMax:
      if (levels(p >> 16).empty()) return kFailed;
      if (!features_on_) return kPrereq;
      soft_max_[p >> 16] = p & 0xffff;
      return kOk;
    case kMinFreq:
    case kMaxFreq:
      if (levels(p >> 16).empty()) return kFailed;
      p = id == kMinFreq ? levels(p >> 16).front() : levels(p >> 16).back();
      return kOk;
    case kFreqByIndex: return dpm_freq(p, p);
    case kWorkload:
    case kAllowGfxOff:
    case kDisallowGfxOff:
    case kPrepareUnload: return kOk;
    case kMode1: m_.mode1_reset(); return 0;
    case kSetPpt: ppt_limit_ = p & 0xffff; return kOk;
    case kGetPpt: p = ppt_limit_; return kOk;
    default: return kUnknown;
  }
}

}  // namespace baregpu::mock
