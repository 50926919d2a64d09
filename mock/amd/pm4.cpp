#include "mock/amd/pm4.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/base/bits.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

// Type-3 packets of compute micro engines (nvd.h); count = dwords after the header, 0 = checked by the
// packet.
struct OpRow {
  uint32_t op, count;
  const char* name;
};
enum Op : uint32_t {
  kNop = 0x10,
  kDispatchDirect = 0x15,
  kPredExec = 0x23,
  kWriteData = 0x37,
  kWaitRegMem = 0x3c,
  kIndirectBuffer = 0x3f,
  kCopyData = 0x40,
  kEventWrite = 0x46,
  kReleaseMem = 0x49,
  kAcquireMem = 0x58,
  kSetShReg = 0x76,
  kSetUconfigReg = 0x79
};
constexpr OpRow kOps[] = {
    {kNop, 0, "NOP"},
    {kDispatchDirect, 4, "DISPATCH_DIRECT"},
    {kPredExec, 1, "PRED_EXEC"},
    {kWriteData, 0, "WRITE_DATA"},
    {kWaitRegMem, 6, "WAIT_REG_MEM"},
    {kIndirectBuffer, 3, "INDIRECT_BUFFER"},
    {kCopyData, 5, "COPY_DATA"},
    {kEventWrite, 1, "EVENT_WRITE"},
    {kReleaseMem, 7, "RELEASE_MEM"},
    {kAcquireMem, 7, "ACQUIRE_MEM"},
    {kSetShReg, 0, "SET_SH_REG"},
    {kSetUconfigReg, 0, "SET_UCONFIG_REG"},
};

using PacketType = Bits<31, 30>;
using Count = Bits<29, 16>;
using Opcode = Bits<15, 8>;
constexpr uint32_t kReservedBits = 0xfc;  // between the shader type bit and the opcode
constexpr uint32_t kSingleNop = 0x3fff;
constexpr uint32_t kMaxIbDepth = 2;
// Event types that a compute queue knows: CS_PARTIAL_FLUSH, MARKER, THREAD_TRACE_FINISH, CACHE_FLUSH_AND_INV_TS,
// BOTTOM_OF_PIPE_TS.
constexpr uint32_t kCsPartialFlush = 7, kThreadTraceMarker = 53, kThreadTraceFinish = 55, kCacheFlushTs = 20,
                   kBottomOfPipeTs = 40;

}  // namespace

bool compare(unsigned function, uint32_t v, uint32_t ref) {
  switch (function) {
    case 0: return true;
    case 1: return v < ref;
    case 2: return v <= ref;
    case 3: return v == ref;
    case 4: return v != ref;
    case 5: return v >= ref;
    case 6: return v > ref;
    default: return false;
  }
}

bool Pm4::fetch(uint32_t skip, uint32_t* out, uint32_t n) {
  if (!q_.ibs.empty()) {
    const ComputeQueue::Ib& ib = q_.ibs.back();
    return m_.gc.read(ib.va + 4 * uint64_t{ib.pos + skip}, std::as_writable_bytes(std::span(out, n)), Client::kCpFetch,
                      "CP (indirect buffer)");
  }
  const uint64_t base = q_.hqd64(8) << 8, mask = q_.ring_dwords() - 1;  // CP_HQD_PQ_BASE
  while (n != 0) {
    uint64_t at = (q_.rptr + skip) & mask;
    uint32_t part = uint32_t(std::min<uint64_t>(n, mask + 1 - at));
    if (!m_.gc.read(base + 4 * at, std::as_writable_bytes(std::span(out, part)), Client::kCpFetch, "CP (ring)"))
      return false;
    out += part, skip += part, n -= part;
  }
  return true;
}

void Pm4::advance(uint32_t dwords) {
  if (q_.ibs.empty()) {
    q_.rptr += dwords;
    return;
  }
  q_.ibs.back().pos += dwords;
  while (!q_.ibs.empty() && q_.ibs.back().pos >= q_.ibs.back().size) q_.ibs.pop_back();
}

StepResult Pm4::done(uint32_t length) {
  advance(length);
  return StepResult::kWorked;
}

