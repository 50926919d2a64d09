#include "am/gfx.hpp"

#include <fmt/format.h>

#include <thread>

#include "drivers/base/log.hpp"

// Sequence: Linux gfx_v11_0.c (gfx_v11_0_hw_init, gfx_v11_0_compute_mqd_init, gfx_v11_0_config_mec_cache_rs64).
namespace baregpu::am {
namespace {

constexpr Milliseconds kAutoloadTimeout{10000}, kDequeueTimeout{10000}, kMecSettle{50};
constexpr unsigned kVmids = 16, kMec1 = 1, kQueues = 2;
constexpr uint32_t kMqdHeader = 0xC0310800;
// LDS and scratch apertures: value << 48 (Linux gfx_v11_0.c, DEFAULT_SH_MEM_BASES uses other numbers; any free 2^48
// works).
constexpr uint32_t kSharedBase = 1, kPrivateBase = 2;
constexpr uint32_t kAlignmentUnaligned = 3, kInstPrefetch = 3;
constexpr uint32_t kHqStatus0 = 0x20004000;  // bit 14: the CP writes the dispatch pointer
constexpr uint64_t kMaxEop = 8 * KiB;        // EOP_SIZE is at most 0xA: 2^(0xA+1) dwords

const MqdLayout& mqd_layout(IpVersion gc) {
  if (gc.major == 11) return kMqdV11Compute;
  throw UnsupportedError(
      {.device = {}, .what = fmt::format("no compute MQD layout for GC {}", gc.str()), .source = {}, .hint = {}});
}

}  // namespace

Gfx::Gfx(AmContext& c, Gmc& gmc, Soc& soc) : c_(c), gmc_(gmc), soc_(soc), layout_(mqd_layout(c.gc->version())) {}

// Banked registers (HQD, MQD, SH_MEM, program counters) belong to what is selected here; back to 0 after use.
void Gfx::select(unsigned me, unsigned pipe, unsigned queue, unsigned vmid) const {
  c_.gc->write(GRBM_GFX_CNTL::PIPEID{pipe}, GRBM_GFX_CNTL::MEID{me}, GRBM_GFX_CNTL::VMID{vmid},
               GRBM_GFX_CNTL::QUEUEID{queue});
}

void Gfx::wait_autoload() const {
  // Linux gfx_v11_0_wait_for_rlc_autoload_complete: both conditions, the command processor idle and the boot load done.
  c_.gc->wait_until<RLC_RLCS_BOOTLOAD_STATUS>(0x80000000, 0x80000000, kAutoloadTimeout, "RLC autoload");
  c_.gc->wait_until<CP_STAT>(~0u, 0, kAutoloadTimeout, "command processor idle after RLC autoload");
}

void Gfx::config_mec(uint64_t mec_start) const {
  select(kMec1, 0, 0, 0);
  c_.gc->write_raw<CP_MEC_RS64_PRGRM_CNTR_START>(lo32(mec_start >> 2));
  c_.gc->write_raw<CP_MEC_RS64_PRGRM_CNTR_START_HI>(hi32(mec_start >> 2));
  deselect();
  // The new program counter is taken over by a reset pulse.
  c_.gc->update(CP_MEC_RS64_CNTL::MEC_PIPE0_RESET{1});
  c_.gc->update(CP_MEC_RS64_CNTL::MEC_PIPE0_RESET{0});
}

void Gfx::enable_mec() const {
  c_.gc->update(CP_MEC_RS64_CNTL::MEC_PIPE0_RESET{0}, CP_MEC_RS64_CNTL::MEC_PIPE0_ACTIVE{1},
                CP_MEC_RS64_CNTL::MEC_HALT{0});
  std::this_thread::sleep_for(kMecSettle);
}

void Gfx::init_hw(bool partial, uint64_t mec_start) {
  wait_autoload();
  gmc_.init_gc_hub();
  if (partial) return reset_mec(mec_start, false);

  const RegisterBlock& r = *c_.gc;
  config_mec(mec_start);
  r.write_raw<TCP_CNTL>(r.read<TCP_CNTL>() | 0x20000000);  // golden setting (Linux golden_settings_gc_11_0)
  r.write(RLC_CNTL::RLC_ENABLE_F32{1});
  r.update(RLC_SRM_CNTL::SRM_ENABLE{1}, RLC_SRM_CNTL::AUTO_INCR_ADDR{1});
  r.write_raw<RLC_SPM_MC_CNTL>(0xf);  // SPM uses VMID 15
  soc_.route_doorbells(0, 0x3, 0x3, 0, 0);
  soc_.route_doorbells(3, 0x6, 0x3, 0, 0);
  r.update(GRBM_CNTL::READ_TIMEOUT{0xff});
  const uint32_t config = r.value_of(SH_MEM_CONFIG::ADDRESS_MODE{0}, SH_MEM_CONFIG::ALIGNMENT_MODE{kAlignmentUnaligned},
                                     SH_MEM_CONFIG::INITIAL_INST_PREFETCH{kInstPrefetch});
  const uint32_t bases = r.value_of(SH_MEM_BASES::PRIVATE_BASE{kPrivateBase}, SH_MEM_BASES::SHARED_BASE{kSharedBase});
  for (unsigned vmid = 0; vmid < kVmids; ++vmid) {
    select(0, 0, 0, vmid);
    r.write_raw<SH_MEM_CONFIG>(config);
    r.write_raw<SH_MEM_BASES>(bases);
  }
  deselect();
  // Byte range in BAR2: 32 doorbells of 8 bytes.
  r.write_raw<CP_MEC_DOORBELL_RANGE_LOWER>(0);
  r.write_raw<CP_MEC_DOORBELL_RANGE_UPPER>(0xf8);
  enable_mec();
}

void Gfx::setup_compute_queue(const ComputeQueueSetup& q) {
  const RegisterBlock& r = *c_.gc;
  if (!is_pow2(q.ring_size) || q.ring_size < 4096 || !is_aligned(q.ring.value, 256) || !is_aligned(q.eop.value, 256) ||
      !is_pow2(q.eop_size) || q.eop_size > kMaxEop || q.eop_size < 256 || !is_aligned(q.rptr.value | q.wptr.value, 8))
    throw Error({.device = c_.name(),
                 .what = fmt::format("bad compute queue: ring {:#x} ({} bytes), EOP {:#x} ({} bytes)", q.ring.value,
                                     q.ring_size, q.eop.value, q.eop_size),
                 .source = {},
                 .hint = {}});
  std::array<uint32_t, kMqdDwords> mqd{};
  auto put64 = [&](unsigned at, uint64_t v) {
    mqd[at] = lo32(v);
    mqd[at + 1] = hi32(v);
  };
  mqd[layout_.header] = kMqdHeader;
  for (unsigned at : layout_.static_thread_mgmt) mqd[at] = 0xffffffff;  // all CUs
  put64(layout_.mqd_base_lo, gmc_.mc(mqd_).value);
  mqd[layout_.persistent_state] =
      r.value_of(CP_HQD_PERSISTENT_STATE::PRELOAD_REQ{1}, CP_HQD_PERSISTENT_STATE::PRELOAD_SIZE{0x55});
  mqd[layout_.pipe_priority] = 2;
  mqd[layout_.queue_priority] = 0xf;
  mqd[layout_.quantum] =
      r.value_of(CP_HQD_QUANTUM::QUANTUM_EN{1}, CP_HQD_QUANTUM::QUANTUM_SCALE{1}, CP_HQD_QUANTUM::QUANTUM_DURATION{1});
  put64(layout_.pq_base_lo, q.ring.value >> 8);
  put64(layout_.rptr_report_lo, q.rptr.value);
  put64(layout_.wptr_poll_lo, q.wptr.value);
  mqd[layout_.doorbell_control] = r.value_of(CP_HQD_PQ_DOORBELL_CONTROL::DOORBELL_OFFSET{q.doorbell * 2},
                                             CP_HQD_PQ_DOORBELL_CONTROL::DOORBELL_EN{1});
  mqd[layout_.pq_control] = r.value_of(CP_HQD_PQ_CONTROL::QUEUE_SIZE{log2_floor(q.ring_size / 4) - 1},
                                       CP_HQD_PQ_CONTROL::RPTR_BLOCK_SIZE{5}, CP_HQD_PQ_CONTROL::UNORD_DISPATCH{0});
  mqd[layout_.ib_control] = r.value_of(CP_HQD_IB_CONTROL::MIN_IB_AVAIL_SIZE{3});
  mqd[layout_.hq_status0] = kHqStatus0;
  mqd[layout_.mqd_control] = r.value_of(CP_MQD_CONTROL::PRIV_STATE{1});
  put64(layout_.eop_base_lo, q.eop.value >> 8);
  mqd[layout_.eop_control] = r.value_of(CP_HQD_EOP_CONTROL::EOP_SIZE{log2_floor(q.eop_size / 4) - 1});

  c_.vram->write(mqd_, std::as_bytes(std::span(mqd)));
  select(kMec1, 0, 0, 0);
  if (r.read_field<CP_HQD_ACTIVE::ACTIVE>()) {
    deselect();
    throw Error(
        {.device = c_.name(), .what = "the compute queue slot is in use", .source = "CP_HQD_ACTIVE = 1", .hint = {}});
  }
  for (unsigned i = 0; i < layout_.hqd_count; ++i)
    if (layout_.first_hqd + i != layout_.hqd_active) r.write_raw<CP_MQD_BASE_ADDR>(mqd[layout_.first_hqd + i], i);
  soc_.flush_hdp();
  r.write(CP_HQD_ACTIVE::ACTIVE{1});
  deselect();
}

void Gfx::dequeue(bool force) {
  const RegisterBlock& r = *c_.gc;
  for (unsigned queue = 0; queue < kQueues; ++queue) {
    select(kMec1, 0, queue, 0);
    if (r.read_field<CP_HQD_ACTIVE::ACTIVE>()) {
      r.write_raw<CP_HQD_DEQUEUE_REQUEST>(2);  // reset waves
      r.write_raw<SPI_COMPUTE_QUEUE_RESET>(1);
      if (!force) {
        try {
          r.wait_field<CP_HQD_ACTIVE::ACTIVE>(0, kDequeueTimeout, fmt::format("compute queue {} going idle", queue));
        } catch (const TimeoutError&) {
          deselect();
          throw;
        }
      }
    }
  }
  deselect();
}

void Gfx::reset_mec(uint64_t mec_start, bool force) {
  dequeue(force);
  c_.gc->write(GRBM_SOFT_RESET::SOFT_RESET_CP{1}, GRBM_SOFT_RESET::SOFT_RESET_CPC{1});
  std::this_thread::sleep_for(kMecSettle);
  c_.gc->write_raw<GRBM_SOFT_RESET>(0);
  config_mec(mec_start);
  enable_mec();
}

void Gfx::enable_clock_gating() const {
  const RegisterBlock& r = *c_.gc;
  if (c_.mmhub->has<MM_ATC_L2_MISC_CG>())
    c_.mmhub->write(MM_ATC_L2_MISC_CG::ENABLE{1}, MM_ATC_L2_MISC_CG::MEM_LS_ENABLE{1});
  r.write(RLC_SAFE_MODE::CMD{1}, RLC_SAFE_MODE::MESSAGE{1});
  r.wait_field<RLC_SAFE_MODE::CMD>(0, Milliseconds(1000), "RLC safe mode");
  r.update(RLC_CGCG_CGLS_CTRL::CGCG_GFX_IDLE_THRESHOLD{0x36}, RLC_CGCG_CGLS_CTRL::CGCG_EN{1},
           RLC_CGCG_CGLS_CTRL::CGLS_REP_COMPANSAT_DELAY{0xf}, RLC_CGCG_CGLS_CTRL::CGLS_EN{1});
  r.update(CP_RB_WPTR_POLL_CNTL::POLL_FREQUENCY{0x100}, CP_RB_WPTR_POLL_CNTL::IDLE_POLL_COUNT{0x90});
  r.update(CP_INT_CNTL::CNTX_BUSY_INT_ENABLE{1}, CP_INT_CNTL::CNTX_EMPTY_INT_ENABLE{1},
           CP_INT_CNTL::CMP_BUSY_INT_ENABLE{1});
  r.update(SDMA0_RLC_CGCG_CTRL::CGCG_INT_ENABLE{1});
  r.update(SDMA1_RLC_CGCG_CTRL::CGCG_INT_ENABLE{1});
  using O = RLC_CGTT_MGCG_OVERRIDE;
  r.update(O::PERFMON_CLOCK_STATE{1}, O::GFXIP_REPEATER_FGCG_OVERRIDE{0}, O::GFXIP_FGCG_OVERRIDE{0},
           O::GRBM_CGTT_SCLK_OVERRIDE{0}, O::RLC_CGTT_SCLK_OVERRIDE{0}, O::GFXIP_MGCG_OVERRIDE{0},
           O::GFXIP_CGLS_OVERRIDE{0}, O::GFXIP_CGCG_OVERRIDE{0});
  r.write(RLC_SAFE_MODE::CMD{1}, RLC_SAFE_MODE::MESSAGE{0});
}

}  // namespace baregpu::am
