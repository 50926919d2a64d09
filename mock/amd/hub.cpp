#include "mock/amd/hub.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/base/bits.hpp"
#include "mock/amd/host_access.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

// gfx11 entries (amdgpu_vm.h, gmc_v11_0.c).
constexpr uint64_t kValid = 1, kSystem = 2, kExec = 1 << 4, kRead = 1 << 5, kWrite = 1 << 6;
constexpr uint64_t kPrt = uint64_t{1} << 51, kPdeIsPte = uint64_t{1} << 54;
using Fragment = Bits64<11, 7>;
using Mtype = Bits64<50, 48>;
constexpr uint64_t kAddressMask = 0x0000'ffff'ffff'f000;  // 47:12
constexpr unsigned kAddressBits = 44;
constexpr uint64_t kWholeRange = 0x1f'ffffffff;  // VM_INVALIDATE_ENG17_ADDR_RANGE
// Sizes are ours. A full TLB loses an entry at random, so that nobody can count on a stale one either.
constexpr size_t kTlbEntries = 512, kWalkerLines = 1024;

// CONTEXT0_CNTL of gfx11: an interrupt enable and a default enable for each kind of fault.
struct FaultBits {
  unsigned interrupt, use_default;
};
constexpr FaultBits kRangeBits{9, 10}, kPde0Bits{13, 14}, kValidBits{15, 16}, kReadBits{17, 18}, kWriteBits{19, 20},
    kExecBits{21, 22};

}  // namespace

Hub::Hub(Machine& machine, std::string prefix) : m_(machine), prefix_(std::move(prefix)), is_mm_(prefix_ == "MM") {
  RegisterFile& r = m_.regs;
  auto pair = [&](const char* s) { return Pair{&r.value(name(s) + "_LO32"), &r.value(name(s) + "_HI32")}; };
  aperture_low_ = &r.value(name("MC_VM_SYSTEM_APERTURE_LOW_ADDR"));
  aperture_high_ = &r.value(name("MC_VM_SYSTEM_APERTURE_HIGH_ADDR"));
  l1_cntl_ = &r.value(name("MC_VM_MX_L1_TLB_CNTL"));
  l2_cntl_ = &r.value(name("VM_L2_CNTL"));
  context_cntl_ = &r.value(name("VM_CONTEXT0_CNTL"));
  table_start_ = pair("VM_CONTEXT0_PAGE_TABLE_START_ADDR");
  table_end_ = pair("VM_CONTEXT0_PAGE_TABLE_END_ADDR");
  table_base_ = pair("VM_CONTEXT0_PAGE_TABLE_BASE_ADDR");
  default_addr_ = pair("VM_L2_PROTECTION_FAULT_DEFAULT_ADDR");
  invalidate_range_ = pair("VM_INVALIDATE_ENG17_ADDR_RANGE");
  r.on_write(name("VM_INVALIDATE_ENG17_REQ"), [this](uint32_t v) { on_request(v); });
  r.on_read(name("VM_INVALIDATE_ENG17_ACK"), [this] { return ack_; });
  r.on_read(name("VM_INVALIDATE_ENG17_SEM"), [this]() -> uint32_t {
    // Reading acquires. Now and then another engine is faster; while it is held nobody gets it.
    if (semaphore_held_ || m_.random() % 4 == 0) return 0;
    semaphore_held_ = true;
    return 1;
  });
  r.on_write(name("VM_INVALIDATE_ENG17_SEM"), [this](uint32_t) { semaphore_held_ = false; });
  r.on_write(name("VM_L2_CNTL2"), [this](uint32_t v) {
    m_.regs.set(name("VM_L2_CNTL2"), v & ~3u);  // the two invalidate bits are pulses
    if (v & 3) invalidate();
  });
  r.on_write(name("VM_L2_PROTECTION_FAULT_CNTL"), [this](uint32_t v) {
    m_.regs.set(name("VM_L2_PROTECTION_FAULT_CNTL"), v & ~1u);
    if (!(v & 1)) return;  // CLEAR_PROTECTION_FAULT_STATUS_ADDR
    fault_latched_ = false;
    for (const char* s :
         {"VM_L2_PROTECTION_FAULT_STATUS", "VM_L2_PROTECTION_FAULT_ADDR_LO32", "VM_L2_PROTECTION_FAULT_ADDR_HI32"})
      m_.regs.set(name(s), 0);
  });
  for (const char* s : {"VM_L2_PROTECTION_FAULT_STATUS", "VM_L2_PROTECTION_FAULT_ADDR_LO32",
                        "VM_L2_PROTECTION_FAULT_ADDR_HI32", "VM_INVALIDATE_ENG17_ACK"})
    r.read_only(name(s));
}

