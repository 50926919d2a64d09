// NBIO and HDP: doorbell routing, the HDP flush, chip-wide switches.
#pragma once
#include "am/context.hpp"

namespace baregpu::am {

class Soc {
 public:
  explicit Soc(AmContext& c) : c_(c) {}
  void init_hw();
  /// Makes all earlier CPU writes through BAR0 visible to the GPU's engines. One register write.
  void flush_hdp() const;
  /// Programs one S2A doorbell entry: which block gets doorbells of [offset, offset+size), in dword doorbell units (two
  /// for each 64-bit doorbell). Source: Linux nbio_v4_3.c.
  void route_doorbells(unsigned port, uint32_t awid, uint32_t awaddr_31_28, uint32_t offset, uint32_t size) const;
  void enable_clock_gating() const;

 private:
  AmContext& c_;
  uint32_t flush_dword_ = 0;
};

}  // namespace baregpu::am
