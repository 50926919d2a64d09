#include "am/sdma.hpp"

#include <fmt/format.h>

#include <thread>

// Sequence: Linux sdma_v6_0.c (sdma_v6_0_gfx_resume).
namespace baregpu::am {
namespace {

constexpr uint32_t kHangCount = 100;  // 100 ms units

}  // namespace

void Sdma::init_hw() {
  const RegisterBlock& r = *c_.gc;  // on gfx11 the SDMA registers are in GC's space
  r.update(SDMA0_WATCHDOG_CNTL::QUEUE_HANG_COUNT{kHangCount});
  r.update(SDMA0_UTCL1_CNTL::RESP_MODE{3}, SDMA0_UTCL1_CNTL::REDO_DELAY{9});
  r.update(SDMA0_UTCL1_PAGE::RD_L2_POLICY{2}, SDMA0_UTCL1_PAGE::WR_L2_POLICY{3}, SDMA0_UTCL1_PAGE::LLC_NOALLOC{1});
  r.update(SDMA0_F32_CNTL::HALT{0}, SDMA0_F32_CNTL::TH1_RESET{0});
  r.update(SDMA0_CNTL::TRAP_ENABLE{1});
  soc_.route_doorbells(2, 0xe, 0x3, kDoorbellSdma0 * 2, 4);
}

void Sdma::setup_queue(const SdmaQueueSetup& q) {
  if (!is_pow2(q.ring_size) || q.ring_size < 4096 || !is_aligned(q.ring.value, 256) ||
      !is_aligned(q.rptr.value | q.wptr.value, 8))
    throw Error({.device = c_.name(),
                 .what = fmt::format("bad SDMA queue: ring {:#x} ({} bytes)", q.ring.value, q.ring_size),
                 .source = {},
                 .hint = {}});
  const RegisterBlock& r = *c_.gc;
  r.write_raw<SDMA0_QUEUE0_MINOR_PTR_UPDATE>(1);
  r.write_raw<SDMA0_QUEUE0_RB_RPTR>(0);
  r.write_raw<SDMA0_QUEUE0_RB_RPTR_HI>(0);
  r.write_raw<SDMA0_QUEUE0_RB_WPTR>(0);
  r.write_raw<SDMA0_QUEUE0_RB_WPTR_HI>(0);
  r.write_raw<SDMA0_QUEUE0_RB_BASE>(lo32(q.ring.value >> 8));
  r.write_raw<SDMA0_QUEUE0_RB_BASE_HI>(hi32(q.ring.value >> 8));
  r.write_raw<SDMA0_QUEUE0_RB_RPTR_ADDR_LO>(lo32(q.rptr.value));
  r.write_raw<SDMA0_QUEUE0_RB_RPTR_ADDR_HI>(hi32(q.rptr.value));
  r.write_raw<SDMA0_QUEUE0_RB_WPTR_POLL_ADDR_LO>(lo32(q.wptr.value));
  r.write_raw<SDMA0_QUEUE0_RB_WPTR_POLL_ADDR_HI>(hi32(q.wptr.value));
  r.write(SDMA0_QUEUE0_DOORBELL_OFFSET::OFFSET{q.doorbell * 2});
  r.write(SDMA0_QUEUE0_DOORBELL::ENABLE{1});
  r.write_raw<SDMA0_QUEUE0_MINOR_PTR_UPDATE>(0);
  r.write(SDMA0_QUEUE0_RB_CNTL::RB_ENABLE{1}, SDMA0_QUEUE0_RB_CNTL::RB_SIZE{log2_floor(q.ring_size / 4)},
          SDMA0_QUEUE0_RB_CNTL::F32_WPTR_POLL_ENABLE{1}, SDMA0_QUEUE0_RB_CNTL::RPTR_WRITEBACK_ENABLE{1},
          SDMA0_QUEUE0_RB_CNTL::RPTR_WRITEBACK_TIMER{4}, SDMA0_QUEUE0_RB_CNTL::RB_PRIV{1},
          SDMA0_QUEUE0_RB_CNTL::RB_VMID{0});
  r.write(SDMA0_QUEUE0_IB_CNTL::IB_ENABLE{1});
}

void Sdma::fini_hw() {
  const RegisterBlock& r = *c_.gc;
  r.update(SDMA0_QUEUE0_RB_CNTL::RB_ENABLE{0});
  r.update(SDMA0_QUEUE0_IB_CNTL::IB_ENABLE{0});
  r.write_raw<SDMA0_QUEUE0_DOORBELL>(0);
  r.write_raw<SDMA0_QUEUE0_DOORBELL_OFFSET>(0);
  r.write(GRBM_SOFT_RESET::SOFT_RESET_SDMA0{1});
  std::this_thread::sleep_for(Milliseconds(10));
  r.write_raw<GRBM_SOFT_RESET>(0);
}

}  // namespace baregpu::am
