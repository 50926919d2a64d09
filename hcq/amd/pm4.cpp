#include "hcq/amd/pm4.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

// Packets: Linux nvd.h / soc15d.h (PACKET3_*), Mesa src/amd/common/sid.h for the field names.
namespace baregpu::hcq::amd {
namespace {

enum Op : uint32_t {
  kNop = 0x10,
  kDispatchDirect = 0x15,
  kWriteData = 0x37,
  kWaitRegMem = 0x3c,
  kIndirectBuffer = 0x3f,
  kEventWrite = 0x46,
  kReleaseMem = 0x49,
  kAcquireMem = 0x58,
  kSetShReg = 0x76,
};

constexpr uint32_t kShRegBase = 0x2c00;  // SET_SH_REG counts from here
// Absolute dwords; the same on gfx9, gfx11 and gfx12 (0x2e00 block) except RSRC3.
enum ShReg : uint32_t {
  kComputeStartX = 0x2e04,
  kComputePgmLo = 0x2e0c,
  kComputeScratchBaseLo = 0x2e10,
  kComputePgmRsrc1 = 0x2e12,
  kComputeResourceLimits = 0x2e15,
  kComputeTmpringSize = 0x2e18,
  kComputeRestartX = 0x2e1b,
  kComputePgmRsrc3Gfx11 = 0x2e28,
  kComputeUserData0 = 0x2e40,
};

using LdsSize = Bits<23, 15>;  // COMPUTE_PGM_RSRC2, 512-byte granules
constexpr uint32_t kLdsGranule = 512;

// EVENT_WRITE / RELEASE_MEM event words.
using EventType = Bits<5, 0>;
using EventIndex = Bits<11, 8>;
constexpr uint32_t kCsPartialFlush = 7, kCacheFlushAndInvTs = 20;
constexpr uint32_t kIndexPartialFlush = 4, kIndexEndOfPipe = 5;

// Kernel code properties: which user SGPRs the kernel wants (LLVM AMDGPUUsage, kernel descriptor).
enum Property : uint16_t {
  kPrivateSegmentBuffer = 1 << 0,
  kDispatchPtr = 1 << 1,
  kQueuePtr = 1 << 2,
  kKernargPtr = 1 << 3,
  kDispatchId = 1 << 4,
  kFlatScratchInit = 1 << 5,
  kPrivateSegmentSize = 1 << 6,
};

void set_sh(std::vector<uint32_t>& out, uint32_t reg, std::initializer_list<uint32_t> values) {
  out.push_back(pm4_header(kSetShReg, uint32_t(values.size()) + 1));
  out.push_back(reg - kShRegBase);
  out.insert(out.end(), values);
}

class Gfx11Dialect final : public Pm4Dialect {
  // GCR_CNTL of ACQUIRE_MEM.
  using GliInv = Bits<1, 0>;
  static constexpr uint32_t kGlmWb = 1 << 4, kGlmInv = 1 << 5, kGlkWb = 1 << 6, kGlkInv = 1 << 7, kGlvInv = 1 << 8,
                            kGl1Inv = 1 << 9, kGl2Inv = 1 << 14, kGl2Wb = 1 << 15;
  // The same caches in RELEASE_MEM's event word.
  static constexpr uint32_t kRelGlmWb = 1 << 12, kRelGlmInv = 1 << 13, kRelGlvInv = 1 << 14, kRelGl1Inv = 1 << 15,
                            kRelGl2Inv = 1 << 20, kRelGl2Wb = 1 << 21, kRelSeq = 1 << 22;