StepResult Pm4::stuck(const std::string& why) {
  gfx_.hang(q_, 0, why);
  return StepResult::kIdle;
}

StepResult Pm4::malformed(uint8_t source, const char* rule, const std::string& why, uint32_t length) {
  if (!m_.rules.broken(
          rule, fmt::format("queue {}.{}, {} {:#x}: {}", q_.pipe, q_.queue, q_.ibs.empty() ? "ring dword" : "IB dword",
                            q_.ibs.empty() ? q_.rptr : q_.ibs.back().pos, why)))
    return done(length);
  gfx_.hang(q_, source, why);
  return StepResult::kIdle;
}

StepResult Pm4::run_one() {
  const bool in_ib = !q_.ibs.empty();
  const uint64_t available = in_ib ? q_.ibs.back().size - q_.ibs.back().pos : q_.wptr - q_.rptr;
  if (available == 0) return StepResult::kIdle;
  uint32_t header = 0;
  if (!fetch(0, &header, 1)) return stuck("fetch fault");
  if (PacketType::get(header) == 2) return done(1);  // filler
  if (PacketType::get(header) != 3)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("header {:#x} is not type 3", header), 1);
  const uint32_t op = Opcode::get(header), count = Count::get(header);
  const uint32_t length = op == kNop && count == kSingleNop ? 1 : count + 2;
  if (length > available) {
    if (!in_ib) return StepResult::kIdle;  // the rest has not been submitted yet
    return malformed(kIhCpBadOpcode, "ring-packet-malformed",
                     fmt::format("packet {:#x} runs over the end of its buffer", header), uint32_t(available));
  }
  if (header & kReservedBits)
    return malformed(kIhCpRsvdBit, "ring-packet-malformed", fmt::format("reserved bits in header {:#x}", header),
                     length);
  const OpRow* row = nullptr;
  for (const OpRow& r : kOps)
    if (r.op == op) row = &r;
  if (!row) return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("unknown opcode {:#x}", op), length);
  if (row->count && row->count != length - 1)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("{} with {} dwords", row->name, length - 1),
                     length);
  if (m_.faults.hit(FaultPoint::kHang)) return stuck("injected hang");
  std::vector<uint32_t> p(length - 1);
  if (op != kNop && !p.empty() && !fetch(1, p.data(), length - 1)) return stuck("fetch fault");
  return execute(op, p, length);
}

StepResult Pm4::execute(uint32_t op, const std::vector<uint32_t>& p, uint32_t length) {
  switch (op) {
    case kNop: return done(length);
    case kSetShReg:
    case kSetUconfigReg: return set_registers(op, p, length);
    case kDispatchDirect: {
      const uint64_t epoch = q_.epoch;
      if (!gfx_.dispatch(q_, p[0], p[1], p[2], p[3], lock_)) return StepResult::kIdle;
      return q_.epoch == epoch ? done(length) : StepResult::kIdle;
    }
    case kEventWrite: {
      uint32_t type = p[0] & 0x3f, index = p[0] >> 8 & 0xf;
      const bool flush = type == kCsPartialFlush && index == 4;
      const bool trace = (type == kThreadTraceFinish || type == kThreadTraceMarker) && index == 0;
      if (!flush && !trace)
        return malformed(kIhCpBadOpcode, "ring-packet-malformed",
                         fmt::format("EVENT_WRITE type {} index {}", type, index), length);
      return done(length);  // dispatches are complete when the next packet starts
    }
    case kWaitRegMem: return wait_reg_mem(p, length);
    case kReleaseMem: return release_mem(p, length);
    case kAcquireMem:
      if (p[6] & 3) gfx_.invalidate_code();  // GLI_INV
      return done(length);
    case kIndirectBuffer: return indirect_buffer(p, length);
    case kWriteData: return write_data(p, length);
    case kCopyData: return copy_data(p, length);
    case kPredExec: {
      if (q_.ibs.empty()) {
        m_.rules.broken("pred-exec-in-ring", fmt::format("PRED_EXEC {:#x}", p[0]));
        return done(length);
      }
      const bool here = p[0] >> 24 & 1;  // one compute die: number 0
      return done(length + (here ? 0 : p[0] & 0x3fff));
    }
    default: return stuck("opcode without a model");
  }
}

