// The memory controller: VM hubs, TLB invalidation, fault status.
#pragma once
#include <optional>
#include <string>

#include "am/context.hpp"
#include "am/page_table.hpp"
#include "am/soc.hpp"

namespace baregpu::am {

/// First VA of the address space and its size; one range for all GPUs of the process.
constexpr uint64_t kVaBase = 0x2000'0000'0000, kVaSize = uint64_t{1} << 44;
constexpr uint64_t kVaEnd = 0x7fff'ffff'ffff;  ///< last VA of the context (inclusive)

/// A decoded VM_L2_PROTECTION_FAULT_STATUS with the page it latched.
struct VmFault {
  uint32_t status = 0;
  uint64_t page = 0;  ///< address of the 4 KiB page
  bool write = false, atomic = false;
  unsigned vmid = 0, client = 0, permission = 0, walker = 0;
  std::string str() const;
};

class Gmc {
 public:
  Gmc(AmContext& c, Soc& soc);
  /// Reads the frame-buffer location and takes boot memory for the default pages.
  void init_sw();
  void set_root(VramOffset root) { root_ = root; }
  void init_mm_hub();
  /// Needs the GFX block alive (RLC autoload done).
  void init_gc_hub();
  /// HDP flush, then invalidates VMID 0 in every hub that is up, and waits for the acknowledgements.
  void flush_tlb();

  McAddress mc(VramOffset p) const { return McAddress(mc_base_ + p.value); }
  /// What page-table entries hold for local VRAM.
  uint64_t paddr_base() const { return paddr_base_; }
  /// The GC hub's latched fault, if any.
  std::optional<VmFault> gc_fault();
  std::optional<VmFault> mm_fault();
  void clear_faults();
  bool gc_hub_up() const { return gc_up_; }

 private:
  template <class Hub>
  void init_hub(const RegisterBlock& r);
  template <class Hub>
  void flush_hub(const RegisterBlock& r, bool semaphore);
  template <class Hub>
  std::optional<VmFault> read_fault(const RegisterBlock& r);
  AmContext& c_;
  Soc& soc_;
  uint64_t fb_base_ = 0, fb_end_ = 0, mc_base_ = 0, paddr_base_ = 0;
  VramOffset root_, memscratch_, dummy_;
  bool mm_up_ = false, gc_up_ = false;
};

}  // namespace baregpu::am
