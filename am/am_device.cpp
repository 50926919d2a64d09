// Memory and faults of AmDevice; boot.cpp has bring-up and shutdown.
#include "am/am_device.hpp"

#include <fmt/format.h>

#include <mutex>

#include "drivers/base/log.hpp"

namespace baregpu::am {
namespace {

/// Virtual addresses are handed out once for all GPUs of the process, so that a buffer can be mapped at the same
/// address on each of them.
struct VaSpace {
  std::mutex mutex;
  Tlsf heap{"GPU virtual address space", kVaBase, kVaSize, 4096};
};
VaSpace& va_space() {
  static VaSpace s;
  return s;
}

constexpr uint64_t kGuard = 4096;  // an unmapped page after each allocation: overruns fault
constexpr uint64_t kLargeVram = 8 * MiB, kLargePage = 2 * MiB;

struct SqError {
  uint32_t type;
  const char* code;
  const char* text;
};
constexpr SqError kSqErrors[] = {
    {0, "ecc", "uncorrectable ECC error"},
    {1, "illegal_instruction", "illegal instruction"},
    {2, "memory_violation", "memory violation (misaligned or outside an aperture)"},
    {3, "ecc", "ECC error"},
};

}  // namespace

Memory* AmDevice::allocate(uint64_t size, MemoryKind kind, bool cpu_access, std::string label) {
  if (size == 0 || size > kVaSize / 2)
    throw Error({.device = name(), .what = fmt::format("cannot allocate {} bytes", size), .source = {}, .hint = {}});
  if (kind != MemoryKind::kHost && cpu_access && !c_.vram->large_bar()) kind = MemoryKind::kHost;
  auto m = std::make_unique<Memory>();
  m->size = align_up(size, kind != MemoryKind::kHost && size >= kLargeVram ? kLargePage : 4096);
  m->kind = kind;
  m->label = std::move(label);
  const uint64_t align = uint64_t{1} << log2_floor(m->size);
  {
    std::lock_guard lock(va_space().mutex);
    m->va_block_ = va_space().heap.allocate(m->size + kGuard, align);
  }
  m->va = GpuVa(m->va_block_);
  bool have_vram = false;
  try {
    PageFlags flags;
    std::vector<PhysRun> runs;
    if (kind == MemoryKind::kHost) {
      m->host_ = pci_->alloc_dma(m->size, false);
      m->cpu = m->host_.view();
      flags.system = flags.snooped = flags.uncached = true;
      runs = to_runs(m->host_.pages());
    } else {
      m->vram_ = VramOffset(vram_heap_->allocate(m->size, m->size >= kLargePage ? kLargePage : 4096));
      have_vram = true;
      if (m->vram_.value + m->size <= c_.vram->window()) m->cpu = c_.vram->view(m->vram_, m->size);
      flags.uncached = kind == MemoryKind::kVramUncached;
      runs = {{gmc_->paddr_base() + m->vram_.value, m->size}};
    }
    tables_->map(m->va, runs, flags);
    gmc_->flush_tlb();
  } catch (const std::exception&) {
    if (have_vram) vram_heap_->free(m->vram_.value);
    std::lock_guard lock(va_space().mutex);
    va_space().heap.free(m->va_block_);
    throw;
  }
  Memory* out = m.get();
  memory_.emplace(m->va.value, std::move(m));
  return out;
}

void AmDevice::free(Memory* memory) noexcept {
  if (!memory) return;
  auto it = memory_.find(memory->va.value);
  if (it == memory_.end() || it->second.get() != memory) {
    log::error("{}: free of memory that is not allocated", name());
    return;
  }
  try {
    if (booted_) tables_->unmap(memory->va, memory->size);  // after shutdown() no engine runs, and the tables die too
    if (booted_) gmc_->flush_tlb();  // a stale entry would let the GPU write into the next owner's memory
    if (memory->kind != MemoryKind::kHost) vram_heap_->free(memory->vram_.value);
    std::lock_guard lock(va_space().mutex);
    va_space().heap.free(memory->va_block_);
  } catch (const std::exception& e) {
    // The device is gone or in error; the address is not handed out again, so nothing can be hit by mistake.
    log::warn("{}: freeing {} at {:#x}: {}", name(), memory->label, memory->va.value, e.what());
    error_state_ = true;
  }
  memory_.erase(it);
}

const Memory* AmDevice::nearest(GpuVa va) const {
  const Memory* best = nullptr;
  uint64_t distance = ~uint64_t{0};
  auto consider = [&](const Memory& m) {
    uint64_t d = va < m.va ? m.va - va : va.value >= m.va.value + m.size ? va - m.va - m.size + 1 : 0;
    if (d < distance) distance = d, best = &m;
  };
  auto it = memory_.upper_bound(va.value);
  if (it != memory_.end()) consider(*it->second);
  if (it != memory_.begin()) consider(*std::prev(it)->second);
  return best;
}

FaultReport AmDevice::collect_faults() {
  FaultReport report;
  auto note = [&](const char* code, const std::string& text) {
    if (!report.faulted) report.code = code;  // the first cause is the one that counts
    report.faulted = true;
    report.text += (report.text.empty() ? "" : "; ") + text;
  };
  bool lost = false;
  unsigned shown = 0;
  ih_->drain(
      [&](const IhEntry& e) {
        using namespace ih;
        const bool fault_client = e.client == kClientGfx || e.client == kClientVmc;
        if (fault_client && e.source == kSourceVmFault) {
          if (shown++ < 4)
            note("page_fault", fmt::format("{} page fault at {:#x}", e.client == kClientGfx ? "GPU" : "memory hub",
                                           uint64_t{e.context[0]} << 12 | uint64_t{e.context[1] & 0xf} << 44));
          return;
        }
        if (e.source == kSourceSdmaTrap || e.source == kSourceCpEop) return;
        if (e.source == kSourceSq) {
          // gfx11: encoding 7:6 of context 1; 2 = error with its type in context 0, 24:21.
          if (Bits<7, 6>::get(e.context[1]) != 2) return;
          const uint32_t type = Bits<24, 21>::get(e.context[0]);
          const char *code = "shader_error", *text = "unknown shader error";
          for (const SqError& s : kSqErrors)
            if (s.type == type) code = s.code, text = s.text;
          if (shown++ < 4)
            note(code, fmt::format("shader: {} (WGP {}, SIMD {}, wave {})", text, Bits<5, 2>::get(e.context[1]),
                                   Bits<1, 0>::get(e.context[1]), Bits<31, 27>::get(e.context[0])));
          return;
        }
        if (e.source == kSourceCpBadOpcode) return note("bad_packet", "command processor: unknown packet");
        if (e.source == kSourceCpReserved)
          return note("bad_packet", "command processor: reserved bits set in a packet");
        if (e.source == kSourceCpPrivReg || e.source == kSourceCpPrivInstr)
          return note("bad_packet", "command processor: privileged access");
        if (e.source == kSourceSdmaHang) return note("sdma_hang", "copy engine: queue hang");
        note("interrupt", fmt::format("unexpected interrupt: client {}, source {}, context {:#x} {:#x}", e.client,
                                      e.source, e.context[0], e.context[1]));
      },
      &lost);
  if (lost) note("interrupt", "interrupt ring overflow: some causes are missing");
  if (gmc_->gc_hub_up()) {
    report.vm = gmc_->gc_fault();
    if (!report.vm) report.vm = gmc_->mm_fault();
    if (report.vm) {
      if (report.code.empty()) report.code = "page_fault";
      report.faulted = true;
      std::string where;
      if (const Memory* m = nearest(GpuVa(report.vm->page))) {
        if (report.vm->page >= m->va.value && report.vm->page < m->va.value + m->size)
          where = fmt::format(", in '{}' at {:#x}, {} bytes", m->label, m->va.value, m->size);
        else if (report.vm->page >= m->va.value + m->size)
          where = fmt::format(", {} bytes past the end of '{}' ({:#x}, {} bytes)",
                              report.vm->page - m->va.value - m->size, m->label, m->va.value, m->size);
        else
          where = fmt::format(", {} bytes before '{}' ({:#x}, {} bytes)", m->va.value - report.vm->page, m->label,
                              m->va.value, m->size);
      }
      report.text += (report.text.empty() ? "" : "; ") + report.vm->str() + where;
      gmc_->clear_faults();  // otherwise the next fault's address is not latched
    }
  }
  if (report.faulted) error_state_ = true;
  return report;
}

void AmDevice::recover() {
  collect_faults();
  gfx_->reset_mec(mec_start_, true);
  sdma_->fini_hw();
  sdma_->init_hw();
  gmc_->flush_tlb();
  error_state_ = false;
}

}  // namespace baregpu::am
