// Packed and mixed-precision instructions, dot products, WMMA. Opcode numbers: RDNA3 ISA chapter 16, checked with LLVM's
// assembler. Inside WMMA the order of additions is not documented: here it is k ascending, one fused step each.
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u16 = uint16_t;
using i16 = int16_t;

/// Source `i` of V_FMA_MIX: op_sel_hi chooses f16 (then op_sel the half), neg_hi is the absolute value.
float mix_source(const Wave& w, const Uop& u, unsigned half, unsigned i, unsigned lane) {
  const u32 raw = u.kind[i] == Kind::kVector ? w.v[half * kHalf + u.src[i] + lane] : u32(scalar(w, u, i, false));
  float x = u.op_sel_hi >> i & 1 ? f(Half{u16(u.op_sel >> i & 1 ? raw >> 16 : raw)}) : std::bit_cast<float>(raw);
  if (u.neg_hi >> i & 1) x = std::fabs(x);
  return u.neg >> i & 1 ? -x : x;
}
enum class MixTo { kF32, kLow, kHigh };
template <MixTo To> const Uop* fma_mix(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    u32* dst = w.v + half * kHalf + u->dst;
    for (unsigned k = 0; k < kLanes; ++k) {
      if (!(w.exec(half) >> k & 1)) continue;
      float r = std::fma(mix_source(w, *u, half, 0, k), mix_source(w, *u, half, 1, k), mix_source(w, *u, half, 2, k));
      if (u->clamp) r = r > 0.0f ? (r < 1.0f ? r : 1.0f) : 0.0f;
      if constexpr (To == MixTo::kF32) dst[k] = std::bit_cast<u32>(r);
      else if constexpr (To == MixTo::kLow) dst[k] = (dst[k] & 0xffff0000) | half_of(r).bits;
      else dst[k] = (dst[k] & 0xffff) | u32{half_of(r).bits} << 16;
    }
  }
  return u + 1;
}
constexpr OpRow mix_row(const char* name, int16_t op, Handler run) {
  return {.name = name, .opcode = {op}, .format = Format::kVop3p, .dst = Ty::kB32, .src = {Ty::kB32, Ty::kB32, Ty::kB32}, .sources = 3, .flags = kMix, .run = run};
}

/// Dot products: neg bits say which operands are signed (IU forms).
template <unsigned Bits, bool Signs, bool Clamp> struct Dot {
  u32 operator()(Ctx x, u32 a, u32 b, u32 c) const {
    const bool sa = Signs && (x.u.neg & 1), sb = Signs && (x.u.neg & 2);
    auto part = [](u32 v, unsigned i, bool is_signed) -> int64_t {
      const u32 raw = v >> (Bits * i) & ((1u << Bits) - 1);
      return is_signed ? int64_t(i32(raw << (32 - Bits)) >> (32 - Bits)) : int64_t(raw);
    };
    int64_t sum = Signs ? int64_t(i32(c)) : int64_t(c);
    for (unsigned i = 0; i < 32 / Bits; ++i) sum += part(a, i, sa) * part(b, i, sb);
    if constexpr (!Clamp) return u32(sum);
    else if constexpr (Signs) return u32(saturate<i32>(sum));
    else return saturate<u32>(sum);
  }
};
template <unsigned Bits, bool Signs> OpRow dot_row(const char* name, int16_t op) {
  OpRow row = vector_row(Format::kVop3p, op, name, Dot<Bits, Signs, false>{}, kDotIu);
  row.clamp = &vector_any<Dot<Bits, Signs, true>>;
  return row;
}
/// op_sel and op_sel_hi choose halves, neg their signs.
template <bool Bf16> const Uop* dot2_float(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    u32 in[2][2][kLanes];
    for (unsigned i = 0; i < 2; ++i)
      for (unsigned high = 0; high < 2; ++high) prepare_packed(w, *u, half, i, high != 0, true, in[i][high]);
    u32* dst = w.v + half * kHalf + u->dst;
    for (unsigned k = 0; k < kLanes; ++k) {
      if (!(w.exec(half) >> k & 1)) continue;
      float c = std::bit_cast<float>(u->kind[2] == Kind::kVector ? w.v[half * kHalf + u->src[2] + k] : u32(scalar(w, *u, 2, false)));
      if (u->neg_hi & 4) c = std::fabs(c);
      if (u->neg & 4) c = -c;
      auto value = [](u32 bits) { return Bf16 ? bf16(u16(bits)) : f(Half{u16(bits)}); };
      const float r = std::fma(value(in[0][1][k]), value(in[1][1][k]), std::fma(value(in[0][0][k]), value(in[1][0][k]), c));
      dst[k] = std::bit_cast<u32>(u->clamp ? (r > 0.0f ? std::min(r, 1.0f) : 0.0f) : r);
    }
  }
  return u + 1;
}

