// Instructions that have only the VOP3 encoding. Opcode numbers: RDNA3 ISA chapter 16, checked with LLVM's assembler.
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

constexpr Format V3 = Format::kVop3;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using u16 = uint16_t;
using i16 = int16_t;

constexpr u32 bfe_u32(u32 a, u32 offset, u32 width) { return width & 31 ? (a >> (offset & 31)) & ((1u << (width & 31)) - 1) : 0; }
constexpr u32 bfe_i32(u32 a, u32 offset, u32 width) {
  const u32 w = width & 31, o = offset & 31;
  if (w == 0) return 0;
  const u32 r = bfe_u32(a, o, w);
  if (o + w > 32) return u32(i32(a) >> o);
  return r >> (w - 1) & 1 ? r | ~u32{0} << w : r;
}
/// Byte `select` of {b, a}: a is bytes 4..7; 8..11 sign of a 16-bit part, 12 zero, above 12 all ones.
constexpr u32 perm_byte(u64 bytes, u32 select) {
  if (select < 8) return u32(bytes >> (8 * select)) & 0xff;
  if (select < 12) return bytes >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
  return select == 12 ? 0 : 0xff;
}
constexpr u32 perm(u32 a, u32 b, u32 s) {
  const u64 bytes = u64{a} << 32 | b;
  return perm_byte(bytes, s & 0xff) | perm_byte(bytes, s >> 8 & 0xff) << 8 | perm_byte(bytes, s >> 16 & 0xff) << 16 | perm_byte(bytes, s >> 24) << 24;
}
constexpr u32 sad_u8(u32 a, u32 b) {
  u32 r = 0;
  for (int i = 0; i < 4; ++i) {
    const i32 d = i32(a >> (8 * i) & 0xff) - i32(b >> (8 * i) & 0xff);
    r += u32(d < 0 ? -d : d);
  }
  return r;
}
template <class T> constexpr T min3(T a, T b, T c) { return std::min(std::min(a, b), c); }
template <class T> constexpr T max3(T a, T b, T c) { return std::max(std::max(a, b), c); }
template <class T> constexpr T med3(T a, T b, T c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

/// The special cases of a division (RDNA3 ISA, V_DIV_FIXUP): q is the quotient so far, d / n the original operands.
template <class F> F div_fixup(F q, F d, F n) {
  const F sign = std::signbit(d) != std::signbit(n) ? F(-1) : F(1);
  constexpr F inf = std::numeric_limits<F>::infinity(), nan = std::numeric_limits<F>::quiet_NaN();
  if (std::isnan(n)) return n + n;
  if (std::isnan(d)) return d + d;
  if (d == 0 && n == 0) return -nan;
  if (std::isinf(d) && std::isinf(n)) return -nan;
  if (d == 0 || std::isinf(n)) return sign * inf;
  if (std::isinf(d) || n == 0) return sign * F(0);
  if (!std::isnan(q) && !std::isinf(q)) return std::copysign(q, sign);
  return sign * inf;
}

/// Scales one operand of a division so that the quotient neither overflows nor loses digits (RDNA3 ISA, V_DIV_SCALE).
template <class F> Carry<F> div_scale(F s0, F d, F n) {
  constexpr bool wide = sizeof(F) == 8;
  const int up = wide ? 128 : 64, far = wide ? 768 : 96, tiny = wide ? 53 : 23, bias = wide ? 1023 : 127;
  auto exponent = [&](F x) { return x == 0 ? -bias : std::isnan(x) || std::isinf(x) ? bias + 1 : std::fpclassify(x) == FP_SUBNORMAL ? -bias : std::ilogb(x); };
  const int dn = exponent(d) + bias, nn = exponent(n) + bias;
  if (d == 0 || n == 0) return {std::numeric_limits<F>::quiet_NaN(), false};
  if (nn - dn >= far) return {s0 == d ? std::ldexp(s0, up) : s0, true};  // the quotient is close to overflow
  if (std::fpclassify(d) == FP_SUBNORMAL) return {std::ldexp(s0, up), false};
  const F reciprocal = F(1) / d, quotient = n / d;
  if (std::fpclassify(reciprocal) == FP_SUBNORMAL && std::fpclassify(quotient) == FP_SUBNORMAL) return {s0 == d ? std::ldexp(s0, up) : s0, true};
  if (std::fpclassify(reciprocal) == FP_SUBNORMAL) return {std::ldexp(s0, -up), false};
  if (std::fpclassify(quotient) == FP_SUBNORMAL) return {s0 == n ? std::ldexp(s0, up) : s0, true};
  if (nn <= tiny) return {std::ldexp(s0, up), false};
  return {s0, false};
}

/// 2/pi in 53-bit pieces (RDNA3 ISA, V_TRIG_PREOP_F64): bits of the fraction from `select` * 53 on, scaled by the exponent.
double trig_preop(double x, u32 select) {
  // The first 1216 bits of the fraction of 2/pi, most significant first (Payne and Hanek; the same table is in every libm).
  static constexpr u32 kTwoOverPi[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0,
                                       0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4,
                                       0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D,
                                       0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB, 0xF0CFBC20};
  const int exponent = int(std::bit_cast<u64>(x) >> 52 & 0x7ff);
  int shift = int(select & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  u64 bits = 0;
  for (int i = 0; i < 53; ++i) {
    const int at = shift + i;
    const u32 word = at / 32 < int(std::size(kTwoOverPi)) ? kTwoOverPi[at / 32] : 0;
    bits = bits << 1 | (word >> (31 - at % 32) & 1);
  }
  const int scale = -53 - shift + (exponent >= 1968 ? 128 : 0);
  return std::ldexp(double(bits), scale);
}

const Uop* readlane(Wave& w, const Uop* u) {
  const unsigned lane = unsigned(scalar(w, *u, 1, false)) % (kLanes * w.halves);
  w.s[u->dst] = u->kind[0] == Kind::kVector ? w.v[lane / kLanes * kHalf + u->src[0] + lane % kLanes] : u32(scalar(w, *u, 0, false));
  return u + 1;
}
const Uop* writelane(Wave& w, const Uop* u) {
  const unsigned lane = unsigned(scalar(w, *u, 1, false)) % (kLanes * w.halves);
  w.v[lane / kLanes * kHalf + u->dst + lane % kLanes] = u32(scalar(w, *u, 0, false));
  return u + 1;
}
/// Each lane takes one of the 16 lanes of its row (or, crossed, of the other row): a nibble of src1:src2 each.
/// op_sel bit 0: fetch from inactive lanes too; bit 1: 0 instead of the old value when a lane is not available.
template <bool Cross> const Uop* permlane16(Wave& w, const Uop* u) {
  const u64 select = u64(u32(scalar(w, *u, 1, false))) | u64(u32(scalar(w, *u, 2, false))) << 32;
  for (unsigned half = 0; half < w.halves; ++half) {
    u32 from[kLanes];
    if (u->kind[0] == Kind::kVector) std::memcpy(from, w.v + half * kHalf + u->src[0], sizeof from);
    else broadcast_plain(from, u32(scalar(w, *u, 0, false)));
    u32* dst = w.v + half * kHalf + u->dst;
    const u32 exec = w.exec(half);
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(exec >> i & 1)) continue;
      const unsigned row = (i & 16) ^ (Cross ? 16u : 0u), source = row | unsigned(select >> (4 * (i & 15)) & 15);
      if ((exec >> source & 1) || (u->op_sel & 1)) dst[i] = from[source];
      else if (u->op_sel & 2) dst[i] = 0;
    }
  }
  return u + 1;
}

