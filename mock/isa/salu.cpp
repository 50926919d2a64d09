// Scalar instructions: SOP1, SOP2, SOPC, SOPK, SOPP, SMEM. Opcode numbers: RDNA3 ISA chapter 16, checked with LLVM's assembler.
#include <bit>
#include <chrono>

#include "mock/isa/wave.hpp"

namespace baregpu::mock::isa {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

void write(Wave& w, const Uop* u, u64 value) {
  w.s[u->dst] = u32(value);
  if (dwords(u->row->dst) == 2) w.s[u->dst + 1] = u32(value >> 32);
}
u64 read(const Wave& w, const Uop* u, unsigned i) {
  const bool wide = dwords(u->row->src[i]) == 2;
  const u64 v = scalar(w, *u, i, wide);
  return wide ? v : u32(v);
}

template <class F> const Uop* two(Wave& w, const Uop* u) {
  write(w, u, u64(F{}(read(w, u, 0), read(w, u, 1), w.s[kScc])));
  return u + 1;
}
template <class F> const Uop* one(Wave& w, const Uop* u) {
  write(w, u, u64(F{}(read(w, u, 0), w.s[kScc])));
  return u + 1;
}
template <class F> const Uop* compare(Wave& w, const Uop* u) {
  w.s[kScc] = F{}(read(w, u, 0), read(w, u, 1)) ? 1 : 0;
  return u + 1;
}
/// SOPK with the destination as a source: f(register, simm16, scc).
template <class F> const Uop* with_imm(Wave& w, const Uop* u) {
  w.s[u->dst] = u32(F{}(w.s[u->dst], u->imm, w.s[kScc]));
  return u + 1;
}

template <class F> constexpr OpRow sop2(const char* name, int16_t op, Ty ty, F, Ty second = Ty::kNone) {
  return {.name = name, .opcode = {op}, .format = Format::kSop2, .dst = ty, .src = {ty, second == Ty::kNone ? ty : second}, .sources = 2, .run = &two<F>};
}
template <class F> constexpr OpRow sop2w(const char* name, int16_t op, Ty dst, Ty a, Ty b, F) {
  return {.name = name, .opcode = {op}, .format = Format::kSop2, .dst = dst, .src = {a, b}, .sources = 2, .run = &two<F>};
}
template <class F> constexpr OpRow sop1(const char* name, int16_t op, Ty dst, Ty src, F) {
  return {.name = name, .opcode = {op}, .format = Format::kSop1, .dst = dst, .src = {src}, .sources = 1, .run = &one<F>};
}
template <class F> constexpr OpRow sopc(const char* name, int16_t op, Ty a, Ty b, F) {
  return {.name = name, .opcode = {op}, .format = Format::kSopc, .src = {a, b}, .sources = 2, .flags = kNoDst, .run = &compare<F>};
}
template <class F> constexpr OpRow sopk(const char* name, int16_t op, F) {
  return {.name = name, .opcode = {op}, .format = Format::kSopk, .dst = Ty::kB32, .run = &with_imm<F>};
}
constexpr OpRow plain(const char* name, Format f, int16_t op, Handler run, u32 flags = 0) { return {.name = name, .opcode = {op}, .format = f, .flags = flags | kNoDst, .run = run}; }
constexpr OpRow dropped(const char* name, int16_t op, u32 flags = 0) { return {.name = name, .opcode = {op}, .format = Format::kSopp, .flags = flags | kDrop}; }

constexpr Ty B32 = Ty::kB32, B64 = Ty::kI64;

constexpr bool add_overflow(u32 a, u32 b) { i32 r; return __builtin_add_overflow(i32(a), i32(b), &r); }
constexpr bool sub_overflow(u32 a, u32 b) { i32 r; return __builtin_sub_overflow(i32(a), i32(b), &r); }
template <unsigned N> struct ShiftAdd {
  u64 operator()(u64 a, u64 b, u32& scc) const { const u64 r = ((a << N)) + b; return scc = (r >> 32) != 0, u32(r); }
};
/// Bit-field extract: offset in 4:0 (5:0), width in 22:16.
template <class U, class S, bool Signed> struct Bfe {
  u64 operator()(u64 a, u64 b, u32& scc) const {
    constexpr unsigned n = sizeof(U) * 8;
    const unsigned offset = unsigned(b) & (n - 1), width = unsigned(b >> 16) & 0x7f;
    U r = 0;
    if (width) {
      r = U(a) >> offset;
      if (width < n) {
        r &= (U{1} << width) - 1;
        if constexpr (Signed)
          if (offset + width <= n && (r >> (width - 1) & 1)) r |= ~U{0} << width;
      }
      if constexpr (Signed)
        if (offset + width > n) r = U(S(U(a)) >> offset);
    }
    scc = r != 0;
    return r;
  }
};
template <class U> struct Cls {
  u64 operator()(u64 a, u32&) const {
    constexpr unsigned n = sizeof(U) * 8;
    const U x = U(a) >> (n - 1) ? U(~U(a)) : U(a);
    return x ? u32(std::countl_zero(x)) : ~u32{0};
  }
};
u32 quad(u64 a, unsigned bits) {
  u32 r = 0;
  for (unsigned i = 0; i < bits / 4; ++i) r |= u32((a >> (4 * i) & 0xf) != 0) << i;
  return r;
}
u64 wqm(u64 a) {
  u64 r = 0;
  for (unsigned i = 0; i < 16; ++i)
    if (a >> (4 * i) & 0xf) r |= u64{0xf} << (4 * i);
  return r;
}

// EXEC and a source combined; the old EXEC goes to the destination.
template <class F, bool SaveOld> const Uop* saveexec(Wave& w, const Uop* u) {
  const bool wide = dwords(u->row->dst) == 2;
  const u64 src = read(w, u, 0), exec = wide ? w.pair(kExec) : w.s[kExec];
  u64 next = F{}(src, exec);
  if (!wide) next = u32(next);
  w.s[kExec] = u32(next);
  if (wide) w.s[kExec + 1] = u32(next >> 32);
  write(w, u, SaveOld ? exec : next);
  w.s[kScc] = next != 0;
  return u + 1;
}
template <class F> constexpr std::array<OpRow, 2> exec_rows(const char* n32, const char* n64, int16_t op, F) {
  return {OpRow{.name = n32, .opcode = {op}, .format = Format::kSop1, .dst = B32, .src = {B32}, .sources = 1, .run = &saveexec<F, true>},
          OpRow{.name = n64, .opcode = {int16_t(op + 1)}, .format = Format::kSop1, .dst = B64, .src = {B64}, .sources = 1, .run = &saveexec<F, true>}};
}
template <class F> constexpr OpRow wrexec(const char* name, int16_t op, Ty ty, F) {
  return {.name = name, .opcode = {op}, .format = Format::kSop1, .dst = ty, .src = {ty}, .sources = 1, .run = &saveexec<F, false>};
}

const Uop* getpc(Wave& w, const Uop* u) {
  write(w, u, u->pc + u->size * 4ull);
  return u + 1;
}
const Uop* goto_pc(Wave& w, const Uop* u, u64 pc) { return jump(w, u, w.code->code_at(pc & ~u64{3})); }
const Uop* setpc(Wave& w, const Uop* u) { return goto_pc(w, u, read(w, u, 0)); }
const Uop* swappc(Wave& w, const Uop* u) {
  const u64 to = read(w, u, 0);  // the pair may be the destination too
  write(w, u, u->pc + u->size * 4ull);
  return goto_pc(w, u, to);
}
const Uop* call(Wave& w, const Uop* u) {
  w.set_pair(u->dst, u->pc + 4);
  return jump(w, u, u->target);
}

/// 100 MHz counter for MSG_RTN_GET_REALTIME (0x83) and 0x82 (shader clock: any monotonic unit will do).
const Uop* sendmsg_rtn(Wave& w, const Uop* u) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  write(w, u, u64(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) / 10);
  return u + 1;
}

