#include "am/gmc.hpp"

#include <fmt/format.h>

// Sequence: Linux gfxhub_v3_0.c / mmhub_v3_0.c (init_system_aperture_regs .. program_invalidation, flush in
// gmc_v11_0.c).
namespace baregpu::am {
namespace {

// The two hubs have the same registers under different names and places.
#define BAREGPU_HUB(HUB, PREFIX, MC)                                                \
  struct HUB {                                                                      \
    using AGP_BASE = MC##_VM_AGP_BASE;                                              \
    using AGP_BOT = MC##_VM_AGP_BOT;                                                \
    using AGP_TOP = MC##_VM_AGP_TOP;                                                \
    using APERTURE_LOW = MC##_VM_SYSTEM_APERTURE_LOW_ADDR;                          \
    using APERTURE_HIGH = MC##_VM_SYSTEM_APERTURE_HIGH_ADDR;                        \
    using APERTURE_DEFAULT_LSB = MC##_VM_SYSTEM_APERTURE_DEFAULT_ADDR_LSB;          \
    using APERTURE_DEFAULT_MSB = MC##_VM_SYSTEM_APERTURE_DEFAULT_ADDR_MSB;          \
    using L1_TLB = MC##_VM_MX_L1_TLB_CNTL;                                          \
    using L2_CNTL = PREFIX##_L2_CNTL;                                               \
    using L2_CNTL2 = PREFIX##_L2_CNTL2;                                             \
    using L2_CNTL3 = PREFIX##_L2_CNTL3;                                             \
    using L2_CNTL4 = PREFIX##_L2_CNTL4;                                             \
    using L2_CNTL5 = PREFIX##_L2_CNTL5;                                             \
    using FAULT_CNTL = PREFIX##_L2_PROTECTION_FAULT_CNTL;                           \
    using FAULT_CNTL2 = PREFIX##_L2_PROTECTION_FAULT_CNTL2;                         \
    using FAULT_STATUS = PREFIX##_L2_PROTECTION_FAULT_STATUS;                       \
    using FAULT_ADDR_LO = PREFIX##_L2_PROTECTION_FAULT_ADDR_LO32;                   \
    using FAULT_ADDR_HI = PREFIX##_L2_PROTECTION_FAULT_ADDR_HI32;                   \
    using FAULT_DEFAULT_LO = PREFIX##_L2_PROTECTION_FAULT_DEFAULT_ADDR_LO32;        \
    using FAULT_DEFAULT_HI = PREFIX##_L2_PROTECTION_FAULT_DEFAULT_ADDR_HI32;        \
    using CONTEXT0 = PREFIX##_CONTEXT0_CNTL;                                        \
    using BASE_LO = PREFIX##_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32;                    \
    using BASE_HI = PREFIX##_CONTEXT0_PAGE_TABLE_BASE_ADDR_HI32;                    \
    using START_LO = PREFIX##_CONTEXT0_PAGE_TABLE_START_ADDR_LO32;                  \
    using START_HI = PREFIX##_CONTEXT0_PAGE_TABLE_START_ADDR_HI32;                  \
    using END_LO = PREFIX##_CONTEXT0_PAGE_TABLE_END_ADDR_LO32;                      \
    using END_HI = PREFIX##_CONTEXT0_PAGE_TABLE_END_ADDR_HI32;                      \
    using IDENTITY_LOW_LO = PREFIX##_L2_CONTEXT1_IDENTITY_APERTURE_LOW_ADDR_LO32;   \
    using IDENTITY_LOW_HI = PREFIX##_L2_CONTEXT1_IDENTITY_APERTURE_LOW_ADDR_HI32;   \
    using IDENTITY_HIGH_LO = PREFIX##_L2_CONTEXT1_IDENTITY_APERTURE_HIGH_ADDR_LO32; \
    using IDENTITY_HIGH_HI = PREFIX##_L2_CONTEXT1_IDENTITY_APERTURE_HIGH_ADDR_HI32; \
    using IDENTITY_OFFSET_LO = PREFIX##_L2_CONTEXT_IDENTITY_PHYSICAL_OFFSET_LO32;   \
    using IDENTITY_OFFSET_HI = PREFIX##_L2_CONTEXT_IDENTITY_PHYSICAL_OFFSET_HI32;   \
    using ENG_RANGE_LO = PREFIX##_INVALIDATE_ENG0_ADDR_RANGE_LO32;                  \
    using ENG_RANGE_HI = PREFIX##_INVALIDATE_ENG0_ADDR_RANGE_HI32;                  \
    using SEM = PREFIX##_INVALIDATE_ENG17_SEM;                                      \
    using REQ = PREFIX##_INVALIDATE_ENG17_REQ;                                      \
    using ACK = PREFIX##_INVALIDATE_ENG17_ACK;                                      \
  }
BAREGPU_HUB(MmHub, MMVM, MMMC);
BAREGPU_HUB(GcHub, GCVM, GCMC);
#undef BAREGPU_HUB

constexpr unsigned kInvalidateEngines = 18;  // 0..17
constexpr uint32_t kMtypeUncached = 3;
constexpr Milliseconds kFlushTimeout{100};

}  // namespace

std::string VmFault::str() const {
  return fmt::format("{}{} of page {:#x}, VMID {}, client {}{}{}", write ? "write" : "read", atomic ? " (atomic)" : "",
                     page, vmid, client,
                     permission ? fmt::format(", permission bits {:#x}", permission) : ", page not mapped",
                     walker ? fmt::format(", walker error {}", walker) : "");
}

Gmc::Gmc(AmContext& c, Soc& soc) : c_(c), soc_(soc) {}

void Gmc::init_sw() {
  // 16 MiB units in bits 23:0; set by the VBIOS, only read here.
  fb_base_ = uint64_t{c_.mmhub->read<MMMC_VM_FB_LOCATION_BASE>() & 0xffffff} << 24;
  fb_end_ = uint64_t{c_.mmhub->read<MMMC_VM_FB_LOCATION_TOP>() & 0xffffff} << 24;
  if (uint32_t offset = c_.mmhub->read<MMMC_VM_FB_OFFSET>(); offset != 0)
    throw UnsupportedError({.device = c_.name(),
                            .what = "the GPU's VRAM does not start at physical address 0",
                            .source = fmt::format("MMMC_VM_FB_OFFSET = {:#x}", offset),
                            .hint = {}});
  mc_base_ = fb_base_;
  memscratch_ = c_.boot.allocate(4096);
  dummy_ = c_.boot.allocate(4096);
}

template <class Hub>
void Gmc::init_hub(const RegisterBlock& r) {
  // AGP aperture off: bottom above top.
  r.write_raw<typename Hub::AGP_BASE>(0);
  r.write_raw<typename Hub::AGP_BOT>(0xffffff);
  r.write_raw<typename Hub::AGP_TOP>(0);
  // The system aperture (256 KiB units) makes VRAM reachable by MC address without page tables.
  r.write_raw<typename Hub::APERTURE_LOW>(uint32_t(fb_base_ >> 18));
  r.write_raw<typename Hub::APERTURE_HIGH>(uint32_t(fb_end_ >> 18));
  const uint64_t scratch = (paddr_base_ + memscratch_.value) >> 12, dummy = (paddr_base_ + dummy_.value) >> 12;
  r.write_raw<typename Hub::APERTURE_DEFAULT_LSB>(lo32(scratch));
  r.write_raw<typename Hub::APERTURE_DEFAULT_MSB>(hi32(scratch));
  r.write_raw<typename Hub::FAULT_DEFAULT_LO>(lo32(dummy));
  r.write_raw<typename Hub::FAULT_DEFAULT_HI>(hi32(dummy));
  r.update(typename Hub::FAULT_CNTL2::ACTIVE_PAGE_MIGRATION_PTE_READ_RETRY{1});
  r.update(typename Hub::L1_TLB::ENABLE_L1_TLB{1}, typename Hub::L1_TLB::SYSTEM_ACCESS_MODE{3},
           typename Hub::L1_TLB::SYSTEM_APERTURE_UNMAPPED_ACCESS{0},
           typename Hub::L1_TLB::ENABLE_ADVANCED_DRIVER_MODEL{1}, typename Hub::L1_TLB::MTYPE{kMtypeUncached});
  r.update(typename Hub::L2_CNTL::ENABLE_L2_CACHE{1}, typename Hub::L2_CNTL::ENABLE_L2_FRAGMENT_PROCESSING{0},
           typename Hub::L2_CNTL::L2_PDE0_CACHE_TAG_GENERATION_MODE{0},
           typename Hub::L2_CNTL::ENABLE_DEFAULT_PAGE_OUT_TO_SYSTEM_MEMORY{1},
           typename Hub::L2_CNTL::PDE_FAULT_CLASSIFICATION{0}, typename Hub::L2_CNTL::CONTEXT1_IDENTITY_ACCESS_MODE{1},
           typename Hub::L2_CNTL::IDENTITY_MODE_FRAGMENT_SIZE{0});
  r.update(typename Hub::L2_CNTL2::INVALIDATE_ALL_L1_TLBS{1}, typename Hub::L2_CNTL2::INVALIDATE_L2_CACHE{1});
  r.write(typename Hub::L2_CNTL3::BANK_SELECT{9}, typename Hub::L2_CNTL3::L2_CACHE_BIGK_FRAGMENT_SIZE{6},
          typename Hub::L2_CNTL3::L2_CACHE_BIGK_ASSOCIATIVITY{1}, typename Hub::L2_CNTL3::L2_CACHE_4K_ASSOCIATIVITY{1});
  r.write(typename Hub::L2_CNTL4::L2_CACHE_4K_PARTITION_COUNT{1});
  r.write(typename Hub::L2_CNTL5::WALKER_PRIORITY_CLIENT_ID{0x1ff});

  r.write_raw<typename Hub::START_LO>(lo32(kVaBase >> 12));
  r.write_raw<typename Hub::START_HI>(hi32(kVaBase >> 12));
  r.write_raw<typename Hub::END_LO>(lo32(kVaEnd >> 12));
  r.write_raw<typename Hub::END_HI>(hi32(kVaEnd >> 12));
  const uint64_t root = (paddr_base_ + root_.value) | 1;  // bit 0: valid
  r.write_raw<typename Hub::BASE_LO>(lo32(root));
  r.write_raw<typename Hub::BASE_HI>(hi32(root));
  const PageTableFormat& format = page_table_format(c_.gc->version());
  using X = typename Hub::CONTEXT0;
  // Every fault raises an interrupt and goes on with the default page. Bits 23 and 24 have no name in the public
  // headers; a driver proven on this hardware sets them.
  constexpr uint32_t kUnnamed = 0x1800000;
  r.write_raw<X>(
      kUnnamed |
      r.value_of(
          typename X::ENABLE_CONTEXT{1}, typename X::PAGE_TABLE_DEPTH{format.depth()},
          typename X::PAGE_TABLE_BLOCK_SIZE{format.block_size()},
          typename X::RANGE_PROTECTION_FAULT_ENABLE_INTERRUPT{1}, typename X::RANGE_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::DUMMY_PAGE_PROTECTION_FAULT_ENABLE_INTERRUPT{1},
          typename X::DUMMY_PAGE_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::PDE0_PROTECTION_FAULT_ENABLE_INTERRUPT{1}, typename X::PDE0_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::VALID_PROTECTION_FAULT_ENABLE_INTERRUPT{1}, typename X::VALID_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::READ_PROTECTION_FAULT_ENABLE_INTERRUPT{1}, typename X::READ_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::WRITE_PROTECTION_FAULT_ENABLE_INTERRUPT{1}, typename X::WRITE_PROTECTION_FAULT_ENABLE_DEFAULT{1},
          typename X::EXECUTE_PROTECTION_FAULT_ENABLE_INTERRUPT{1},
          typename X::EXECUTE_PROTECTION_FAULT_ENABLE_DEFAULT{1}));
  // Identity aperture off: low above high.
  r.write_raw<typename Hub::IDENTITY_LOW_LO>(0xffffffff);
  r.write_raw<typename Hub::IDENTITY_LOW_HI>(0xf);
  r.write_raw<typename Hub::IDENTITY_HIGH_LO>(0);
  r.write_raw<typename Hub::IDENTITY_HIGH_HI>(0);
  r.write_raw<typename Hub::IDENTITY_OFFSET_LO>(0);
  r.write_raw<typename Hub::IDENTITY_OFFSET_HI>(0);
  for (unsigned e = 0; e < kInvalidateEngines; ++e) {  // each engine invalidates the whole range
    r.write_raw<typename Hub::ENG_RANGE_LO>(0xffffffff, 2 * e);
    r.write_raw<typename Hub::ENG_RANGE_HI>(0x1f, 2 * e);
  }
}

void Gmc::init_mm_hub() {
  init_hub<MmHub>(*c_.mmhub);
  mm_up_ = true;
}

void Gmc::init_gc_hub() {
  init_hub<GcHub>(*c_.gc);
  gc_up_ = true;
}

template <class Hub>
void Gmc::flush_hub(const RegisterBlock& r, bool semaphore) {
  // The MM hub's engine 17 is shared with firmware; a read that returns 1 has acquired it.
  if (semaphore) r.wait_until<typename Hub::SEM>(1, 1, kFlushTimeout, "acquiring the TLB invalidation semaphore");
  using Q = typename Hub::REQ;
  r.write(typename Q::PER_VMID_INVALIDATE_REQ{1}, typename Q::FLUSH_TYPE{0}, typename Q::INVALIDATE_L2_PTES{1},
          typename Q::INVALIDATE_L2_PDE0{1}, typename Q::INVALIDATE_L2_PDE1{1}, typename Q::INVALIDATE_L2_PDE2{1},
          typename Q::INVALIDATE_L1_PTES{1});
  r.wait_until<typename Hub::ACK>(1, 1, kFlushTimeout, "TLB invalidation");
  if (semaphore) r.write_raw<typename Hub::SEM>(0);
}

void Gmc::flush_tlb() {
  soc_.flush_hdp();
  if (gc_up_) flush_hub<GcHub>(*c_.gc, false);
  if (mm_up_) {
    flush_hub<MmHub>(*c_.mmhub, true);
    // Private caches of the reserved client are not covered by the request (Linux gmc_v11_0.c, gmc_v11_0_flush_vm_hub).
    c_.mmhub->update(MMVM_L2_BANK_SELECT_RESERVED_CID2::RESERVED_CACHE_PRIVATE_INVALIDATION{1});
    (void)c_.mmhub->read<MMVM_L2_BANK_SELECT_RESERVED_CID2>();
  }
}

template <class Hub>
std::optional<VmFault> Gmc::read_fault(const RegisterBlock& r) {
  using S = typename Hub::FAULT_STATUS;
  const uint32_t status = r.read<S>();
  if (!status) return std::nullopt;
  VmFault f;
  f.status = status;
  f.page = join32(r.read<typename Hub::FAULT_ADDR_LO>(), r.read<typename Hub::FAULT_ADDR_HI>() & 0xf) << 12;
  f.write = r.get<typename S::RW>(status);
  f.atomic = r.get<typename S::ATOMIC>(status);
  f.vmid = r.get<typename S::VMID>(status);
  f.client = r.get<typename S::CID>(status);
  f.permission = r.get<typename S::PERMISSION_FAULTS>(status);
  f.walker = r.get<typename S::WALKER_ERROR>(status);
  return f;
}

std::optional<VmFault> Gmc::gc_fault() { return read_fault<GcHub>(*c_.gc); }
std::optional<VmFault> Gmc::mm_fault() { return read_fault<MmHub>(*c_.mmhub); }

void Gmc::clear_faults() {
  if (gc_up_) c_.gc->update(GCVM_L2_PROTECTION_FAULT_CNTL::CLEAR_PROTECTION_FAULT_STATUS_ADDR{1});
  if (mm_up_) c_.mmhub->update(MMVM_L2_PROTECTION_FAULT_CNTL::CLEAR_PROTECTION_FAULT_STATUS_ADDR{1});
}

}  // namespace baregpu::am