void Hub::reset() {
  tlb_.clear();
  lines_.clear();
  ack_ = 0;
  semaphore_held_ = fault_latched_ = false;
  bump_generation();
}

void Hub::invalidate() {
  tlb_.clear();
  lines_.clear();
  bump_generation();
}

// VM_INVALIDATE_ENG17_REQ of gfx11: VMIDs 15:0, type 18:16, L2_PTES 19, PDE0..2 20..22, L1_PTES 23, clear faults 24.
void Hub::on_request(uint32_t v) {
  m_.regs.set(name("VM_INVALIDATE_ENG17_REQ"), v);
  if (is_mm_ && !semaphore_held_ && m_.rules.broken("tlb-semaphore", fmt::format("MM invalidate request {:#x}", v)))
    return;
  ack_ &= ~(v & 0xffff);
  if (!(*l1_cntl_ & 1)) return;  // a hub that is not enabled never acknowledges
  m_.defer([this, v] {
    // The whole range is 37 bits of ones; anything else that drivers might write is less than they mean.
    const bool covers = invalidate_range_.get() == kWholeRange ||
                        !m_.rules.broken("tlb-range", fmt::format("{} hub: invalidate request {:#x} with range {:#x}",
                                                                  prefix_, v, invalidate_range_.get()));
    if (v & 1 && covers) {
      if (v & 1u << 23) tlb_.clear();
      if (v & 1u << 19 || v & 7u << 20) lines_.clear();
      if (v & 1u << 23) bump_generation();
    }
    if (v & 1u << 24) {
      fault_latched_ = false;
      m_.regs.set(name("VM_L2_PROTECTION_FAULT_STATUS"), 0);
    }
    ack_ |= v & 0xffff;
  });
}

Mapping Hub::aperture(uint64_t va) const {
  Mapping m;
  uint64_t low = uint64_t{*aperture_low_} << 18, high = uint64_t{*aperture_high_} << 18;
  if (va < low || va >= high || !m_.in_fb(va, 1)) return m;
  m.status = Mapping::Status::kOk;
  m.va_begin = std::max(low, kFbBase);
  m.va_end = std::min(high, kFbBase + m_.memory.vram_size());
  m.target = m.va_begin - kFbBase;
  m.readable = m.writable = m.executable = true;
  return m;
}

bool Hub::entry_at(uint64_t address, bool system, bool cached, const char* who, uint64_t& entry) {
  uint64_t line = address & ~uint64_t{63};
  const bool use_cache = cached && !system && *l2_cntl_ & 1;
  if (use_cache) {
    if (auto it = lines_.find(line); it != lines_.end()) {
      entry = it->second[(address - line) / 8];
      return true;
    }
  }
  if (system) return m_.bus_read(address, std::as_writable_bytes(std::span(&entry, 1)), who);
  if (line + 64 > m_.memory.vram_size() || m_.memory.in_tmr(line, 64)) return false;
  std::array<uint64_t, 8> words;
  copy_bytes(words.data(), m_.memory.vram() + line, 64);
  // The note is for the entry itself: neighbours that wait in the HDP buffer are somebody's later business.
  if (cached) m_.memory.check_hdp(address, 8, who);
  if (use_cache) {
    if (lines_.size() >= kWalkerLines) lines_.erase(lines_.begin());
    lines_[line] = words;
  }
  entry = words[(address - line) / 8];
  return true;
}

void Hub::check_format(uint64_t pte, uint64_t va) {
  uint64_t mtype = Mtype::get(pte);
  if (mtype == 1 || mtype == 5 || mtype == 7)
    m_.rules.broken("pte-format", fmt::format("PTE {:#x} of {:#x}: MTYPE {} is reserved", pte, va, mtype));
  if ((pte & kAddressMask) >> kAddressBits)
    m_.rules.broken("pte-format",
                    fmt::format("PTE {:#x} of {:#x}: address has more than {} bits", pte, va, kAddressBits));
}