constexpr OpRow special(const char* name, int16_t op, Handler run, u32 flags, std::array<Ty, 3> src, uint8_t n) {
  return {.name = name, .opcode = {op}, .format = V3, .dst = Ty::kB32, .src = src, .sources = n, .flags = flags, .run = run};
}
u32 mbcnt(u32 mask, u32 below) { return u32(std::popcount(mask & below)); }

#define ROW(op, text, ...) vector_row(V3, op, text, __VA_ARGS__)
#define CLAMPED(op, text, plain, clamped) with_clamp(vector_row(V3, op, text, plain), clamped)

const OpRow kRows[] = {
    ROW(0x209, "v_fma_dx9_zero_f32", [](float a, float b, float c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); }),
    ROW(0x20a, "v_mad_i32_i24", [](u32 a, u32 b, u32 c) { return u32(i24(a)) * u32(i24(b)) + c; }), ROW(0x20b, "v_mad_u32_u24", [](u32 a, u32 b, u32 c) { return u24(a) * u24(b) + c; }),
    ROW(0x210, "v_bfe_u32", [](u32 a, u32 b, u32 c) { return bfe_u32(a, b, c); }), ROW(0x211, "v_bfe_i32", [](u32 a, u32 b, u32 c) { return bfe_i32(a, b, c); }),
    ROW(0x212, "v_bfi_b32", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }), ROW(0x213, "v_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); }),
    ROW(0x214, "v_fma_f64", [](double a, double b, double c) { return std::fma(a, b, c); }),
    ROW(0x215, "v_lerp_u8", [](u32 a, u32 b, u32 c) { u32 r = 0; for (int i = 0; i < 32; i += 8) r |= (((a >> i & 0xff) + (b >> i & 0xff) + (c >> i & 1)) >> 1) << i; return r; }),
    ROW(0x216, "v_alignbit_b32", [](u32 a, u32 b, u32 c) { return u32((u64{a} << 32 | b) >> (c & 31)); }), ROW(0x217, "v_alignbyte_b32", [](u32 a, u32 b, u32 c) { return u32((u64{a} << 32 | b) >> (8 * (c & 3))); }),
    ROW(0x219, "v_min3_f32", [](float a, float b, float c) { return fmin_gpu(fmin_gpu(a, b), c); }), ROW(0x21a, "v_min3_i32", [](i32 a, i32 b, i32 c) { return min3(a, b, c); }),
    ROW(0x21b, "v_min3_u32", [](u32 a, u32 b, u32 c) { return min3(a, b, c); }), ROW(0x21c, "v_max3_f32", [](float a, float b, float c) { return fmax_gpu(fmax_gpu(a, b), c); }),
    ROW(0x21d, "v_max3_i32", [](i32 a, i32 b, i32 c) { return max3(a, b, c); }), ROW(0x21e, "v_max3_u32", [](u32 a, u32 b, u32 c) { return max3(a, b, c); }),
    ROW(0x21f, "v_med3_f32", [](float a, float b, float c) { return med3_gpu(a, b, c); }), ROW(0x220, "v_med3_i32", [](i32 a, i32 b, i32 c) { return med3(a, b, c); }),
    ROW(0x221, "v_med3_u32", [](u32 a, u32 b, u32 c) { return med3(a, b, c); }), ROW(0x222, "v_sad_u8", [](u32 a, u32 b, u32 c) { return sad_u8(a, b) + c; }),
    ROW(0x223, "v_sad_hi_u8", [](u32 a, u32 b, u32 c) { return (sad_u8(a, b) << 16) + c; }),
    ROW(0x224, "v_sad_u16", [](u32 a, u32 b, u32 c) { return u32(std::abs(i32(a & 0xffff) - i32(b & 0xffff)) + std::abs(i32(a >> 16) - i32(b >> 16))) + c; }),
    ROW(0x225, "v_sad_u32", [](u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; }),
    ROW(0x226, "v_cvt_pk_u8_f32", [](float a, u32 b, u32 c) { const unsigned s = 8 * (b & 3); return (c & ~(0xffu << s)) | u32(to_int<uint8_t>(std::nearbyint(a))) << s; }),
    ROW(0x227, "v_div_fixup_f32", [](float q, float d, float n) { return div_fixup(q, d, n); }), ROW(0x228, "v_div_fixup_f64", [](double q, double d, double n) { return div_fixup(q, d, n); }),
    // The scale was 2^64 (2^128); a lane's VCC bit says whether the quotient is to be scaled, the exponent of src2 which way.
    ROW(0x237, "v_div_fmas_f32", [](Ctx x, float a, float b, float c) { const float r = std::fma(a, b, c); return x.w.s[kVcc + x.lane / 32] >> (x.lane & 31) & 1 ? std::ldexp(r, std::fabs(c) >= 2.0f ? 64 : -64) : r; }),
    ROW(0x238, "v_div_fmas_f64", [](Ctx x, double a, double b, double c) { const double r = std::fma(a, b, c); return x.w.s[kVcc + x.lane / 32] >> (x.lane & 31) & 1 ? std::ldexp(r, std::fabs(c) >= 2.0 ? 128 : -128) : r; }),
    ROW(0x239, "v_msad_u8", [](u32 a, u32 b, u32 c) { u32 r = c; for (int i = 0; i < 32; i += 8) if (b >> i & 0xff) r += u32(std::abs(i32(a >> i & 0xff) - i32(b >> i & 0xff))); return r; }),
    ROW(0x240, "v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }), ROW(0x241, "v_mad_u16", [](u16 a, u16 b, u16 c) { return u16(u32{a} * b + c); }),
    ROW(0x244, "v_perm_b32", [](u32 a, u32 b, u32 c) { return perm(a, b, c); }), ROW(0x245, "v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; }),
    ROW(0x246, "v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }), ROW(0x247, "v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }),
    ROW(0x248, "v_fma_f16", [](Half a, Half b, Half c) { return fma_half(a, b, c); }), ROW(0x249, "v_min3_f16", [](Half a, Half b, Half c) { return half_of(fmin_gpu(fmin_gpu(f(a), f(b)), f(c))); }),
    ROW(0x24a, "v_min3_i16", [](i16 a, i16 b, i16 c) { return min3(a, b, c); }), ROW(0x24b, "v_min3_u16", [](u16 a, u16 b, u16 c) { return min3(a, b, c); }),
    ROW(0x24c, "v_max3_f16", [](Half a, Half b, Half c) { return half_of(fmax_gpu(fmax_gpu(f(a), f(b)), f(c))); }), ROW(0x24d, "v_max3_i16", [](i16 a, i16 b, i16 c) { return max3(a, b, c); }),
    ROW(0x24e, "v_max3_u16", [](u16 a, u16 b, u16 c) { return max3(a, b, c); }), ROW(0x24f, "v_med3_f16", [](Half a, Half b, Half c) { return half_of(med3_gpu(f(a), f(b), f(c))); }),
    ROW(0x250, "v_med3_i16", [](i16 a, i16 b, i16 c) { return med3(a, b, c); }), ROW(0x251, "v_med3_u16", [](u16 a, u16 b, u16 c) { return med3(a, b, c); }),
    ROW(0x253, "v_mad_i16", [](i16 a, i16 b, i16 c) { return i16(i32{a} * b + c); }), ROW(0x254, "v_div_fixup_f16", [](Half q, Half d, Half n) { return half_of(div_fixup(f(q), f(d), f(n))); }),
    ROW(0x255, "v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; }), ROW(0x256, "v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }),
    ROW(0x257, "v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; }), ROW(0x258, "v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; }),
    ROW(0x259, "v_mad_u32_u16", [](u16 a, u16 b, u32 c) { return u32{a} * b + c; }), ROW(0x25a, "v_mad_i32_i16", [](i16 a, i16 b, u32 c) { return u32(i32{a} * b) + c; }),
    special("v_permlane16_b32", 0x25b, &permlane16<false>, 0, {Ty::kB32, Ty::kB32, Ty::kB32}, 3), special("v_permlanex16_b32", 0x25c, &permlane16<true>, 0, {Ty::kB32, Ty::kB32, Ty::kB32}, 3),
    ROW(0x25d, "v_cndmask_b16", [](u16 a, u16 b, bool c) { return c ? b : a; }, kFloatMods),
    ROW(0x25e, "v_maxmin_f32", [](float a, float b, float c) { return fmin_gpu(fmax_gpu(a, b), c); }), ROW(0x25f, "v_minmax_f32", [](float a, float b, float c) { return fmax_gpu(fmin_gpu(a, b), c); }),
    ROW(0x260, "v_maxmin_f16", [](Half a, Half b, Half c) { return half_of(fmin_gpu(fmax_gpu(f(a), f(b)), f(c))); }), ROW(0x261, "v_minmax_f16", [](Half a, Half b, Half c) { return half_of(fmax_gpu(fmin_gpu(f(a), f(b)), f(c))); }),
    ROW(0x262, "v_maxmin_u32", [](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); }), ROW(0x263, "v_minmax_u32", [](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); }),
    ROW(0x264, "v_maxmin_i32", [](i32 a, i32 b, i32 c) { return std::min(std::max(a, b), c); }), ROW(0x265, "v_minmax_i32", [](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), c); }),
    ROW(0x2fc, "v_div_scale_f32", [](float a, float b, float c) { return div_scale(a, b, c); }, kOnlyVop3), ROW(0x2fd, "v_div_scale_f64", [](double a, double b, double c) { return div_scale(a, b, c); }, kOnlyVop3),
    ROW(0x2fe, "v_mad_u64_u32", [](u32 a, u32 b, u64 c) { const u64 p = u64{a} * b, r = p + c; return Carry<u64>{r, r < p}; }, kOnlyVop3),
    ROW(0x2ff, "v_mad_i64_i32", [](i32 a, i32 b, int64_t c) { int64_t r; const bool o = __builtin_add_overflow(int64_t{a} * b, c, &r); return Carry<int64_t>{r, o}; }, kOnlyVop3),
    ROW(0x300, "v_add_co_u32", [](u32 a, u32 b) { return Carry<u32>{a + b, a + b < a}; }, kOnlyVop3), ROW(0x301, "v_sub_co_u32", [](u32 a, u32 b) { return Carry<u32>{a - b, b > a}; }, kOnlyVop3),
    ROW(0x302, "v_subrev_co_u32", [](u32 a, u32 b) { return Carry<u32>{b - a, a > b}; }, kOnlyVop3),
    CLAMPED(0x303, "v_add_nc_u16", [](u16 a, u16 b) { return u16(a + b); }, [](u16 a, u16 b) { return saturate<u16>(i32{a} + b); }),
    CLAMPED(0x304, "v_sub_nc_u16", [](u16 a, u16 b) { return u16(a - b); }, [](u16 a, u16 b) { return saturate<u16>(i32{a} - b); }), ROW(0x305, "v_mul_lo_u16", [](u16 a, u16 b) { return u16(u32{a} * b); }),
    ROW(0x306, "v_cvt_pk_i16_f32", [](float a, float b) { return u32(u16(to_int<i16>(a))) | u32(u16(to_int<i16>(b))) << 16; }), ROW(0x307, "v_cvt_pk_u16_f32", [](float a, float b) { return u32(to_int<u16>(a)) | u32(to_int<u16>(b)) << 16; }),
    ROW(0x309, "v_max_u16", [](u16 a, u16 b) { return std::max(a, b); }), ROW(0x30a, "v_max_i16", [](i16 a, i16 b) { return std::max(a, b); }),
    ROW(0x30b, "v_min_u16", [](u16 a, u16 b) { return std::min(a, b); }), ROW(0x30c, "v_min_i16", [](i16 a, i16 b) { return std::min(a, b); }),
    CLAMPED(0x30d, "v_add_nc_i16", [](i16 a, i16 b) { return i16(a + b); }, [](i16 a, i16 b) { return saturate<i16>(i32{a} + b); }),
    CLAMPED(0x30e, "v_sub_nc_i16", [](i16 a, i16 b) { return i16(a - b); }, [](i16 a, i16 b) { return saturate<i16>(i32{a} - b); }),
    ROW(0x311, "v_pack_b32_f16", [](Half a, Half b) { return u32{a.bits} | u32{b.bits} << 16; }),
    ROW(0x312, "v_cvt_pk_norm_i16_f16", [](Half a, Half b) { return u32(u16(norm_i16(f(a)))) | u32(u16(norm_i16(f(b)))) << 16; }), ROW(0x313, "v_cvt_pk_norm_u16_f16", [](Half a, Half b) { return u32{norm_u16(f(a))} | u32{norm_u16(f(b))} << 16; }),
    ROW(0x31c, "v_ldexp_f32", [](float a, i32 b) { return std::ldexp(a, clamp_to(b, -100000, 100000)); }), ROW(0x31d, "v_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }),
    ROW(0x31e, "v_bcnt_u32_b32", [](u32 a, u32 b) { return u32(std::popcount(a)) + b; }),
    ROW(0x31f, "v_mbcnt_lo_u32_b32", [](Ctx x, u32 a, u32 b) { return mbcnt(a, x.lane < 32 ? (1u << x.lane) - 1 : ~0u) + b; }),
    ROW(0x320, "v_mbcnt_hi_u32_b32", [](Ctx x, u32 a, u32 b) { return mbcnt(a, x.lane < 32 ? 0u : (1u << (x.lane - 32)) - 1) + b; }),
    ROW(0x321, "v_cvt_pk_norm_i16_f32", [](float a, float b) { return u32(u16(norm_i16(a))) | u32(u16(norm_i16(b))) << 16; }), ROW(0x322, "v_cvt_pk_norm_u16_f32", [](float a, float b) { return u32{norm_u16(a)} | u32{norm_u16(b)} << 16; }),
    ROW(0x323, "v_cvt_pk_u16_u32", [](u32 a, u32 b) { return std::min(a, 0xffffu) | std::min(b, 0xffffu) << 16; }), ROW(0x324, "v_cvt_pk_i16_i32", [](i32 a, i32 b) { return u32(u16(saturate<i16>(a))) | u32(u16(saturate<i16>(b))) << 16; }),
    CLAMPED(0x325, "v_sub_nc_i32", [](u32 a, u32 b) { return a - b; }, [](i32 a, i32 b) { return saturate<i32>(int64_t{a} - b); }),
    CLAMPED(0x326, "v_add_nc_i32", [](u32 a, u32 b) { return a + b; }, [](i32 a, i32 b) { return saturate<i32>(int64_t{a} + b); }),
    ROW(0x327, "v_add_f64", [](double a, double b) { return a + b; }), ROW(0x328, "v_mul_f64", [](double a, double b) { return a * b; }), ROW(0x329, "v_min_f64", [](double a, double b) { return fmin_gpu(a, b); }),
    ROW(0x32a, "v_max_f64", [](double a, double b) { return fmax_gpu(a, b); }), ROW(0x32b, "v_ldexp_f64", [](double a, i32 b) { return std::ldexp(a, clamp_to(b, -100000, 100000)); }),
    ROW(0x32c, "v_mul_lo_u32", [](u32 a, u32 b) { return a * b; }), ROW(0x32d, "v_mul_hi_u32", [](u32 a, u32 b) { return u32(u64{a} * b >> 32); }),
    ROW(0x32e, "v_mul_hi_i32", [](i32 a, i32 b) { return u32(int64_t{a} * b >> 32); }), ROW(0x32f, "v_trig_preop_f64", [](double a, u32 b) { return trig_preop(a, b); }),
    ROW(0x338, "v_lshlrev_b16", [](u16 a, u16 b) { return u16(b << (a & 15)); }), ROW(0x339, "v_lshrrev_b16", [](u16 a, u16 b) { return u16(b >> (a & 15)); }), ROW(0x33a, "v_ashrrev_i16", [](u16 a, i16 b) { return i16(b >> (a & 15)); }),
    ROW(0x33c, "v_lshlrev_b64", [](u32 a, u64 b) { return b << (a & 63); }), ROW(0x33d, "v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a & 63); }), ROW(0x33e, "v_ashrrev_i64", [](u32 a, int64_t b) { return b >> (a & 63); }),
    special("v_readlane_b32", 0x360, &readlane, kSgprDst, {Ty::kB32, Ty::kB32}, 2), special("v_writelane_b32", 0x361, &writelane, 0, {Ty::kB32, Ty::kB32}, 2),
    ROW(0x362, "v_and_b16", [](u16 a, u16 b) { return u16(a & b); }), ROW(0x363, "v_or_b16", [](u16 a, u16 b) { return u16(a | b); }), ROW(0x364, "v_xor_b16", [](u16 a, u16 b) { return u16(a ^ b); }),
};

}  // namespace

std::span<const OpRow> vop3_rows() { return kRows; }

}  // namespace baregpu::mock::isa
