#include "mock/amd/sdma.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/base/bits.hpp"
#include "mock/amd/host_access.hpp"
#include "mock/amd/machine.hpp"
#include "mock/amd/pm4.hpp"

namespace baregpu::mock {
namespace {

// SDMA 6 packets (sdma_v6_0_0_pkt_open.h).
enum Op : uint32_t {
  kNop = 0,
  kCopy = 1,
  kWrite = 2,
  kIndirect = 4,
  kFence = 5,
  kTrap = 6,
  kPoll = 8,
  kFill = 11,
  kTimestamp = 13,
  kGcrReq = 17,
  kDummyTrap = 32
};
using OpField = Bits<7, 0>;
using SubOp = Bits<15, 8>;
using NopCount = Bits<29, 16>;
constexpr uint32_t kCountMask = (1u << 30) - 1;  // byte counts minus 1, from version 5 on
// SDMAn_QUEUE0_* and SDMAn_* fields (gc_11_0_0).
using RbEnable = Bits<0>;
using RbSize = Bits<5, 1>;
using RptrWriteback = Bits<12>;
using DoorbellEnable = Bits<28>;
using DoorbellOffset = Bits<27, 2>;
constexpr uint32_t kHalt = 1u << 0, kTh1Reset = 1u << 13, kTrapEnable = 1, kIbEnable = 1;
constexpr unsigned kPacketsPerTurn = 256;
constexpr uint64_t kSlice = 256 * KiB;  // then others may have the card's lock

}  // namespace

Sdma::Sdma(Machine& machine) : m_(machine) {
  for (Engine& e : engines_) attach(e);
}

std::string Sdma::name(const Engine& e, const char* suffix) const { return fmt::format("SDMA{}_{}", e.index, suffix); }
uint32_t Sdma::reg(const Engine& e, const char* suffix) const { return m_.regs.get(name(e, suffix)); }

void Sdma::attach(Engine& e) {
  RegisterFile& r = m_.regs;
  r.set_reset_value(name(e, "F32_CNTL"), kHalt);
  r.on_write(name(e, "QUEUE0_RB_CNTL"), [this, &e](uint32_t v) { control(e, v); });
  // Queue registers are latched while the ring runs; the doorbell and the write pointer stay writable.
  for (const char* s : {"QUEUE0_RB_BASE", "QUEUE0_RB_BASE_HI", "QUEUE0_RB_RPTR", "QUEUE0_RB_RPTR_HI",
                        "QUEUE0_RB_RPTR_ADDR_LO", "QUEUE0_RB_RPTR_ADDR_HI"}) {
    std::string full = name(e, s);
    r.on_write(full, [this, &e, full](uint32_t v) {
      if (e.enabled && m_.rules.broken("sdma-active-write", fmt::format("{} = {:#x} while RB_ENABLE is set", full, v)))
        return;
      m_.regs.set(full, v);
    });
  }
  r.on_read(name(e, "QUEUE0_RB_RPTR"), [this, &e] { return e.enabled ? lo32(e.rptr) : reg(e, "QUEUE0_RB_RPTR"); });
  r.on_read(name(e, "QUEUE0_RB_RPTR_HI"),
            [this, &e] { return e.enabled ? hi32(e.rptr) : reg(e, "QUEUE0_RB_RPTR_HI"); });
}

void Sdma::reset() {
  for (Engine& e : engines_) {
    e.enabled = e.hung = false;
    e.rptr = e.wptr = 0;
    e.ib = {};
    ++e.epoch;
    for (const char* s : {"QUEUE0_RB_CNTL", "QUEUE0_IB_CNTL", "QUEUE0_DOORBELL", "QUEUE0_DOORBELL_OFFSET"})
      m_.regs.set(name(e, s), 0);
  }
}

void Sdma::control(Engine& e, uint32_t v) {
  m_.regs.set(name(e, "QUEUE0_RB_CNTL"), v);
  const bool on = RbEnable::get(v);
  if (on && !e.enabled) {
    e.rptr = join32(reg(e, "QUEUE0_RB_RPTR"), reg(e, "QUEUE0_RB_RPTR_HI"));
    e.wptr = join32(reg(e, "QUEUE0_RB_WPTR"), reg(e, "QUEUE0_RB_WPTR_HI"));
    e.hung = false;
    e.ib = {};
    ++e.epoch;
  } else if (!on && e.enabled) {
    ++e.epoch;
  }
  e.enabled = on;
}

bool Sdma::running(const Engine& e) const {
  return e.enabled && !e.hung && !(reg(e, "F32_CNTL") & (kHalt | kTh1Reset));
}
uint64_t Sdma::ring_bytes(const Engine& e) const { return uint64_t{4} << RbSize::get(reg(e, "QUEUE0_RB_CNTL")); }

bool Sdma::doorbell(unsigned index, uint64_t value) {
  for (Engine& e : engines_) {
    if (!e.enabled || !DoorbellEnable::get(reg(e, "QUEUE0_DOORBELL"))) continue;
    if (DoorbellOffset::get(reg(e, "QUEUE0_DOORBELL_OFFSET")) != 2 * index) continue;
    if (value % 4 && m_.rules.broken("unaligned", fmt::format("{} write pointer {:#x}", e.who, value))) return true;
    if ((value < e.rptr || value - e.rptr > ring_bytes(e)) &&
        m_.rules.broken("queue-wptr", fmt::format("{} doorbell {:#x}, read pointer {:#x}, ring of {:#x} bytes", e.who,
                                                  value, e.rptr, ring_bytes(e))))
      return true;
    e.wptr = value;
    return true;
  }
  return false;
}

StepResult Sdma::step(std::unique_lock<std::mutex>& lock) {
  StepResult result = StepResult::kIdle;
  if (m_.reset_pending()) return result;
  for (Engine& e : engines_) {
    if (!running(e)) continue;
    const uint64_t before = e.rptr, epoch = e.epoch;
    StepResult r = StepResult::kIdle;
    for (unsigned n = 0; n < kPacketsPerTurn && running(e) && e.epoch == epoch && !m_.stopping(); ++n) {
      r = run_one(e, lock);
      if (r == StepResult::kWorked)
        result = r;
      else
        break;
    }
    if (e.epoch != epoch) continue;
    if (e.rptr != before) report_rptr(e);
    if (r == StepResult::kBlocked && result == StepResult::kIdle) result = r;
  }
  return result;
}

void Sdma::report_rptr(Engine& e) {
  if (!RptrWriteback::get(reg(e, "QUEUE0_RB_CNTL"))) return;
  uint64_t to = join32(reg(e, "QUEUE0_RB_RPTR_ADDR_LO"), reg(e, "QUEUE0_RB_RPTR_ADDR_HI"));
  m_.gc.write64(to, e.rptr, Client::kSdma, e.who);
}

bool Sdma::fetch(Engine& e, uint32_t* out, uint32_t n, uint32_t skip) {
  uint64_t va = e.ib.size ? e.ib.va + 4 * uint64_t{e.ib.pos + skip}
                          : (join32(reg(e, "QUEUE0_RB_BASE"), reg(e, "QUEUE0_RB_BASE_HI")) << 8) +
                                (e.rptr % ring_bytes(e)) + 4 * skip;
  return m_.gc.read(va, std::as_writable_bytes(std::span(out, n)), Client::kSdma, e.who);
}

StepResult Sdma::done(Engine& e, uint32_t dwords) {
  if (e.ib.size) {
    e.ib.pos += dwords;
    if (e.ib.pos >= e.ib.size) e.ib = {};
  } else {
    e.rptr += 4 * uint64_t{dwords};
  }
  return StepResult::kWorked;
}

void Sdma::hang(Engine& e, uint8_t source) {
  e.hung = true;
  m_.rules.remember_event(fmt::format("{} hangs at {:#x}", e.who, e.rptr));
  if (source) m_.ih.push(IhClient::kGfx, source, uint8_t(e.index), {0, 0, 0, 0});
}

StepResult Sdma::malformed(Engine& e, const char* rule, const std::string& why, uint32_t length) {
  if (!m_.rules.broken(rule, fmt::format("{} at {:#x}: {}", e.who, e.rptr, why))) return done(e, length);
  hang(e, kIhSdmaHang);
  return StepResult::kIdle;
}

StepResult Sdma::run_one(Engine& e, std::unique_lock<std::mutex>& lock) {
  const uint64_t available = e.ib.size ? e.ib.size - e.ib.pos : (e.wptr - e.rptr) / 4;
  if (available == 0) return StepResult::kIdle;
  uint32_t header = 0;
  if (!fetch(e, &header, 1, 0)) return hang(e, 0), StepResult::kIdle;
  const uint32_t op = OpField::get(header), sub = SubOp::get(header);
  uint32_t length = 0;
  switch (op) {
    case kNop: length = 1 + NopCount::get(header); break;
    case kCopy: length = sub == 0 ? 7 : 0; break;
    case kWrite: {
      uint32_t count = 0;
      if (sub == 0 && available >= 4 && !fetch(e, &count, 1, 3)) return hang(e, 0), StepResult::kIdle;
      length = sub == 0 ? 4 + (count & 0xfffff) + 1 : 0;
      break;
    }
    case kIndirect: length = 6; break;
    case kFence: length = 4; break;
    case kTrap: length = 2; break;
    case kPoll: length = 6; break;
    case kFill: length = 5; break;
    case kTimestamp: length = sub == 2 ? 3 : 0; break;
    case kGcrReq: length = 5; break;
    case kDummyTrap: length = 1; break;
    default: break;
  }
  if (length == 0) return malformed(e, "ring-packet-malformed", fmt::format("unknown packet, header {:#x}", header), 1);
  if (!e.ib.size && 4 * uint64_t{length} > ring_bytes(e) - e.rptr % ring_bytes(e))
    return malformed(e, "sdma-wrap", fmt::format("packet {:#x} of {} dwords crosses the ring's end", header, length),
                     length);
  if (length > available) {
    if (!e.ib.size) return StepResult::kIdle;  // not submitted yet
    return malformed(e, "ring-packet-malformed", "packet runs over the end of its buffer", uint32_t(available));
  }
  if (m_.faults.hit(FaultPoint::kHang)) return hang(e, 0), StepResult::kIdle;
  if (op == kNop) return done(e, length);
  std::vector<uint32_t> p(length);
  if (!fetch(e, p.data(), length, 0)) return hang(e, 0), StepResult::kIdle;
  return execute(e, header, p, lock);
}

StepResult Sdma::execute(Engine& e, uint32_t header, const std::vector<uint32_t>& p,
                         std::unique_lock<std::mutex>& lock) {
  const auto length = uint32_t(p.size());
  const uint64_t epoch = e.epoch;
  auto finish = [&](bool ok) {
    if (e.epoch != epoch) return StepResult::kIdle;
    if (ok) return done(e, length);
    hang(e, 0);
    return StepResult::kIdle;
  };
  auto misaligned = [&](uint64_t va, unsigned align) {
    return va % align && m_.rules.broken("unaligned", fmt::format("{} packet {:#x}: address {:#x}", e.who, header, va));
  };
  switch (OpField::get(header)) {
    case kCopy:
      return finish(move(e, join32(p[5], p[6]), join32(p[3], p[4]), nullptr, uint64_t{p[1] & kCountMask} + 1, lock));
    case kWrite: {
      uint64_t va = join32(p[1], p[2]);
      if (misaligned(va, 4)) return finish(false);
      return finish(m_.gc.write(va, std::as_bytes(std::span(p).subspan(4)), Client::kSdma, e.who));
    }
    case kIndirect: return indirect(e, header, p);
    case kFence: {
      uint64_t va = join32(p[1], p[2]);
      if (misaligned(va, 4)) return finish(false);
      return finish(m_.gc.write32(va, p[3], Client::kSdma, e.who));
    }
    case kTrap:
      if (reg(e, "CNTL") & kTrapEnable)
        m_.ih.push(IhClient::kGfx, kIhSdmaTrap, uint8_t(e.index), {p[1] & 0xfffffff, 0, 0, 0});
      return done(e, length);
    case kPoll: {
      bool satisfied = false;
      if (!poll(e, header, p, satisfied)) return finish(false);
      return satisfied ? done(e, length) : StepResult::kBlocked;
    }
    case kFill: {
      uint64_t va = join32(p[1], p[2]), n = uint64_t{p[4] & kCountMask} + 1;
      if (header >> 30 != 2)
        return malformed(e, "ring-packet-malformed", fmt::format("CONST_FILL size {}", header >> 30), length);
      if (misaligned(va, 4) || misaligned(n, 4)) return finish(false);
      return finish(move(e, va, 0, &p[3], n, lock));
    }
    case kTimestamp: {
      uint64_t va = join32(p[1], p[2]);
      if (misaligned(va, 8)) return finish(false);
      return finish(m_.gc.write64(va, m_.clock(), Client::kSdma, e.who));
    }
    default: return done(e, length);  // cache control: copies are coherent here
  }
}

// header: FUNC 30:28, MEM_POLL 31, HDP_FLUSH 26.
bool Sdma::poll(Engine& e, uint32_t header, const std::vector<uint32_t>& p, bool& satisfied) {
  if (header >> 26 & 1) {
    m_.memory.hdp_flush();
    satisfied = true;
    return true;
  }
  const uint64_t va = join32(p[1], p[2]);
  uint32_t value = 0;
  if (header >> 31) {
    if (va % 4 && m_.rules.broken("unaligned", fmt::format("{} POLL_REGMEM address {:#x}", e.who, va))) return false;
    if (!m_.gc.read32(va, value, Client::kSdma, e.who)) return false;
  } else {
    value = m_.regs.access_read(p[1] / 4);
  }
  satisfied = compare(header >> 28 & 7, value & p[4], p[3]);
  return true;
}

StepResult Sdma::indirect(Engine& e, uint32_t, const std::vector<uint32_t>& p) {
  const uint64_t va = join32(p[1], p[2]);
  const uint32_t size = p[3] & 0xfffff, length = uint32_t(p.size());
  if (e.ib.size) return malformed(e, "ring-packet-malformed", "INDIRECT inside an indirect buffer", length);
  if (va % 32 || size % 8 || size == 0)
    return malformed(e, "unaligned", fmt::format("INDIRECT of {} dwords at {:#x}", size, va), length);
  if ((e.rptr / 4 + length) % 8)
    return malformed(e, "unaligned", "INDIRECT does not end on an 8-dword boundary of the ring", length);
  if (!(reg(e, "QUEUE0_IB_CNTL") & kIbEnable))
    return malformed(e, "ring-packet-malformed", "INDIRECT with IB_ENABLE off", length);
  e.rptr += 4 * uint64_t{length};
  e.ib = {va, size, 0};
  return StepResult::kWorked;
}

// Host address of `va` and how many bytes follow it contiguously; nullptr = fault without a default page.
std::byte* Sdma::place(Engine& e, uint64_t va, bool write, uint64_t& run) {
  Mapping map = m_.gc.lookup(va, e.who);
  const bool ok = map.status == Mapping::Status::kOk && (write ? map.writable : map.readable);
  // Scattered host pages and the stand-in page end at 4 KiB; local memory goes on as far as its entry reaches.
  const bool local = ok && !map.system && !map.prt;
  run = std::min(run, local ? std::min(map.va_end - va, kSlice) : 4096 - va % 4096);
  if (!ok) {
    unsigned permission = map.status == Mapping::Status::kOk ? (write ? 2 : 1) : 0;
    if (!m_.gc.raise_fault(va, write, map.status, permission, Client::kSdma)) return nullptr;
    const uint64_t at = m_.gc.default_page_offset();
    return (at < m_.memory.vram_size() ? m_.memory.vram() + at : scratch_.data()) + va % 4096;
  }
  uint64_t target = map.target + (va - map.va_begin);
  if (map.prt) {
    scratch_.fill(std::byte{0});
    return scratch_.data() + va % 4096;
  }
  if (map.system) {
    if (std::byte* host = m_.bus_host(target, e.who)) return host;
    scratch_.fill(std::byte{0xff});
    return scratch_.data() + va % 4096;
  }
  if (target < m_.memory.vram_size()) {
    run = std::min(run, m_.memory.vram_size() - target);
    return m_.memory.vram() + target;
  }
  run = std::min(run, 4096 - va % 4096);
  return scratch_.data() + va % 4096;
}

bool Sdma::move(Engine& e, uint64_t dst, uint64_t src, const uint32_t* fill, uint64_t n,
                std::unique_lock<std::mutex>& lock) {
  const uint64_t epoch = e.epoch;
  uint64_t slice = 0;
  while (n != 0) {
    uint64_t run = n;
    std::byte* from = fill ? scratch_.data() : place(e, src, false, run);
    if (!from) return false;
    std::byte* to = place(e, dst, true, run);
    if (!to) return false;
    auto vram_offset = [&](std::byte* p) { return uint64_t(p - m_.memory.vram()); };
    const bool from_vram = !fill && from >= m_.memory.vram() && vram_offset(from) < m_.memory.vram_size();
    const bool to_vram = to >= m_.memory.vram() && vram_offset(to) < m_.memory.vram_size();
    if (from_vram) m_.memory.check_hdp(vram_offset(from), run, e.who);
    if ((from_vram && m_.memory.in_tmr(vram_offset(from), run)) ||
        (to_vram && m_.memory.in_tmr(vram_offset(to), run))) {
      m_.rules.broken("tmr-access", fmt::format("{} copy {:#x} -> {:#x}", e.who, src, dst));
    } else if (fill) {
      for (uint64_t i = 0; i < run; i += 4) store32(to + i, *fill);
    } else {
      copy_bytes(to, from, run);
    }
    dst += run, src += run, n -= run, slice += run;
    if (slice >= kSlice) {
      slice = 0;
      lock.unlock();
      lock = m_.engine_lock();
      if (e.epoch != epoch || m_.stopping()) return false;
    }
  }
  return true;
}

}  // namespace baregpu::mock