Mapping Hub::walk(uint64_t va, bool cached, const char* who) {
  Mapping m;
  m.pte_va = align_down(va, 4096);
  uint32_t cntl = *context_cntl_;
  uint64_t start = table_start_.get() << 12, end = (table_end_.get() << 12) | 0xfff;
  m.status = Mapping::Status::kRange;
  if (!(cntl & 1) || va < start || va > end) return m;
  const uint64_t offset = va - start;
  const unsigned depth = cntl >> 1 & 3;
  if (offset >> (12 + 9 * (depth + 1))) return m;
  uint64_t base = table_base_.get(), table = base & kAddressMask;
  bool table_system = base & kSystem;
  m.status = Mapping::Status::kInvalid;
  if (!(base & kValid)) return m;
  for (unsigned level = depth;; --level) {
    const unsigned shift = 12 + 9 * level;
    uint64_t entry = 0;
    if (!entry_at(table + (offset >> shift & 511) * 8, table_system, cached, who, entry)) {
      m.status = Mapping::Status::kWalkerError;
      return m;
    }
    m.pte = entry;
    if (!(entry & kValid)) {
      if (!(entry & kPrt && (level == 0 || entry & kPdeIsPte))) return m;
      m.prt = m.readable = m.writable = true;
    }
    if (level != 0 && !(entry & kPdeIsPte)) {
      table = entry & kAddressMask;
      table_system = entry & kSystem;
      continue;
    }
    if (cached) check_format(entry, va);
    // FRAGMENT: the entry speaks for 4 KiB << fragment, aligned; a huge page for at least its own size.
    const unsigned block = std::min<unsigned>(std::max<unsigned>(12 + unsigned(Fragment::get(entry)), shift), 43);
    const uint64_t own = align_down(offset, uint64_t{1} << shift), begin = align_down(offset, uint64_t{1} << block);
    m.status = Mapping::Status::kOk;
    m.va_begin = start + begin;
    m.va_end = m.va_begin + (uint64_t{1} << block);
    m.system = entry & kSystem;
    m.target = (entry & kAddressMask) - (own - begin);
    if (!m.prt) m.readable = entry & kRead, m.writable = entry & kWrite, m.executable = entry & kExec;
    return m;
  }
}

Mapping Hub::lookup(uint64_t va, const char* who) {
  if (m_.faults.hit(FaultPoint::kPageFault)) return {};
  if (Mapping direct = aperture(va); direct.status == Mapping::Status::kOk) return direct;
  auto it = tlb_.upper_bound(va);
  if (it != tlb_.begin() && va < std::prev(it)->second.va_end) {
    const Mapping hit = std::prev(it)->second;
    // Hardware does not look again; the mock does, to see whether the driver lives on a stale entry.
    Mapping fresh = walk(va, false, who);
    bool same = fresh.status == Mapping::Status::kOk && fresh.system == hit.system &&
                fresh.target + (va - fresh.va_begin) == hit.target + (va - hit.va_begin) &&
                fresh.readable == hit.readable && fresh.writable == hit.writable && fresh.executable == hit.executable;
    if (same) return hit;
    Mapping source = walk(hit.pte_va, false, who);
    const bool fragment = source.status == Mapping::Status::kOk && source.pte == hit.pte;
    if (m_.rules.broken(
            fragment ? "pte-fragment" : "stale-translation",
            fmt::format("{} hub, {}: VA {:#x} uses {:#x} (PTE {:#x} of {:#x}), the tables say {:#x} (PTE {:#x})",
                        prefix_, who, va, hit.target + (va - hit.va_begin), hit.pte, hit.pte_va,
                        fresh.status == Mapping::Status::kOk ? fresh.target + (va - fresh.va_begin) : 0, fresh.pte)))
      return hit;
    tlb_.erase(std::prev(it));
    lines_.clear();
  }
  Mapping m = walk(va, true, who);
  if (m.status != Mapping::Status::kOk) {
    // The walker's own cache may hold a table line from before the page was mapped.
    Mapping fresh = walk(va, false, who);
    if (fresh.status == Mapping::Status::kOk &&
        !m_.rules.broken("stale-translation",
                         fmt::format("{} hub, {}: VA {:#x} was cached as invalid, the tables say PTE {:#x}", prefix_,
                                     who, va, fresh.pte))) {
      lines_.clear();
      return fresh;
    }
    return m;
  }
  if (*l1_cntl_ & 1) {
    if (tlb_.size() >= kTlbEntries) tlb_.erase(std::next(tlb_.begin(), long(m_.random() % tlb_.size())));
    // An older, smaller entry inside the block keeps answering for its part.
    auto next = tlb_.lower_bound(m.va_begin);
    if (next == tlb_.end() || next->second.va_begin >= m.va_end) tlb_[m.va_begin] = m;
  }
  return m;
}