StepResult Pm4::set_registers(uint32_t op, const std::vector<uint32_t>& p, uint32_t length) {
  if (p.size() < 2) return malformed(kIhCpBadOpcode, "ring-packet-malformed", "SET packet without values", length);
  const uint32_t offset = p[0] & 0xffff, n = uint32_t(p.size()) - 1;
  const bool sh = op == kSetShReg;
  if (p[0] >> 16 || offset + n > (sh ? kShCount : kUconfigEnd - kUconfigWindow))
    return malformed(kIhCpPrivReg, "register-window",
                     fmt::format("{} offset {:#x}, {} values", sh ? "SET_SH_REG" : "SET_UCONFIG_REG", p[0], n), length);
  for (uint32_t i = 0; i < n; ++i) {
    if (sh) {
      q_.sh[offset + i] = p[1 + i];
      q_.sh_written.set(offset + i);
    } else {
      m_.regs.access_write(kUconfigWindow + offset + i, p[1 + i]);
    }
  }
  return done(length);
}

// info: FUNCTION 2:0, MEM_SPACE 5:4, OPERATION 7:6, ENGINE 8.
StepResult Pm4::wait_reg_mem(const std::vector<uint32_t>& p, uint32_t length) {
  const uint32_t function = p[0] & 7, space = p[0] >> 4 & 3, operation = p[0] >> 6 & 3;
  if (function == 7 || space > 1 || operation > 1)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("WAIT_REG_MEM info {:#x}", p[0]), length);
  uint32_t value = 0;
  if (space == 1) {
    uint64_t va = join32(p[1], p[2]);
    if (va % 4) return malformed(kIhCpBadOpcode, "unaligned", fmt::format("WAIT_REG_MEM address {:#x}", va), length);
    if (!m_.gc.read32(va, value, Client::kCpData, "CP (wait)")) return stuck("wait address fault");
  } else if (operation == 1) {  // write, then wait for the second register
    m_.regs.access_write(p[1], p[3]);
    value = m_.regs.access_read(p[2]);
  } else {
    value = m_.regs.access_read(p[1]);
  }
  return compare(function, value & p[4], p[3]) ? done(length) : StepResult::kBlocked;
}

// event: EVENT_TYPE 5:0, EVENT_INDEX 11:8; select: DST_SEL 17:16, INT_SEL 26:24, DATA_SEL 31:29.
StepResult Pm4::release_mem(const std::vector<uint32_t>& p, uint32_t length) {
  const uint32_t type = p[0] & 0x3f, index = p[0] >> 8 & 0xf, interrupt = p[1] >> 24 & 7, data = p[1] >> 29;
  if ((type != kCacheFlushTs && type != kBottomOfPipeTs) || index != 5 || data > 4 || interrupt > 3)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed",
                     fmt::format("RELEASE_MEM event {:#x}, select {:#x}", p[0], p[1]), length);
  if (!gfx_.eop_ready(q_)) return StepResult::kIdle;
  const uint64_t va = join32(p[2], p[3]);
  const uint64_t align = data == 1 ? 4 : 8;
  if (data != 0 && va % align)
    return malformed(kIhCpBadOpcode, "unaligned", fmt::format("RELEASE_MEM address {:#x}, data select {}", va, data),
                     length);
  bool ok = true;
  if (data == 1)
    ok = m_.gc.write32(va, p[4], Client::kCpData, "CP (release)");
  else if (data == 2)
    ok = m_.gc.write64(va, join32(p[4], p[5]), Client::kCpData, "CP (release)");
  else if (data >= 3)
    ok = m_.gc.write64(va, m_.clock(), Client::kCpData, "CP (release)");
  if (!ok) return stuck("release address fault");
  if (interrupt == 1 || interrupt == 2)
    m_.ih.push(IhClient::kGrbmCp, kIhCpEop, uint8_t(1u << 2 | q_.pipe | q_.queue << 4), {p[6], 0, 0, 0});
  return done(length);
}