// HWREG operand: id 5:0, offset 10:6, width - 1 15:11. MODE is 1; others read 0 (harmless identifiers).
constexpr unsigned kHwMode = 1, kHwShaderCycles = 29;
struct HwReg { unsigned id, offset, width; };
HwReg hwreg(int imm) { return {unsigned(imm) & 63, unsigned(imm) >> 6 & 31, (unsigned(imm) >> 11 & 31) + 1}; }
const Uop* getreg(Wave& w, const Uop* u) {
  const HwReg r = hwreg(u->imm);
  const u32 value = r.id == kHwMode ? w.mode : r.id == kHwShaderCycles ? u32(w.instructions) : 0;
  w.s[u->dst] = u32(u64{value} >> r.offset & ((u64{1} << r.width) - 1));
  return u + 1;
}
void set_mode(Wave& w, const HwReg& r, u32 value) {
  if (r.id != kHwMode) return;
  const u32 mask = u32(((u64{1} << r.width) - 1) << r.offset);
  w.mode = (w.mode & ~mask) | (value << r.offset & mask);
  apply_mode(w.mode);
}
const Uop* setreg(Wave& w, const Uop* u) {
  set_mode(w, hwreg(u->imm), w.s[u->dst]);
  return u + 1;
}
const Uop* setreg_imm(Wave& w, const Uop* u) {
  set_mode(w, hwreg(u->imm), u32(u->src[0]));
  return u + 1;
}
const Uop* round_mode(Wave& w, const Uop* u) {
  set_mode(w, {kHwMode, 0, 4}, u32(u->imm) & 15);
  return u + 1;
}
const Uop* denorm_mode(Wave& w, const Uop* u) {
  set_mode(w, {kHwMode, 4, 4}, u32(u->imm) & 15);
  return u + 1;
}