/// V_WMMA 16x16x16, layouts of gfx11: A has row l % 16 and B column l % 16 in lane l, 16 elements in 8 registers; the upper 16
/// lanes repeat the lower. D has column l % 16; row 2j + l/16 (wave32) or 4j + l/16 (wave64) in register j.
enum class Wmma { kF32F16, kF32Bf16, kF16, kBf16, kI32Iu8, kI32Iu4 };
template <Wmma Kind_> const Uop* wmma(Wave& w, const Uop* u) {
  constexpr bool is_int = Kind_ == Wmma::kI32Iu8 || Kind_ == Wmma::kI32Iu4;
  constexpr bool narrow_out = Kind_ == Wmma::kF16 || Kind_ == Wmma::kBf16;
  const unsigned rows_a_register = w.halves == 1 ? 2 : 4;
  auto at = [&](unsigned operand, unsigned reg, unsigned lane) { return w.v[lane / kLanes * kHalf + u->src[operand] + reg * kLanes + lane % kLanes]; };
  auto element = [&](unsigned operand, unsigned index, unsigned k) -> double {
    if constexpr (Kind_ == Wmma::kI32Iu8 || Kind_ == Wmma::kI32Iu4) {
      constexpr unsigned bits = Kind_ == Wmma::kI32Iu8 ? 8 : 4, each = 32 / bits;
      const u32 raw = at(operand, k / each, index) >> (bits * (k % each)) & ((1u << bits) - 1);
      return u->neg >> operand & 1 ? double(i32(raw << (32 - bits)) >> (32 - bits)) : double(raw);
    } else {
      const u16 raw = u16(at(operand, k / 2, index) >> (16 * (k % 2)));
      const float v = Kind_ == Wmma::kF32Bf16 || Kind_ == Wmma::kBf16 ? bf16(raw) : f(Half{raw});
      return (k % 2 ? u->neg_hi : u->neg) >> operand & 1 ? -v : v;
    }
  };
  float a[16][16], b[16][16];
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned k = 0; k < 16; ++k) a[i][k] = float(element(0, i, k)), b[k][i] = float(element(1, i, k));
  u32 out[8][2 * kLanes];
  const unsigned lanes = kLanes * w.halves, registers = 16 / rows_a_register;
  for (unsigned j = 0; j < registers; ++j)
    for (unsigned l = 0; l < lanes; ++l) {
      const unsigned row = rows_a_register * j + l / 16, column = l % 16;
      const u32 raw = u->kind[2] == Kind::kVector ? at(2, j, l) : u32(scalar(w, *u, 2, false));
      if constexpr (is_int) {
        int64_t sum = i32(raw);
        for (unsigned k = 0; k < 16; ++k) sum += int64_t(a[row][k]) * int64_t(b[k][column]);
        out[j][l] = u->clamp ? u32(saturate<i32>(sum)) : u32(sum);
      } else {
        float sum;
        if constexpr (narrow_out) {
          const u16 c = u16(u->op_sel & 4 ? raw >> 16 : raw);
          sum = Kind_ == Wmma::kBf16 ? bf16(c) : f(Half{c});
        } else {
          sum = std::bit_cast<float>(raw);
        }
        if (u->neg_hi & 4) sum = std::fabs(sum);
        if (u->neg & 4) sum = -sum;
        for (unsigned k = 0; k < 16; ++k) sum = std::fma(a[row][k], b[k][column], sum);
        if constexpr (narrow_out) {
          u16 bits;
          if constexpr (Kind_ == Wmma::kBf16) {
            const u32 s = std::bit_cast<u32>(sum);
            bits = sum != sum ? u16(s >> 16 | 0x40) : u16((s + 0x7fff + (s >> 16 & 1)) >> 16);
          } else {
            bits = half_of(sum).bits;
          }
          out[j][l] = u->op_sel & 4 ? (raw & 0xffff) | u32{bits} << 16 : (raw & 0xffff0000) | bits;
        } else {
          out[j][l] = std::bit_cast<u32>(sum);
        }
      }
    }
  for (unsigned j = 0; j < registers; ++j)  // EXEC is ignored: all lanes take part
    for (unsigned l = 0; l < lanes; ++l) w.v[l / kLanes * kHalf + u->dst + j * kLanes + l % kLanes] = out[j][l];
  return u + 1;
}
constexpr OpRow wmma_row(const char* name, int16_t op, Handler run, Ty a) {
  return {.name = name, .opcode = {op}, .format = Format::kVop3p, .dst = Ty::kB256, .src = {a, a, Ty::kB256}, .sources = 3, .flags = kWmma, .run = run};
}