// control: DST_SEL 11:8 (0 register, 2 L2, 5 memory), ONE_ADDR 16, WR_CONFIRM 20.
StepResult Pm4::write_data(const std::vector<uint32_t>& p, uint32_t length) {
  if (p.size() < 4) return malformed(kIhCpBadOpcode, "ring-packet-malformed", "WRITE_DATA without data", length);
  const uint32_t dst = p[0] >> 8 & 0xf;
  const bool one = p[0] >> 16 & 1;
  const uint64_t va = join32(p[1], p[2]);
  if (dst != 0 && dst != 2 && dst != 5)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("WRITE_DATA destination {}", dst), length);
  if (dst != 0 && va % 4)
    return malformed(kIhCpBadOpcode, "unaligned", fmt::format("WRITE_DATA address {:#x}", va), length);
  for (size_t i = 3; i < p.size(); ++i) {
    uint64_t step = one ? 0 : i - 3;
    if (dst == 0)
      m_.regs.access_write(uint32_t(p[1] + step), p[i]);
    else if (!m_.gc.write32(va + 4 * step, p[i], Client::kCpData, "CP (write)"))
      return stuck("write address fault");
  }
  return done(length);
}

// control: SRC_SEL 3:0 (0 register, 1 memory, 2 L2, 4 counter, 5 immediate, 9 clock), DST_SEL 11:8 (0 register, 2 L2, 5
// memory), COUNT_SEL 16, WR_CONFIRM 20.
StepResult Pm4::copy_data(const std::vector<uint32_t>& p, uint32_t length) {
  const uint32_t src = p[0] & 0xf, dst = p[0] >> 8 & 0xf;
  const unsigned n = p[0] >> 16 & 1 ? 2 : 1;
  const uint64_t from = join32(p[1], p[2]), to = join32(p[3], p[4]);
  uint32_t v[2] = {0, 0};
  if ((dst != 0 && dst != 2 && dst != 5) || (src > 2 && src != 4 && src != 5 && src != 9))
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", fmt::format("COPY_DATA control {:#x}", p[0]), length);
  if ((dst != 0 && to % (4 * n)) || ((src == 1 || src == 2) && from % (4 * n)))
    return malformed(kIhCpBadOpcode, "unaligned", fmt::format("COPY_DATA from {:#x} to {:#x}", from, to), length);
  if (src == 0 || src == 4) {
    for (unsigned i = 0; i < n; ++i) v[i] = m_.regs.access_read(p[1] + i);
  } else if (src == 5) {
    v[0] = p[1], v[1] = p[2];
  } else if (src == 9) {
    v[0] = lo32(m_.clock()), v[1] = hi32(m_.clock());
  } else if (!m_.gc.read(from, std::as_writable_bytes(std::span(v, n)), Client::kCpData, "CP (copy)")) {
    return stuck("copy source fault");
  }
  if (dst == 0) {
    for (unsigned i = 0; i < n; ++i) m_.regs.access_write(p[3] + i, v[i]);
  } else if (!m_.gc.write(to, std::as_bytes(std::span(v, n)), Client::kCpData, "CP (copy)")) {
    return stuck("copy destination fault");
  }
  return done(length);
}

StepResult Pm4::indirect_buffer(const std::vector<uint32_t>& p, uint32_t length) {
  const uint64_t va = join32(p[0] & ~3u, p[1] & 0xffff);
  const uint32_t size = p[2] & 0xfffff;
  if (p[0] & 3)
    return malformed(kIhCpBadOpcode, "unaligned", fmt::format("INDIRECT_BUFFER address {:#x}", join32(p[0], p[1])),
                     length);
  if (!(p[2] >> 23 & 1) || size == 0)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed",
                     fmt::format("INDIRECT_BUFFER size {:#x} (VALID is bit 23)", p[2]), length);
  if (q_.ibs.size() >= kMaxIbDepth)
    return malformed(kIhCpBadOpcode, "ring-packet-malformed", "indirect buffers nested deeper than 2", length);
  // The caller's position moves first; an outer buffer that is finished stays until the inner one is.
  if (q_.ibs.empty())
    q_.rptr += length;
  else
    q_.ibs.back().pos += length;
  q_.ibs.push_back({va, size, 0});
  return StepResult::kWorked;
}

}  // namespace baregpu::mock
