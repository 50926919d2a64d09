#include "mock/isa/wave.hpp"

#include <fmt/format.h>
#include <immintrin.h>

#include "mock/isa/disasm.hpp"

namespace baregpu::mock::isa {

std::byte* Tlb::find_slow(uint64_t va, uint64_t bytes, Access access, FaultKind& why) {
  const bool write = access != Access::kRead;
  for (unsigned i = 0; i < entries_.size(); ++i) {
    const TlbEntry& e = entries_[i];
    if (va < e.begin || va >= e.end) continue;
    if (write ? !e.writable : !e.readable) break;  // the page tables decide
    last_ = i;
    if (e.end - va < bytes) {
      why = FaultKind::kPageFault;
      return nullptr;
    }
    return e.host + (va - e.begin);
  }
  const Translation t = space_->translate(va, access);
  if (!t.valid) {
    why = FaultKind::kPageFault;
    return nullptr;
  }
  if (write ? !t.writable : !t.readable) {
    why = FaultKind::kPermission;
    return nullptr;
  }
  last_ = next_++ % entries_.size();
  entries_[last_] = {t.va_begin, t.va_end, t.host, t.readable, t.writable};
  if (t.va_end - va < bytes) {
    why = FaultKind::kPageFault;
    return nullptr;
  }
  return t.host + (va - t.va_begin);
}

void Tlb::flush() {
  generation_ = space_->generation();
  entries_.fill({});
  last_ = 0;
}

const Uop* raise(Wave& w, const Uop* u, FaultKind kind, Access access, uint64_t address, uint64_t lanes) {
  w.instructions += u->seq - w.run_start + 1;
  w.status = Status::kFault;
  w.fault = {.kind = kind,
             .access = access,
             .pc = u->pc,
             .address = address,
             .lane_mask = lanes,
             .group = w.group->id,
             .wave = w.index,
             .words = u->words,
             .text = {}};
  const char* what = "";
  switch (kind) {
    case FaultKind::kNone: break;
    case FaultKind::kPageFault: what = "no translation for"; break;
    case FaultKind::kPermission: what = "no permission for"; break;
    case FaultKind::kIllegalInstruction: what = "illegal instruction"; break;
    case FaultKind::kMemoryViolation: what = "memory violation at"; break;
    case FaultKind::kTrap: what = "trap without a handler"; break;
  }
  const std::string text = disassemble(Target::kGfx1100, u->words, u->pc).text;
  const bool memory = kind != FaultKind::kIllegalInstruction && kind != FaultKind::kTrap;
  w.fault.text = memory ? fmt::format("{} {:#x} by '{}'", what, address, text)
                        : fmt::format("{}: {:#010x} {:#010x} ({})", what, u->words[0], u->words[1], text);
  return nullptr;
}

void apply_mode(uint32_t mode) {
  // MODE 1:0 rounding of f32: nearest, +inf, -inf, zero; 5:4 denormals of f32: bit 0 inputs, bit 1 outputs kept.
  constexpr unsigned kRounding[] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
  unsigned csr =
      (_mm_getcsr() & ~unsigned(_MM_ROUND_MASK | _MM_FLUSH_ZERO_MASK | _MM_DENORMALS_ZERO_MASK)) | kRounding[mode & 3];
  if (!(mode & 0x10)) csr |= _MM_DENORMALS_ZERO_ON;
  if (!(mode & 0x20)) csr |= _MM_FLUSH_ZERO_ON;
  _mm_setcsr(csr);
}

}  // namespace baregpu::mock::isa