const Uop* endpgm(Wave& w, const Uop* u) {
  w.instructions += u->seq - w.run_start + 1;
  w.status = Status::kDone;
  return nullptr;
}
const Uop* barrier(Wave& w, const Uop* u) {
  w.instructions += u->seq - w.run_start + 1;
  w.status = Status::kBarrier;
  w.resume = u + 1;
  return nullptr;
}
/// Gives way: a wave that waits for another one must not burn the time slice.
const Uop* yield(Wave& w, const Uop* u) {
  w.instructions += u->seq - w.run_start + 1;
  w.resume = u + 1;
  return nullptr;
}
const Uop* trap(Wave& w, const Uop* u) { return raise(w, u, FaultKind::kTrap); }

const Uop* branch(Wave& w, const Uop* u) { return jump(w, u, u->target); }
template <class F> const Uop* cbranch(Wave& w, const Uop* u) { return jump(w, u, F{}(w) ? u->target : u + 1); }
bool vccz(const Wave& w) { return w.s[kVcc] == 0 && (w.halves == 1 || w.s[kVcc + 1] == 0); }
bool execz(const Wave& w) { return w.s[kExec] == 0 && (w.halves == 1 || w.s[kExec + 1] == 0); }
template <class F> constexpr OpRow cbranch_row(const char* name, int16_t op, F) { return plain(name, Format::kSopp, op, &cbranch<F>, kBranch); }

constexpr auto kAnd = exec_rows("s_and_saveexec_b32", "s_and_saveexec_b64", 0x20, [](u64 s, u64 e) { return s & e; });
constexpr auto kOr = exec_rows("s_or_saveexec_b32", "s_or_saveexec_b64", 0x22, [](u64 s, u64 e) { return s | e; });
constexpr auto kXor = exec_rows("s_xor_saveexec_b32", "s_xor_saveexec_b64", 0x24, [](u64 s, u64 e) { return s ^ e; });
constexpr auto kNand = exec_rows("s_nand_saveexec_b32", "s_nand_saveexec_b64", 0x26, [](u64 s, u64 e) { return ~(s & e); });
constexpr auto kNor = exec_rows("s_nor_saveexec_b32", "s_nor_saveexec_b64", 0x28, [](u64 s, u64 e) { return ~(s | e); });
constexpr auto kXnor = exec_rows("s_xnor_saveexec_b32", "s_xnor_saveexec_b64", 0x2a, [](u64 s, u64 e) { return ~(s ^ e); });
constexpr auto kAndNot0 = exec_rows("s_and_not0_saveexec_b32", "s_and_not0_saveexec_b64", 0x2c, [](u64 s, u64 e) { return ~s & e; });
constexpr auto kOrNot0 = exec_rows("s_or_not0_saveexec_b32", "s_or_not0_saveexec_b64", 0x2e, [](u64 s, u64 e) { return ~s | e; });
constexpr auto kAndNot1 = exec_rows("s_and_not1_saveexec_b32", "s_and_not1_saveexec_b64", 0x30, [](u64 s, u64 e) { return s & ~e; });
constexpr auto kOrNot1 = exec_rows("s_or_not1_saveexec_b32", "s_or_not1_saveexec_b64", 0x32, [](u64 s, u64 e) { return s | ~e; });

