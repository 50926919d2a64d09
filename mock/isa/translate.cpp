#include "mock/isa/translate.hpp"

#include <cstring>
#include <string_view>

namespace baregpu::mock::isa {
namespace {

constexpr unsigned kMaxBlock = 4096;          // instructions decoded in one piece
constexpr size_t kMaxUops = size_t{1} << 22;  // hostile code may branch into new places for ever

const Uop* illegal(Wave& w, const Uop* u) { return raise(w, u, FaultKind::kIllegalInstruction); }
const Uop* no_fetch(Wave& w, const Uop* u) { return raise(w, u, FaultKind(u->imm), Access::kExecute, u->pc); }
const Uop* go_on(Wave& w, const Uop* u) { return jump(w, u, u->target); }

/// Slot of a scalar destination; writes to null land where nobody reads.
uint16_t slot_of(unsigned code) { return code == kSrcNull ? uint16_t(kSink) : uint16_t(code); }

void set_source(Uop& u, unsigned n, unsigned code, uint32_t literal, Ty ty) {
  if (code >= kSrcVgpr) {
    u.kind[n] = Kind::kVector;
    u.src[n] = uint64_t{code - kSrcVgpr} * kLanes;
    return;
  }
  u.scalars |= uint8_t(1u << n);
  if (code < 128 && code != kSrcNull) {
    u.kind[n] = Kind::kScalar;
    u.src[n] = code;
  } else if (code >= kSrcSharedBase && code <= kSrcPrivateLimit) {
    constexpr uint16_t kSlotsOf[] = {kSharedBase, kSharedLimit, kPrivateBase, kPrivateLimit};
    u.kind[n] = Kind::kScalar;
    u.src[n] = kSlotsOf[code - kSrcSharedBase];
  } else if (code == kSrcVccz) {
    u.kind[n] = Kind::kVccz;
  } else if (code == kSrcExecz) {
    u.kind[n] = Kind::kExecz;
  } else if (code == kSrcScc) {
    u.kind[n] = Kind::kScalar;
    u.src[n] = kScc;
  } else {
    u.kind[n] = Kind::kConstant;
    u.src[n] = constant_value(uint16_t(code), literal, ty);
  }
}

bool is_vector(Format f) {
  return f == Format::kVop1 || f == Format::kVop2 || f == Format::kVopc || f == Format::kVop3 || f == Format::kVop3p;
}

}  // namespace

const Uop* CodeCache::code_at(uint64_t pc) {
  std::lock_guard lock(mutex_);
  return find_or_decode(pc);
}

void CodeCache::clear() {
  blocks_.clear();
  by_pc_.clear();
  unresolved_.clear();
  total_ = 0;
}

const Uop* CodeCache::find_or_decode(uint64_t pc) {
  if (auto it = by_pc_.find(pc); it != by_pc_.end()) return it->second;
  std::vector<uint64_t> work{pc};
  while (!work.empty()) {
    const uint64_t at = work.back();
    work.pop_back();
    if (!by_pc_.contains(at)) decode_block(at, work);
  }
  for (auto& [uop, target] : unresolved_) uop->target = by_pc_.at(target);
  unresolved_.clear();
  return by_pc_.at(pc);
}

unsigned CodeCache::fetch(uint64_t pc, uint32_t (&words)[4], FaultKind& why) const {
  unsigned got = 0;
  while (got < 4) {
    const uint64_t at = pc + 4 * got;
    const Translation t = space_->translate(at, Access::kExecute);
    if (!t.valid || !t.executable) {
      why = t.valid ? FaultKind::kPermission : FaultKind::kPageFault;
      break;
    }
    const unsigned here = unsigned(std::min<uint64_t>(4 - got, (t.va_end - at) / 4));
    if (here == 0) break;
    std::memcpy(words + got, t.host + (at - t.va_begin), here * 4);
    got += here;
  }
  return got;
}

void CodeCache::decode_block(uint64_t pc, std::vector<uint64_t>& targets) {
  blocks_.emplace_back();
  Block& b = blocks_.back();
  std::vector<std::pair<uint64_t, size_t>> starts;
  std::vector<std::pair<size_t, uint64_t>> branches;
  auto append_jump = [&](uint64_t to) {
    b.uops.push_back({.run = &go_on, .seq = next_seq_++, .pc = to, .size = 0});
    branches.emplace_back(b.uops.size() - 1, to);
  };
  bool open = true;  // control can still fall out of the last instruction
  for (unsigned n = 0; open; ++n) {
    if (n && (by_pc_.contains(pc) || n == kMaxBlock)) {
      append_jump(pc);
      break;
    }
    starts.emplace_back(pc, b.uops.size());
    uint32_t words[4] = {};
    FaultKind why{};
    const unsigned got = total_ + b.uops.size() < kMaxUops ? fetch(pc, words, why) : 0;
    if (got == 0) {
      Uop u{.run = why == FaultKind::kNone ? &illegal : &no_fetch, .imm = int32_t(why), .seq = next_seq_++, .pc = pc};
      b.uops.push_back(u);
      break;
    }
    const Inst inst = decode(target_, std::span(words, got));
    if (!inst.row) {
      b.uops.push_back(
          {.run = &illegal, .seq = next_seq_++, .pc = pc, .words = {words[0], words[1]}, .size = inst.size});
      break;
    }
    const uint32_t flags = inst.row->flags;
    if (!(flags & kDrop)) {
      if (inst.encoding == Format::kVopd)
        emit_vopd(b, inst, pc);
      else
        emit(b, inst, pc);
      if (flags & kBranch) branches.emplace_back(b.uops.size() - 1, pc + 4 * inst.size + int64_t{inst.imm} * 4);
      open = !(flags & kEnd);
    }
    pc += 4 * inst.size;
  }
  for (const auto& [start, index] : starts) by_pc_.emplace(start, &b.uops[std::min(index, b.uops.size() - 1)]);
  for (const auto& [index, target] : branches) {
    unresolved_.emplace_back(&b.uops[index], target);
    targets.push_back(target);
  }
  total_ += b.uops.size();
}

void CodeCache::emit(Block& b, const Inst& i, uint64_t pc) {
  const OpRow& row = *i.row;
  Uop u{.run = row.run,
        .neg = i.neg,
        .abs = i.abs,
        .neg_hi = i.neg_hi,
        .op_sel = i.op_sel,
        .op_sel_hi = i.op_sel_hi,
        .omod = i.omod,
        .clamp = i.clamp,
        .dpp = i.dpp,
        .dpp_fi = i.dpp_fi,
        .dpp_bound = i.dpp_bound,
        .dpp_rows = i.dpp_rows,
        .dpp_banks = i.dpp_banks,
        .glc = i.glc,
        .dpp_ctrl = i.dpp_ctrl,
        .imm = i.imm,
        .seq = next_seq_++,
        .pc = pc,
        .words = i.words,
        .row = &row,
        .size = i.size};
  for (unsigned n = 0; n < row.sources; ++n) set_source(u, n, i.src[n], i.literal, row.src[n]);
  if (is_vector(i.encoding)) {
    u.dst = row.flags & kSgprDst ? slot_of(i.dst) : uint32_t(i.dst) * kLanes;
    u.sdst = slot_of(i.sdst);
    const bool plain = !u.dpp && !u.neg && !u.abs && !u.omod && !u.clamp && !u.op_sel;
    if (i.encoding != Format::kVop3p && plain && row.fast)
      u.run = row.fast;
    else if (u.clamp && row.clamp)
      u.run = row.clamp;
    // A result that an SGPR lane mask and a VGPR source share is no hazard: masks are written after all lanes are read.
  } else {
    switch (i.encoding) {
      case Format::kSop1:
      case Format::kSop2:
      case Format::kSopk: u.dst = slot_of(i.dst); break;
      case Format::kSmem:
        u.dst = slot_of(i.dst);
        u.src[0] = i.srsrc;
        u.src[1] = i.saddr == kSrcNull ? kNoOperand : i.saddr;
        break;
      case Format::kDs:
        u.dst = uint32_t(i.dst) * kLanes;
        u.src[0] = uint64_t{i.addr} * kLanes;
        u.src[1] = dwords(row.src[1]) ? uint64_t{i.data0} * kLanes : kNoOperand;
        u.src[2] = row.flags & kTwoData ? uint64_t{i.data1} * kLanes : kNoOperand;
        break;
      case Format::kGlobal:
      case Format::kFlat:
        u.dst = uint32_t(i.dst) * kLanes;
        u.src[0] = uint64_t{i.addr} * kLanes;
        u.src[1] = i.saddr;
        u.src[2] = uint64_t{i.data0} * kLanes;
        u.mode = i.encoding == Format::kFlat ? kFlatVgpr64 : i.saddr == kSrcNull ? kVgpr64 : kSgprPlusVgpr;
        break;
      case Format::kScratch:
        u.dst = uint32_t(i.dst) * kLanes;
        u.src[0] = i.sve ? uint64_t{i.addr} * kLanes : kNoOperand;
        u.src[1] = i.saddr == kSrcNull ? kNoOperand : i.saddr;
        u.src[2] = uint64_t{i.data0} * kLanes;
        u.mode = kScratchAddress;
        break;
      default: break;
    }
    if (row.format == Format::kSopk && i.has_literal) u.src[0] = i.literal;
  }
  if (!u.run) u.run = &illegal;
  b.uops.push_back(u);
}

// Both halves of a VOPD read before either writes: the second is computed first where it does not disturb the first,
// else the first goes through a scratch register.
void CodeCache::emit_vopd(Block& b, const Inst& i, uint64_t pc) {
  auto part = [&](const OpRow& row, unsigned dst, const std::array<uint16_t, 2>& src) {
    Uop u{.run = row.fast ? row.fast : row.run,
          .dst = uint32_t(dst) * kLanes,
          .seq = next_seq_,
          .pc = pc,
          .words = i.words,
          .row = &row,
          .size = i.size};
    set_source(u, 0, src[0], i.literal, row.src[0]);
    if (row.flags & kMadK) {
      set_source(u, 1, kSrcLiteral, i.literal, row.src[1]);
      set_source(u, 2, src[1], i.literal, row.src[2]);
    } else {
      if (row.sources > 1) set_source(u, 1, src[1], i.literal, row.src[1]);
      if (row.flags & kAddK)
        set_source(u, 2, kSrcLiteral, i.literal, row.src[2]);
      else if (row.flags & kAccumulate)
        set_source(u, 2, kSrcVgpr + dst, 0, row.src[2]);
      else if (row.flags & kCarryIn)
        set_source(u, 2, kVcc, 0, Ty::kMask);
    }
    return u;
  };
  auto reads = [](const Uop& u, uint32_t reg) {
    for (unsigned n = 0; n < u.row->sources; ++n)
      if (u.kind[n] == Kind::kVector && u.src[n] == reg) return true;
    return false;
  };
  Uop x = part(*i.row, i.dst, {i.src[0], i.src[1]}), y = part(*i.row_y, i.dst_y, {i.src_y[0], i.src_y[1]});
  ++next_seq_;
  if (!reads(y, x.dst)) {
    b.uops.push_back(x);
    b.uops.push_back(y);
  } else if (!reads(x, y.dst)) {
    b.uops.push_back(y);
    b.uops.push_back(x);
  } else {
    const uint32_t dst = x.dst;
    static const OpRow* const mov = vopd_row(8);
    x.dst = kScratchVgpr * kLanes;
    Uop move{.run = mov->fast, .dst = dst, .seq = x.seq, .pc = pc, .words = i.words, .row = mov, .size = i.size};
    set_source(move, 0, kSrcVgpr + kScratchVgpr, 0, Ty::kB32);
    b.uops.push_back(x);
    b.uops.push_back(y);
    b.uops.push_back(move);
  }
}

const OpRow* vopd_row(unsigned opcode) {
  // RDNA3 ISA 16.7: X knows 0..13, Y these and 16..18.
  static constexpr const char* kNames[] = {"v_fmac_f32",        "v_fmaak_f32",   "v_fmamk_f32",  "v_mul_f32",
                                           "v_add_f32",         "v_sub_f32",     "v_subrev_f32", "v_mul_dx9_zero_f32",
                                           "v_mov_b32",         "v_cndmask_b32", "v_max_f32",    "v_min_f32",
                                           "v_dot2acc_f32_f16", nullptr,         nullptr,        nullptr,
                                           "v_add_nc_u32",      "v_lshlrev_b32", "v_and_b32"};
  static const std::array<const OpRow*, std::size(kNames)> rows = [] {
    std::array<const OpRow*, std::size(kNames)> out{};
    for (size_t i = 0; i < out.size(); ++i) {
      if (!kNames[i]) continue;
      for (auto table : {vop1_rows(), vop2_rows()})
        for (const OpRow& r : table)
          if (std::string_view(r.name) == kNames[i]) out[i] = &r;
    }
    return out;
  }();
  return opcode < rows.size() ? rows[opcode] : nullptr;
}

}  // namespace baregpu::mock::isa