#define PK(op, text, type, expression) packed_row(op, text, [](type a, type b) { return expression; })
#define PK_CLAMP(op, text, type, wide, expression) \
  packed_row(op, text, [](type a, type b) { return type(expression); }, 0, &packed<decltype([](type a, type b) { return saturate<type>(wide(expression)); })>)
#define PK3(op, text, type, expression) packed_row(op, text, [](type a, type b, type c) { return type(expression); })

const OpRow kRows[] = {
    PK3(0x00, "v_pk_mad_i16", i16, i32{a} * b + c), PK(0x01, "v_pk_mul_lo_u16", u16, u16(u32{a} * b)), PK_CLAMP(0x02, "v_pk_add_i16", i16, i32, i32{a} + b),
    PK_CLAMP(0x03, "v_pk_sub_i16", i16, i32, i32{a} - b), PK(0x04, "v_pk_lshlrev_b16", u16, u16(b << (a & 15))), PK(0x05, "v_pk_lshrrev_b16", u16, u16(b >> (a & 15))),
    PK(0x06, "v_pk_ashrrev_i16", i16, i16(b >> (a & 15))), PK(0x07, "v_pk_max_i16", i16, std::max(a, b)), PK(0x08, "v_pk_min_i16", i16, std::min(a, b)),
    PK3(0x09, "v_pk_mad_u16", u16, u32{a} * b + c), PK_CLAMP(0x0a, "v_pk_add_u16", u16, i32, i32{a} + b), PK_CLAMP(0x0b, "v_pk_sub_u16", u16, i32, i32{a} - b),
    PK(0x0c, "v_pk_max_u16", u16, std::max(a, b)), PK(0x0d, "v_pk_min_u16", u16, std::min(a, b)),
    packed_row(0x0e, "v_pk_fma_f16", [](Half a, Half b, Half c) { return fma_half(a, b, c); }), PK(0x0f, "v_pk_add_f16", Half, half_of(f(a) + f(b))), PK(0x10, "v_pk_mul_f16", Half, half_of(f(a) * f(b))),
    PK(0x11, "v_pk_min_f16", Half, half_of(fmin_gpu(f(a), f(b)))), PK(0x12, "v_pk_max_f16", Half, half_of(fmax_gpu(f(a), f(b)))),
    mix_row("v_dot2_f32_f16", 0x13, &dot2_float<false>), dot_row<8, true>("v_dot4_i32_iu8", 0x16), dot_row<8, false>("v_dot4_u32_u8", 0x17), dot_row<4, true>("v_dot8_i32_iu4", 0x18),
    dot_row<4, false>("v_dot8_u32_u4", 0x19), mix_row("v_dot2_f32_bf16", 0x1a, &dot2_float<true>), mix_row("v_fma_mix_f32", 0x20, &fma_mix<MixTo::kF32>),
    mix_row("v_fma_mixlo_f16", 0x21, &fma_mix<MixTo::kLow>), mix_row("v_fma_mixhi_f16", 0x22, &fma_mix<MixTo::kHigh>),
    wmma_row("v_wmma_f32_16x16x16_f16", 0x40, &wmma<Wmma::kF32F16>, Ty::kB256), wmma_row("v_wmma_f32_16x16x16_bf16", 0x41, &wmma<Wmma::kF32Bf16>, Ty::kB256),
    wmma_row("v_wmma_f16_16x16x16_f16", 0x42, &wmma<Wmma::kF16>, Ty::kB256), wmma_row("v_wmma_bf16_16x16x16_bf16", 0x43, &wmma<Wmma::kBf16>, Ty::kB256),
    wmma_row("v_wmma_i32_16x16x16_iu8", 0x44, &wmma<Wmma::kI32Iu8>, Ty::kB128), wmma_row("v_wmma_i32_16x16x16_iu4", 0x45, &wmma<Wmma::kI32Iu4>, Ty::kB64),
};

}  // namespace

std::span<const OpRow> vop3p_rows() { return kRows; }

}  // namespace baregpu::mock::isa