bool Hub::raise_fault(uint64_t va, bool write, Mapping::Status why, unsigned permission, Client client) {
  FaultBits bits = kValidBits;
  if (why == Mapping::Status::kRange)
    bits = kRangeBits;
  else if (why == Mapping::Status::kWalkerError)
    bits = kPde0Bits;
  else if (permission)
    bits = permission & 4 ? kExecBits : write ? kWriteBits : kReadBits;
  const uint32_t cntl = *context_cntl_;
  std::string status = name("VM_L2_PROTECTION_FAULT_STATUS");
  if (fault_latched_) {
    m_.regs.set(status, m_.regs.get(status) | 1);  // MORE_FAULTS
  } else {
    fault_latched_ = true;
    uint32_t walker = why == Mapping::Status::kWalkerError ? 1 : 0;
    m_.regs.set(status, walker << 1 | (permission & 0xf) << 4 | uint32_t(client) << 9 | (write ? 1u << 18 : 0));
    m_.regs.set(name("VM_L2_PROTECTION_FAULT_ADDR_LO32"), lo32(va >> 12));
    m_.regs.set(name("VM_L2_PROTECTION_FAULT_ADDR_HI32"), hi32(va >> 12));
  }
  if (cntl >> bits.interrupt & 1)
    m_.ih.push(is_mm_ ? IhClient::kVmc : IhClient::kGfx, kIhFault, 0, {lo32(va >> 12), uint32_t(va >> 44) & 0xf, 0, 0});
  return cntl >> bits.use_default & 1;
}

void Hub::default_page(uint64_t va, std::byte* data, size_t n, bool write) {
  const uint64_t at = default_page_offset() + va % 4096;
  if (write)
    m_.memory.vram_write(at, {data, n}, "fault default page");
  else
    m_.memory.vram_read(at, {data, n}, "fault default page");
}

bool Hub::read(uint64_t va, std::span<std::byte> out, Client client, const char* who) {
  while (!out.empty()) {
    size_t n = size_t(std::min<uint64_t>(out.size(), 4096 - va % 4096));
    Mapping m = lookup(va, who);
    const bool ok = m.status == Mapping::Status::kOk;
    if (!ok || !m.readable) {
      if (!raise_fault(va, false, m.status, ok ? 1 : 0, client)) return false;
      default_page(va, out.data(), n, false);
    } else if (m.prt) {
      std::fill_n(out.begin(), n, std::byte{0});
    } else if (m.system) {
      m_.bus_read(m.target + (va - m.va_begin), out.first(n), who);
    } else {
      m_.memory.vram_read(m.target + (va - m.va_begin), out.first(n), who);
    }
    va += n;
    out = out.subspan(n);
  }
  return true;
}

bool Hub::write(uint64_t va, std::span<const std::byte> in, Client client, const char* who) {
  while (!in.empty()) {
    size_t n = size_t(std::min<uint64_t>(in.size(), 4096 - va % 4096));
    Mapping m = lookup(va, who);
    const bool ok = m.status == Mapping::Status::kOk;
    if (!ok || !m.writable) {
      if (!raise_fault(va, true, m.status, ok ? 2 : 0, client)) return false;
      default_page(va, const_cast<std::byte*>(in.data()), n, true);
    } else if (m.prt) {
      // dropped
    } else if (m.system) {
      m_.bus_write(m.target + (va - m.va_begin), in.first(n), who);
    } else {
      m_.memory.vram_write(m.target + (va - m.va_begin), in.first(n), who);
    }
    va += n;
    in = in.subspan(n);
  }
  return true;
}

isa::Translation ShaderSpace::translate(uint64_t va, isa::Access) {
  auto lock = m_.engine_lock();
  isa::Translation t;
  Mapping m = hub_.lookup(va, "shader");
  if (m.status != Mapping::Status::kOk || m.prt) return t;
  t.readable = m.readable, t.writable = m.writable, t.executable = m.executable;
  uint64_t begin = m.va_begin, end = m.va_end;
  if (m.system) {  // host pages are scattered: one at a time
    begin = std::max(begin, align_down(va, 4096));
    end = std::min(end, begin + 4096);
    t.host = m_.bus_host(m.target + (begin - m.va_begin), "shader");
    if (!t.host) return {};
  } else {
    if (m.target >= m_.memory.vram_size()) return {};
    end = std::min(end, begin + (m_.memory.vram_size() - m.target));
    if (va >= end || m_.memory.in_tmr(m.target, end - begin)) return {};
    t.host = m_.memory.vram() + m.target;
  }
  t.va_begin = begin;
  t.va_end = end;
  t.valid = true;
  return t;
}

}  // namespace baregpu::mock