#define LOGIC(name, op, expression) \
  sop2(name "_b32", op, B32, [](u64 a, u64 b, u32& scc) { const u32 r = u32(expression); return scc = r != 0, u64{r}; }), \
  sop2(name "_b64", op + 1, B64, [](u64 a, u64 b, u32& scc) { const u64 r = (expression); return scc = r != 0, r; })
#define LOGIC1(name, op, t32, t64, e32, e64) \
  sop1(name t32, op, B32, B32, [](u64 a, u32& scc) { const u32 r = u32(e32); return scc = r != 0, u64{r}; }), \
  sop1(name t64, op + 1, B64, B64, [](u64 a, u32& scc) { const u64 r = (e64); return scc = r != 0, r; })
#define CMP(name, op, type, test) sopc("s_cmp_" name, op, B32, B32, [](u64 x, u64 y) { const type a = type(x), b = type(y); return a test b; })
#define CMPK(text, op, type, conv, test) \
  OpRow{.name = "s_cmpk_" text, .opcode = {op}, .format = Format::kSopk, .dst = B32, .flags = kNoDst, \
        .run = [](Wave& w, const Uop* u) -> const Uop* { const type a = type(w.s[u->dst]), b = conv; w.s[kScc] = a test b; return u + 1; }}

constexpr OpRow kRows[] = {
    sop2("s_add_u32", 0x00, B32, [](u64 a, u64 b, u32& scc) { return scc = (a + b) >> 32 != 0, a + b; }),
    sop2("s_sub_u32", 0x01, B32, [](u64 a, u64 b, u32& scc) { return scc = b > a, a - b; }),
    sop2("s_add_i32", 0x02, B32, [](u64 a, u64 b, u32& scc) { return scc = add_overflow(u32(a), u32(b)), a + b; }),
    sop2("s_sub_i32", 0x03, B32, [](u64 a, u64 b, u32& scc) { return scc = sub_overflow(u32(a), u32(b)), a - b; }),
    sop2("s_addc_u32", 0x04, B32, [](u64 a, u64 b, u32& scc) { const u64 r = a + b + scc; return scc = r >> 32 != 0, r; }),
    sop2("s_subb_u32", 0x05, B32, [](u64 a, u64 b, u32& scc) { const u64 r = a - b - scc; return scc = r >> 32 != 0, r; }),
    sop2("s_absdiff_i32", 0x06, B32, [](u64 a, u64 b, u32& scc) { const u32 d = u32(a) - u32(b), r = i32(d) < 0 ? 0 - d : d; return scc = r != 0, u64{r}; }),
    sop2("s_lshl_b32", 0x08, B32, [](u64 a, u64 b, u32& scc) { const u32 r = u32(a) << (b & 31); return scc = r != 0, u64{r}; }),
    sop2("s_lshl_b64", 0x09, B64, [](u64 a, u64 b, u32& scc) { const u64 r = a << (b & 63); return scc = r != 0, r; }, B32),
    sop2("s_lshr_b32", 0x0a, B32, [](u64 a, u64 b, u32& scc) { const u32 r = u32(a) >> (b & 31); return scc = r != 0, u64{r}; }),
    sop2("s_lshr_b64", 0x0b, B64, [](u64 a, u64 b, u32& scc) { const u64 r = a >> (b & 63); return scc = r != 0, r; }, B32),
    sop2("s_ashr_i32", 0x0c, B32, [](u64 a, u64 b, u32& scc) { const u32 r = u32(i32(u32(a)) >> (b & 31)); return scc = r != 0, u64{r}; }),
    sop2("s_ashr_i64", 0x0d, B64, [](u64 a, u64 b, u32& scc) { const u64 r = u64(i64(a) >> (b & 63)); return scc = r != 0, r; }, B32),
    sop2("s_lshl1_add_u32", 0x0e, B32, ShiftAdd<1>{}), sop2("s_lshl2_add_u32", 0x0f, B32, ShiftAdd<2>{}),
    sop2("s_lshl3_add_u32", 0x10, B32, ShiftAdd<3>{}), sop2("s_lshl4_add_u32", 0x11, B32, ShiftAdd<4>{}),
    sop2("s_min_i32", 0x12, B32, [](u64 a, u64 b, u32& scc) { return scc = i32(u32(a)) < i32(u32(b)), scc ? a : b; }),
    sop2("s_min_u32", 0x13, B32, [](u64 a, u64 b, u32& scc) { return scc = a < b, scc ? a : b; }),
    sop2("s_max_i32", 0x14, B32, [](u64 a, u64 b, u32& scc) { return scc = i32(u32(a)) >= i32(u32(b)), scc ? a : b; }),
    sop2("s_max_u32", 0x15, B32, [](u64 a, u64 b, u32& scc) { return scc = a >= b, scc ? a : b; }),
    LOGIC("s_and", 0x16, a & b), LOGIC("s_or", 0x18, a | b), LOGIC("s_xor", 0x1a, a ^ b), LOGIC("s_nand", 0x1c, ~(a & b)),
    LOGIC("s_nor", 0x1e, ~(a | b)), LOGIC("s_xnor", 0x20, ~(a ^ b)), LOGIC("s_and_not1", 0x22, a & ~b), LOGIC("s_or_not1", 0x24, a | ~b),
    sop2("s_bfe_u32", 0x26, B32, Bfe<u32, i32, false>{}), sop2("s_bfe_i32", 0x27, B32, Bfe<u32, i32, true>{}),
    sop2("s_bfe_u64", 0x28, B64, Bfe<u64, i64, false>{}, B32), sop2("s_bfe_i64", 0x29, B64, Bfe<u64, i64, true>{}, B32),
    sop2("s_bfm_b32", 0x2a, B32, [](u64 a, u64 b, u32&) { return u64{((u32{1} << (a & 31)) - 1) << (b & 31)}; }),
    sop2w("s_bfm_b64", 0x2b, B64, B32, B32, [](u64 a, u64 b, u32&) { return ((u64{1} << (a & 63)) - 1) << (b & 63); }),
    sop2("s_mul_i32", 0x2c, B32, [](u64 a, u64 b, u32&) { return a * b; }),
    sop2("s_mul_hi_u32", 0x2d, B32, [](u64 a, u64 b, u32&) { return a * b >> 32; }),
    sop2("s_mul_hi_i32", 0x2e, B32, [](u64 a, u64 b, u32&) { return u64(i64(i32(u32(a))) * i32(u32(b))) >> 32; }),
    sop2("s_cselect_b32", 0x30, B32, [](u64 a, u64 b, u32& scc) { return scc ? a : b; }),
    sop2("s_cselect_b64", 0x31, B64, [](u64 a, u64 b, u32& scc) { return scc ? a : b; }),
    sop2("s_pack_ll_b32_b16", 0x32, B32, [](u64 a, u64 b, u32&) { return (a & 0xffff) | (b & 0xffff) << 16; }),
    sop2("s_pack_lh_b32_b16", 0x33, B32, [](u64 a, u64 b, u32&) { return (a & 0xffff) | (b & 0xffff0000); }),
    sop2("s_pack_hh_b32_b16", 0x34, B32, [](u64 a, u64 b, u32&) { return (a >> 16 & 0xffff) | (b & 0xffff0000); }),
    sop2("s_pack_hl_b32_b16", 0x35, B32, [](u64 a, u64 b, u32&) { return (a >> 16 & 0xffff) | (b & 0xffff) << 16; }),

    sop1("s_mov_b32", 0x00, B32, B32, [](u64 a, u32&) { return a; }), sop1("s_mov_b64", 0x01, B64, B64, [](u64 a, u32&) { return a; }),
    OpRow{.name = "s_cmov_b32", .opcode = {0x02}, .format = Format::kSop1, .dst = B32, .src = {B32}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { if (w.s[kScc]) write(w, u, read(w, u, 0)); return u + 1; }},
    OpRow{.name = "s_cmov_b64", .opcode = {0x03}, .format = Format::kSop1, .dst = B64, .src = {B64}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { if (w.s[kScc]) write(w, u, read(w, u, 0)); return u + 1; }},
    sop1("s_brev_b32", 0x04, B32, B32, [](u64 a, u32&) { u32 r = 0; for (int i = 0; i < 32; ++i) r |= u32(a >> i & 1) << (31 - i); return u64{r}; }),
    sop1("s_brev_b64", 0x05, B64, B64, [](u64 a, u32&) { u64 r = 0; for (int i = 0; i < 64; ++i) r |= (a >> i & 1) << (63 - i); return r; }),
    sop1("s_ctz_i32_b32", 0x08, B32, B32, [](u64 a, u32&) { return u64{a ? u32(std::countr_zero(u32(a))) : ~0u}; }),
    sop1("s_ctz_i32_b64", 0x09, B32, B64, [](u64 a, u32&) { return u64{a ? u32(std::countr_zero(a)) : ~0u}; }),
    sop1("s_clz_i32_u32", 0x0a, B32, B32, [](u64 a, u32&) { return u64{a ? u32(std::countl_zero(u32(a))) : ~0u}; }),
    sop1("s_clz_i32_u64", 0x0b, B32, B64, [](u64 a, u32&) { return u64{a ? u32(std::countl_zero(a)) : ~0u}; }),
    sop1("s_cls_i32", 0x0c, B32, B32, Cls<u32>{}), sop1("s_cls_i32_i64", 0x0d, B32, B64, Cls<u64>{}),
    sop1("s_sext_i32_i8", 0x0e, B32, B32, [](u64 a, u32&) { return u64(i64(int8_t(a))); }),
    sop1("s_sext_i32_i16", 0x0f, B32, B32, [](u64 a, u32&) { return u64(i64(int16_t(a))); }),
    OpRow{.name = "s_bitset0_b32", .opcode = {0x10}, .format = Format::kSop1, .dst = B32, .src = {B32}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { w.s[u->dst] &= ~(1u << (read(w, u, 0) & 31)); return u + 1; }},
    OpRow{.name = "s_bitset0_b64", .opcode = {0x11}, .format = Format::kSop1, .dst = B64, .src = {B32}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { w.set_pair(u->dst, w.pair(u->dst) & ~(u64{1} << (read(w, u, 0) & 63))); return u + 1; }},
    OpRow{.name = "s_bitset1_b32", .opcode = {0x12}, .format = Format::kSop1, .dst = B32, .src = {B32}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { w.s[u->dst] |= 1u << (read(w, u, 0) & 31); return u + 1; }},
    OpRow{.name = "s_bitset1_b64", .opcode = {0x13}, .format = Format::kSop1, .dst = B64, .src = {B32}, .sources = 1,
          .run = [](Wave& w, const Uop* u) -> const Uop* { w.set_pair(u->dst, w.pair(u->dst) | u64{1} << (read(w, u, 0) & 63)); return u + 1; }},
    sop1("s_bitreplicate_b64_b32", 0x14, B64, B32, [](u64 a, u32&) { u64 r = 0; for (int i = 0; i < 32; ++i) r |= (a >> i & 1) * u64{3} << (2 * i); return r; }),
    sop1("s_abs_i32", 0x15, B32, B32, [](u64 a, u32& scc) { const u32 r = i32(u32(a)) < 0 ? 0 - u32(a) : u32(a); return scc = r != 0, u64{r}; }),
    sop1("s_bcnt0_i32_b32", 0x16, B32, B32, [](u64 a, u32& scc) { const u32 r = 32 - u32(std::popcount(u32(a))); return scc = r != 0, u64{r}; }),
    sop1("s_bcnt0_i32_b64", 0x17, B32, B64, [](u64 a, u32& scc) { const u32 r = 64 - u32(std::popcount(a)); return scc = r != 0, u64{r}; }),
    sop1("s_bcnt1_i32_b32", 0x18, B32, B32, [](u64 a, u32& scc) { const u32 r = u32(std::popcount(u32(a))); return scc = r != 0, u64{r}; }),
    sop1("s_bcnt1_i32_b64", 0x19, B32, B64, [](u64 a, u32& scc) { const u32 r = u32(std::popcount(a)); return scc = r != 0, u64{r}; }),
    sop1("s_quadmask_b32", 0x1a, B32, B32, [](u64 a, u32& scc) { const u32 r = quad(a, 32); return scc = r != 0, u64{r}; }),
    sop1("s_quadmask_b64", 0x1b, B64, B64, [](u64 a, u32& scc) { const u32 r = quad(a, 64); return scc = r != 0, u64{r}; }),
    LOGIC1("s_wqm", 0x1c, "_b32", "_b64", wqm(u32(a)), wqm(a)), LOGIC1("s_not", 0x1e, "_b32", "_b64", ~a, ~a),
    kAnd[0], kAnd[1], kOr[0], kOr[1], kXor[0], kXor[1], kNand[0], kNand[1], kNor[0], kNor[1], kXnor[0], kXnor[1], kAndNot0[0], kAndNot0[1],
    kOrNot0[0], kOrNot0[1], kAndNot1[0], kAndNot1[1], kOrNot1[0], kOrNot1[1],
    wrexec("s_and_not0_wrexec_b32", 0x34, B32, [](u64 s, u64 e) { return ~s & e; }), wrexec("s_and_not0_wrexec_b64", 0x35, B64, [](u64 s, u64 e) { return ~s & e; }),
    wrexec("s_and_not1_wrexec_b32", 0x36, B32, [](u64 s, u64 e) { return s & ~e; }), wrexec("s_and_not1_wrexec_b64", 0x37, B64, [](u64 s, u64 e) { return s & ~e; }),
    OpRow{.name = "s_getpc_b64", .opcode = {0x47}, .format = Format::kSop1, .dst = B64, .flags = kNoSrc, .run = &getpc},
    OpRow{.name = "s_setpc_b64", .opcode = {0x48}, .format = Format::kSop1, .src = {B64}, .sources = 1, .flags = kNoDst | kEnd, .run = &setpc},
    OpRow{.name = "s_swappc_b64", .opcode = {0x49}, .format = Format::kSop1, .dst = B64, .src = {B64}, .sources = 1, .run = &swappc},
    OpRow{.name = "s_sendmsg_rtn_b32", .opcode = {0x4c}, .format = Format::kSop1, .dst = B32, .src = {B32}, .sources = 1, .run = &sendmsg_rtn},
    OpRow{.name = "s_sendmsg_rtn_b64", .opcode = {0x4d}, .format = Format::kSop1, .dst = B64, .src = {B32}, .sources = 1, .run = &sendmsg_rtn},

    CMP("eq_i32", 0x00, i32, ==), CMP("lg_i32", 0x01, i32, !=), CMP("gt_i32", 0x02, i32, >), CMP("ge_i32", 0x03, i32, >=), CMP("lt_i32", 0x04, i32, <),
    CMP("le_i32", 0x05, i32, <=), CMP("eq_u32", 0x06, u32, ==), CMP("lg_u32", 0x07, u32, !=), CMP("gt_u32", 0x08, u32, >), CMP("ge_u32", 0x09, u32, >=),
    CMP("lt_u32", 0x0a, u32, <), CMP("le_u32", 0x0b, u32, <=),
    sopc("s_bitcmp0_b32", 0x0c, B32, B32, [](u64 a, u64 b) { return (a >> (b & 31) & 1) == 0; }), sopc("s_bitcmp1_b32", 0x0d, B32, B32, [](u64 a, u64 b) { return (a >> (b & 31) & 1) == 1; }),
    sopc("s_bitcmp0_b64", 0x0e, B64, B32, [](u64 a, u64 b) { return (a >> (b & 63) & 1) == 0; }), sopc("s_bitcmp1_b64", 0x0f, B64, B32, [](u64 a, u64 b) { return (a >> (b & 63) & 1) == 1; }),
    sopc("s_cmp_eq_u64", 0x10, B64, B64, [](u64 a, u64 b) { return a == b; }), sopc("s_cmp_lg_u64", 0x11, B64, B64, [](u64 a, u64 b) { return a != b; }),

    sopk("s_movk_i32", 0x00, [](u32, i32 k, u32&) { return k; }), sopk("s_cmovk_i32", 0x02, [](u32 a, i32 k, u32& scc) { return scc ? u32(k) : a; }),
    CMPK("eq_i32", 0x03, i32, i32(u->imm), ==), CMPK("lg_i32", 0x04, i32, i32(u->imm), !=), CMPK("gt_i32", 0x05, i32, i32(u->imm), >), CMPK("ge_i32", 0x06, i32, i32(u->imm), >=),
    CMPK("lt_i32", 0x07, i32, i32(u->imm), <), CMPK("le_i32", 0x08, i32, i32(u->imm), <=), CMPK("eq_u32", 0x09, u32, u32(uint16_t(u->imm)), ==),
    CMPK("lg_u32", 0x0a, u32, u32(uint16_t(u->imm)), !=), CMPK("gt_u32", 0x0b, u32, u32(uint16_t(u->imm)), >), CMPK("ge_u32", 0x0c, u32, u32(uint16_t(u->imm)), >=),
    CMPK("lt_u32", 0x0d, u32, u32(uint16_t(u->imm)), <), CMPK("le_u32", 0x0e, u32, u32(uint16_t(u->imm)), <=),
    sopk("s_addk_i32", 0x0f, [](u32 a, i32 k, u32& scc) { return scc = add_overflow(a, u32(k)), a + u32(k); }), sopk("s_mulk_i32", 0x10, [](u32 a, i32 k, u32&) { return a * u32(k); }),
    plain("s_version", Format::kSopk, 0x01, nullptr, kDrop),
    OpRow{.name = "s_getreg_b32", .opcode = {0x11}, .format = Format::kSopk, .dst = B32, .run = &getreg},
    plain("s_setreg_b32", Format::kSopk, 0x12, &setreg), plain("s_setreg_imm32_b32", Format::kSopk, 0x13, &setreg_imm),
    OpRow{.name = "s_call_b64", .opcode = {0x14}, .format = Format::kSopk, .dst = B64, .flags = kBranch, .run = &call},
    plain("s_waitcnt_vscnt", Format::kSopk, 0x18, nullptr, kDrop), plain("s_waitcnt_vmcnt", Format::kSopk, 0x19, nullptr, kDrop),
    plain("s_waitcnt_expcnt", Format::kSopk, 0x1a, nullptr, kDrop), plain("s_waitcnt_lgkmcnt", Format::kSopk, 0x1b, nullptr, kDrop),

    dropped("s_nop", 0x00), dropped("s_setkill", 0x01), dropped("s_set_inst_prefetch_distance", 0x04), dropped("s_clause", 0x05), dropped("s_delay_alu", 0x07),
    dropped("s_waitcnt_depctr", 0x08), dropped("s_waitcnt", 0x09), dropped("s_wait_idle", 0x0a), dropped("s_wait_event", 0x0b), dropped("s_wakeup", 0x34),
    dropped("s_setprio", 0x35), dropped("s_sendmsg", 0x36), dropped("s_incperflevel", 0x38), dropped("s_icache_inv", 0x3c),
    plain("s_sleep", Format::kSopp, 0x03, &yield), plain("s_trap", Format::kSopp, 0x10, &trap), plain("s_round_mode", Format::kSopp, 0x11, &round_mode),
    plain("s_denorm_mode", Format::kSopp, 0x12, &denorm_mode), plain("s_branch", Format::kSopp, 0x20, &branch, kBranch | kEnd),
    cbranch_row("s_cbranch_scc0", 0x21, [](const Wave& w) { return w.scc() == 0; }), cbranch_row("s_cbranch_scc1", 0x22, [](const Wave& w) { return w.scc() != 0; }),
    cbranch_row("s_cbranch_vccz", 0x23, [](const Wave& w) { return vccz(w); }), cbranch_row("s_cbranch_vccnz", 0x24, [](const Wave& w) { return !vccz(w); }),
    cbranch_row("s_cbranch_execz", 0x25, [](const Wave& w) { return execz(w); }), cbranch_row("s_cbranch_execnz", 0x26, [](const Wave& w) { return !execz(w); }),
    plain("s_endpgm", Format::kSopp, 0x30, &endpgm, kEnd), plain("s_barrier", Format::kSopp, 0x3d, &barrier),
};

}  // namespace

std::span<const OpRow> salu_rows() { return kRows; }

}  // namespace baregpu::mock::isa