 public:
  void acquire_mem(std::vector<uint32_t>& out, bool full) const override {
    uint32_t gcr = kGlmWb | kGlmInv | kGlkWb | kGlkInv | kGlvInv | kGl1Inv;
    if (full) gcr |= GliInv::set(1) | kGl2Inv | kGl2Wb;
    // coher_cntl 0, size all ones, base 0: everything; poll interval 0.
    out.insert(out.end(), {pm4_header(kAcquireMem, 7), 0, 0xffffffff, 0xffffffff, 0, 0, 0, gcr});
  }
  void release_mem(std::vector<uint32_t>& out, GpuVa va, uint64_t value, unsigned data_sel, bool flush) const override {
    uint32_t event = EventType::set(kCacheFlushAndInvTs) | EventIndex::set(kIndexEndOfPipe);
    if (flush) event |= kRelGlmWb | kRelGlmInv | kRelGlvInv | kRelGl1Inv | kRelGl2Inv | kRelGl2Wb | kRelSeq;
    out.insert(out.end(), {pm4_header(kReleaseMem, 7), event, Bits<31, 29>::set(data_sel), lo32(va.value),
                           hi32(va.value), lo32(value), hi32(value), 0});
  }
  uint32_t dispatch_initiator(bool wave32) const override {
    return 1 /* COMPUTE_SHADER_EN */ | 1 << 2 /* FORCE_START_AT_000 */ | uint32_t(wave32) << 15 /* CS_W32_EN */;
  }
  uint32_t rsrc1_extra() const override { return 1 << 20; }  // PRIV: works around trap-handler behaviour without CWSR
  uint32_t rsrc3_register() const override { return kComputePgmRsrc3Gfx11; }
  ScratchSetup scratch_for(uint32_t bytes_per_lane, uint32_t cus, uint32_t slots, uint32_t engines) const override {
    constexpr uint32_t kUnit = 256, kMinimum = 128;  // TMPRING_SIZE.WAVESIZE counts 256 bytes
    ScratchSetup s;
    s.bytes_per_lane = uint32_t(align_up(std::max(bytes_per_lane, kMinimum), kUnit / 64));
    s.size = uint64_t{s.bytes_per_lane} * 64 * slots * cus;
    const uint64_t wave_size = div_up(64ull * s.bytes_per_lane, kUnit);
    const uint64_t waves = std::min<uint64_t>(s.size / (wave_size * kUnit) / engines, uint64_t{cus} * slots);
    if (wave_size > Bits<26, 12>::max || waves == 0)
      throw Error(fmt::format(
          "a kernel needs {} bytes of scratch memory a work-item, more than the hardware can address", bytes_per_lane));
    s.tmpring_size = Bits<11, 0>::set(uint32_t(std::min<uint64_t>(waves, Bits<11, 0>::max))) |
                     Bits<26, 12>::set(uint32_t(wave_size));
    return s;
  }
};

}  // namespace

const Pm4Dialect& pm4_dialect(am::IpVersion gc) {
  static const Gfx11Dialect gfx11;
  if (gc.major == 11) return gfx11;
  throw UnsupportedError({.device = {}, .what = "no PM4 packet set for GC " + gc.str(), .source = {}, .hint = {}});
}

std::array<uint32_t, 4> indirect_buffer(GpuVa va, uint32_t size_dw) {
  return {pm4_header(kIndirectBuffer, 3), lo32(va.value), hi32(va.value), Bits<19, 0>::set(size_dw) | 1u << 23};
}

PatchSlot Pm4List::poll(GpuVa va, Compare compare, uint32_t value) {
  if (va.value % 4) throw Error(fmt::format("wait on misaligned address {:#x}", va.value));
  constexpr uint32_t kMemory = 1 << 4, kInterval = 4;
  words_.insert(words_.end(), {pm4_header(kWaitRegMem, 6), uint32_t(compare) | kMemory, lo32(va.value), hi32(va.value),
                               value, 0xffffffff, kInterval});
  return {uint32_t(words_.size() - 3), 1};
}

PatchSlot Pm4List::signal(GpuVa va, uint32_t value) {
  if (va.value % 4) throw Error(fmt::format("signal at misaligned address {:#x}", va.value));
  dialect_.release_mem(words_, va, value, 1, true);
  return {uint32_t(words_.size() - 3), 1};
}

void Pm4List::timestamp(GpuVa va) {
  if (va.value % 8) throw Error(fmt::format("timestamp at misaligned address {:#x}", va.value));
  dialect_.release_mem(words_, va, 0, 3, false);
}

void Pm4List::memory_barrier() {
  if (target_.hdp_flush_req) {
    // Write-wait-write: the value goes to REQ, then DONE is polled under the mask.
    constexpr uint32_t kWriteWaitWrite = 1 << 6, kInterval = 4;
    words_.insert(words_.end(), {pm4_header(kWaitRegMem, 6), uint32_t(Compare::kGreaterEqual) | kWriteWaitWrite,
                                 target_.hdp_flush_req, target_.hdp_flush_done, 0xffffffff, 0xffffffff, kInterval});
  }
  dialect_.acquire_mem(words_, true);
}

PatchSlot Pm4List::write(GpuVa va, std::span<const uint32_t> values) {
  if (va.value % 4 || values.empty() || values.size() > 0x3ff0)
    throw Error(fmt::format("write of {} dwords to {:#x}", values.size(), va.value));
  constexpr uint32_t kDstMemory = 5 << 8, kWriteConfirm = 1 << 20;
  words_.insert(words_.end(), {pm4_header(kWriteData, uint32_t(values.size()) + 3), kDstMemory | kWriteConfirm,
                               lo32(va.value), hi32(va.value)});
  PatchSlot slot{uint32_t(words_.size()), uint8_t(std::min<size_t>(values.size(), 2))};
  words_.insert(words_.end(), values.begin(), values.end());
  return slot;
}

ExecSlots Pm4List::exec(const Kernel& kernel, GpuVa kernargs, Dim3 groups, Dim3 block, uint32_t dynamic_lds) {
  const KernelInfo& k = *kernel.info;
  const uint64_t threads = block.count();
  auto refuse = [&](const std::string& why) {
    throw Error({.device = {}, .what = fmt::format("kernel {}: {}", k.name, why), .source = {}, .hint = {}}, "launch");
  };
  if (!groups.x || !groups.y || !groups.z) refuse("the grid has no workgroups");
  if (std::max({block.x, block.y, block.z}) > 1024 || threads == 0 || threads > 1024 ||
      threads > k.max_flat_workgroup_size)
    refuse(fmt::format("workgroups of {}x{}x{} = {} work-items; it allows 1 to {}", block.x, block.y, block.z, threads,
                       std::min(1024u, k.max_flat_workgroup_size)));
  if (kernargs.value % std::max(16u, k.kernarg_align))
    refuse(fmt::format("kernel arguments at misaligned address {:#x}", kernargs.value));
  const Dim3 required{k.reqd_workgroup_size[0], k.reqd_workgroup_size[1], k.reqd_workgroup_size[2]};
  if (required.count() != 0 && required != block)
    refuse(fmt::format("workgroups of {}x{}x{}; it requires {}x{}x{}", block.x, block.y, block.z, required.x,
                       required.y, required.z));
  const uint64_t lds = uint64_t{k.group_segment_size} + dynamic_lds;
  if (lds > target_.lds_bytes) refuse(fmt::format("{} bytes of LDS; a workgroup has {}", lds, target_.lds_bytes));
  if (uint16_t other = k.properties & (kQueuePtr | kDispatchId | kFlatScratchInit | kPrivateSegmentSize))
    refuse(fmt::format(
        "it wants user registers that are not provided (properties {:#x}); compile it for code object v5 or later",
        other));
  if (k.kernarg_preload) refuse("it wants preloaded arguments, which this GPU generation does not have");
  const bool scratch = k.private_segment_size != 0 || k.uses_dynamic_stack;
  if (scratch && target_.scratch.bytes_per_lane < k.private_segment_size)
    refuse("scratch memory was not set up for it");

  dialect_.acquire_mem(words_, false);
  set_sh(words_, kComputePgmLo, {lo32(kernel.code.value >> 8), hi32(kernel.code.value >> 8)});
  set_sh(words_, kComputePgmRsrc1,
         {k.rsrc1 | dialect_.rsrc1_extra(),
          (k.rsrc2 & ~LdsSize::mask) | LdsSize::set(uint32_t(div_up(lds, kLdsGranule)))});
  set_sh(words_, dialect_.rsrc3_register(), {k.rsrc3});
  set_sh(words_, kComputeTmpringSize, {scratch ? target_.scratch.tmpring_size : 0});
  set_sh(words_, kComputeScratchBaseLo, {lo32(target_.scratch.base.value >> 8), hi32(target_.scratch.base.value >> 8)});
  set_sh(words_, kComputeRestartX, {0, 0, 0});
  // User SGPRs in the order of the property bits.
  ExecSlots slots;
  const uint32_t user_header = uint32_t(words_.size());
  words_.insert(words_.end(), {0, kComputeUserData0 - kShRegBase});
  if (k.properties & kPrivateSegmentBuffer) {
    const uint64_t base = target_.scratch.base.value;
    // A buffer descriptor over the scratch memory: swizzled, 4-byte elements.
    words_.insert(words_.end(), {lo32(base), (hi32(base) & 0xffff) | 1u << 31, 0xffffffff, 0x20c14000});
  }
  if (k.properties & kDispatchPtr) {
    const uint64_t packet = kernargs.value + align_up(k.kernarg_size, 64);
    words_.insert(words_.end(), {lo32(packet), hi32(packet)});
  }
  if (k.properties & kKernargPtr) {
    slots.kernargs = {uint32_t(words_.size()), 2};
    words_.insert(words_.end(), {lo32(kernargs.value), hi32(kernargs.value)});
  }
  const uint32_t user_words = uint32_t(words_.size()) - user_header - 1;
  if (user_words > 1)
    words_[user_header] = pm4_header(kSetShReg, user_words);
  else
    words_.resize(user_header);
  set_sh(words_, kComputeResourceLimits, {0});
  set_sh(words_, kComputeStartX, {0, 0, 0, block.x, block.y, block.z, 0, 0});
  slots.groups = {uint32_t(words_.size() + 1), 3};
  words_.insert(words_.end(),
                {pm4_header(kDispatchDirect, 4), groups.x, groups.y, groups.z, dialect_.dispatch_initiator(k.wave32)});
  words_.insert(words_.end(),
                {pm4_header(kEventWrite, 1), EventType::set(kCsPartialFlush) | EventIndex::set(kIndexPartialFlush)});
  return slots;
}

}  // namespace baregpu::hcq::amd
