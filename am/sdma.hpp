// The copy engines.
#pragma once
#include "am/context.hpp"
#include "am/gfx.hpp"
#include "am/soc.hpp"

namespace baregpu::am {

struct SdmaQueueSetup {
  GpuVa ring{};            ///< 256-byte aligned
  uint64_t ring_size = 0;  ///< bytes, power of two
  GpuVa rptr{}, wptr{};    ///< 8 bytes each, uncached
  unsigned doorbell = kDoorbellSdma0;
};

class Sdma {
 public:
  Sdma(AmContext& c, Soc& soc) : c_(c), soc_(soc) {}
  void init_hw();
  /// Programs queue 0 of engine 0 and enables it. @throws Error on a bad setup.
  void setup_queue(const SdmaQueueSetup& q);
  /// Disables the queue and resets the engine.
  void fini_hw();

 private:
  AmContext& c_;
  Soc& soc_;
};

}  // namespace baregpu::am
