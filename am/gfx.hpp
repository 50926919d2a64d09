// The compute block: MEC start, queue descriptors, dequeue, reset.
#pragma once
#include "am/context.hpp"
#include "am/gmc.hpp"
#include "am/regs/mqd.hpp"
#include "am/soc.hpp"

namespace baregpu::am {

/// Doorbells of 8 bytes in BAR2 (Linux amdgpu_doorbell.h, NAVI10 layout): MEC ring 0 and SDMA engine 0.
constexpr unsigned kDoorbellMecRing0 = 3, kDoorbellSdma0 = 0x100;

/// A PM4 compute queue as the hardware is told about it.
struct ComputeQueueSetup {
  GpuVa ring{};                           ///< 256-byte aligned
  uint64_t ring_size = 0;                 ///< bytes, power of two
  GpuVa rptr{}, wptr{};                   ///< 8 bytes each, uncached
  GpuVa eop{};                            ///< end-of-pipe buffer, 256-byte aligned; RELEASE_MEM needs it
  uint64_t eop_size = 0;                  ///< power of two, at most 8 KiB
  unsigned doorbell = kDoorbellMecRing0;  ///< index of a 64-bit doorbell
};

class Gfx {
 public:
  Gfx(AmContext& c, Gmc& gmc, Soc& soc);
  void init_sw() { mqd_ = c_.boot.allocate(2 * 4096); }
  /// Waits for RLC autoload, brings the GC hub up, then either starts the MEC (full boot) or resets it (partial).
  void init_hw(bool partial, uint64_t mec_start);
  /// Programs the HQD of queue 0 on pipe 0 of MEC 1 and activates it. @throws Error on a bad setup.
  void setup_compute_queue(const ComputeQueueSetup& q);
  /// Drains and deactivates the queues. With `force`, does not wait for a hung queue.
  void dequeue(bool force);
  /// Loses all queues; VRAM and MQDs stay. Queues must be set up again.
  void reset_mec(uint64_t mec_start, bool force);
  void enable_clock_gating() const;

 private:
  void select(unsigned me, unsigned pipe, unsigned queue, unsigned vmid) const;
  void deselect() const { select(0, 0, 0, 0); }
  void config_mec(uint64_t mec_start) const;
  void enable_mec() const;
  void wait_autoload() const;

  AmContext& c_;
  Gmc& gmc_;
  Soc& soc_;
  const MqdLayout& layout_;
  VramOffset mqd_;
};

}  // namespace baregpu::am
