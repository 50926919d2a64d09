// VOP1 and VOP2. Opcode numbers: RDNA3 ISA chapter 16, checked with LLVM's assembler.
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

constexpr Format V1 = Format::kVop1, V2 = Format::kVop2;

/// Reads one lane of a vector source into an SGPR: the first active one, lane 0 if none is.
const Uop* readfirstlane(Wave& w, const Uop* u) {
  uint32_t value;
  if (u->kind[0] != Kind::kVector) {
    value = uint32_t(scalar(w, *u, 0, false));
  } else {
    unsigned lane = 0;
    for (unsigned half = 0; half < w.halves; ++half)
      if (w.exec(half)) {
        lane = half * kLanes + unsigned(std::countr_zero(w.exec(half)));
        break;
      }
    value = w.v[(lane / kLanes) * kHalf + u->src[0] + lane % kLanes];
  }
  w.s[u->dst] = value;
  return u + 1;
}

const Uop* swap_b32(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    uint32_t *a = w.v + half * kHalf + u->dst, *b = w.v + half * kHalf + u->src[0];
    for (unsigned i = 0; i < kLanes; ++i)
      if (w.exec(half) >> i & 1) std::swap(a[i], b[i]);
  }
  return u + 1;
}

/// Lanes of the two halves of a wave64 change places; in wave32 nothing moves.
const Uop* permlane64(Wave& w, const Uop* u) {
  if (w.halves == 1) return u + 1;
  uint32_t other[2][kLanes];
  for (unsigned half = 0; half < 2; ++half) std::memcpy(other[half], w.v + (1 - half) * kHalf + u->src[0], sizeof other[half]);
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned i = 0; i < kLanes; ++i)
      if (w.exec(half) >> i & 1) w.v[half * kHalf + u->dst + i] = other[half][i];
  return u + 1;
}

/// A one-source row of three float widths.
#define FLOAT1(op16, op32, op64, text, expression) \
  vector_row(V1, op16, "v_" text "_f16", [](Half h) { const float x = f(h); return half_of(float(expression)); }), \
  vector_row(V1, op32, "v_" text "_f32", [](float x) { return float(expression); }), \
  vector_row(V1, op64, "v_" text "_f64", [](double x) { return double(expression); })

const OpRow kRows[] = {
    OpRow{.name = "v_nop", .opcode = {0x00}, .format = V1, .flags = kDrop | kNoDst},
    vector_row(V1, 0x01, "v_mov_b32", [](uint32_t a) { return a; }),
    OpRow{.name = "v_readfirstlane_b32", .opcode = {0x02}, .format = V1, .dst = Ty::kB32, .src = {Ty::kB32}, .sources = 1, .flags = kSgprDst, .run = &readfirstlane},
    vector_row(V1, 0x03, "v_cvt_i32_f64", [](double x) { return to_int<int32_t>(x); }), vector_row(V1, 0x04, "v_cvt_f64_i32", [](int32_t x) { return double(x); }),
    vector_row(V1, 0x05, "v_cvt_f32_i32", [](int32_t x) { return float(x); }), vector_row(V1, 0x06, "v_cvt_f32_u32", [](uint32_t x) { return float(x); }),
    vector_row(V1, 0x07, "v_cvt_u32_f32", [](float x) { return to_int<uint32_t>(x); }), vector_row(V1, 0x08, "v_cvt_i32_f32", [](float x) { return to_int<int32_t>(x); }),
    vector_row(V1, 0x0a, "v_cvt_f16_f32", [](float x) { return half_of(x); }), vector_row(V1, 0x0b, "v_cvt_f32_f16", [](Half x) { return f(x); }),
    vector_row(V1, 0x0c, "v_cvt_nearest_i32_f32", [](float x) { return to_int<int32_t>(std::floor(double(x) + 0.5)); }),
    vector_row(V1, 0x0d, "v_cvt_floor_i32_f32", [](float x) { return to_int<int32_t>(std::floor(x)); }),
    vector_row(V1, 0x0e, "v_cvt_off_f32_i4", [](uint32_t x) { return float(int32_t(x << 28) >> 28) * 0.0625f; }),
    vector_row(V1, 0x0f, "v_cvt_f32_f64", [](double x) { return float(x); }), vector_row(V1, 0x10, "v_cvt_f64_f32", [](float x) { return double(x); }),
    vector_row(V1, 0x11, "v_cvt_f32_ubyte0", [](uint32_t x) { return float(x & 0xff); }), vector_row(V1, 0x12, "v_cvt_f32_ubyte1", [](uint32_t x) { return float(x >> 8 & 0xff); }),
    vector_row(V1, 0x13, "v_cvt_f32_ubyte2", [](uint32_t x) { return float(x >> 16 & 0xff); }), vector_row(V1, 0x14, "v_cvt_f32_ubyte3", [](uint32_t x) { return float(x >> 24); }),
    vector_row(V1, 0x15, "v_cvt_u32_f64", [](double x) { return to_int<uint32_t>(x); }), vector_row(V1, 0x16, "v_cvt_f64_u32", [](uint32_t x) { return double(x); }),
    FLOAT1(0x5d, 0x21, 0x17, "trunc", std::trunc(x)), FLOAT1(0x5c, 0x22, 0x18, "ceil", std::ceil(x)), FLOAT1(0x5e, 0x23, 0x19, "rndne", std::nearbyint(x)),
    FLOAT1(0x5b, 0x24, 0x1a, "floor", std::floor(x)),
    vector_row(V1, 0x1c, "v_mov_b16", [](uint16_t a) { return a; }),
    FLOAT1(0x5f, 0x20, 0x3e, "fract", fract(x)),
    vector_row(V1, 0x25, "v_exp_f32", [](float x) { return exp2_gpu(x); }), vector_row(V1, 0x27, "v_log_f32", [](float x) { return log2_gpu(x); }),
    FLOAT1(0x54, 0x2a, 0x2f, "rcp", 1 / x), vector_row(V1, 0x2b, "v_rcp_iflag_f32", [](float x) { return 1.0f / x; }),
    FLOAT1(0x56, 0x2e, 0x31, "rsq", 1.0 / std::sqrt(double(x))), FLOAT1(0x55, 0x33, 0x34, "sqrt", std::sqrt(x)),
    vector_row(V1, 0x35, "v_sin_f32", [](float x) { return sin_turns(x); }), vector_row(V1, 0x36, "v_cos_f32", [](float x) { return cos_turns(x); }),
    vector_row(V1, 0x37, "v_not_b32", [](uint32_t x) { return ~x; }), vector_row(V1, 0x38, "v_bfrev_b32", [](uint32_t x) { return reverse(x); }),
    vector_row(V1, 0x39, "v_clz_i32_u32", [](uint32_t x) { return x ? uint32_t(std::countl_zero(x)) : ~0u; }),
    vector_row(V1, 0x3a, "v_ctz_i32_b32", [](uint32_t x) { return x ? uint32_t(std::countr_zero(x)) : ~0u; }),
    vector_row(V1, 0x3b, "v_cls_i32", [](uint32_t x) { const uint32_t y = int32_t(x) < 0 ? ~x : x; return y ? uint32_t(std::countl_zero(y)) : ~0u; }),
    vector_row(V1, 0x3c, "v_frexp_exp_i32_f64", [](double x) { return frexp_exponent(x); }), vector_row(V1, 0x3d, "v_frexp_mant_f64", [](double x) { return frexp_mantissa(x); }),
    vector_row(V1, 0x3f, "v_frexp_exp_i32_f32", [](float x) { return frexp_exponent(x); }), vector_row(V1, 0x40, "v_frexp_mant_f32", [](float x) { return frexp_mantissa(x); }),
    vector_row(V1, 0x50, "v_cvt_f16_u16", [](uint16_t x) { return half_of(float(x)); }), vector_row(V1, 0x51, "v_cvt_f16_i16", [](int16_t x) { return half_of(float(x)); }),
    vector_row(V1, 0x52, "v_cvt_u16_f16", [](Half x) { return to_int<uint16_t>(f(x)); }), vector_row(V1, 0x53, "v_cvt_i16_f16", [](Half x) { return to_int<int16_t>(f(x)); }),
    vector_row(V1, 0x57, "v_log_f16", [](Half x) { return half_of(float(std::log2(double(f(x))))); }), vector_row(V1, 0x58, "v_exp_f16", [](Half x) { return half_of(float(std::exp2(double(f(x))))); }),
    vector_row(V1, 0x59, "v_frexp_mant_f16", [](Half x) { return half_of(frexp_mantissa(f(x))); }),
    vector_row(V1, 0x5a, "v_frexp_exp_i16_f16", [](Half x) { return int16_t(frexp_exponent(f(x))); }),
    vector_row(V1, 0x60, "v_sin_f16", [](Half x) { return half_of(sin_turns(f(x))); }), vector_row(V1, 0x61, "v_cos_f16", [](Half x) { return half_of(cos_turns(f(x))); }),
    vector_row(V1, 0x62, "v_sat_pk_u8_i16", [](uint32_t x) { return uint16_t(clamp_to<int>(int16_t(x), 0, 255) | clamp_to<int>(int16_t(x >> 16), 0, 255) << 8); }),
    vector_row(V1, 0x63, "v_cvt_norm_i16_f16", [](Half x) { return norm_i16(f(x)); }), vector_row(V1, 0x64, "v_cvt_norm_u16_f16", [](Half x) { return norm_u16(f(x)); }),
    OpRow{.name = "v_swap_b32", .opcode = {0x65}, .format = V1, .dst = Ty::kB32, .src = {Ty::kB32}, .sources = 1, .flags = kSwap | kNoE64, .run = &swap_b32},
    OpRow{.name = "v_permlane64_b32", .opcode = {0x67}, .format = V1, .dst = Ty::kB32, .src = {Ty::kB32}, .sources = 1, .flags = kNoE64, .run = &permlane64},
    vector_row(V1, 0x69, "v_not_b16", [](uint16_t x) { return uint16_t(~x); }),
    vector_row(V1, 0x6a, "v_cvt_i32_i16", [](int16_t x) { return int32_t(x); }), vector_row(V1, 0x6b, "v_cvt_u32_u16", [](uint16_t x) { return uint32_t(x); }),

    vector_row(V2, 0x01, "v_cndmask_b32", [](uint32_t a, uint32_t b, bool c) { return c ? b : a; }, kFloatMods),
    vector_row(V2, 0x02, "v_dot2acc_f32_f16", [](uint32_t a, uint32_t b, float c) { return dot2_f16(a, b, c); }, kAccumulate | kNoE64),
    vector_row(V2, 0x03, "v_add_f32", [](float a, float b) { return a + b; }), vector_row(V2, 0x04, "v_sub_f32", [](float a, float b) { return a - b; }),
    vector_row(V2, 0x05, "v_subrev_f32", [](float a, float b) { return b - a; }),
    vector_row(V2, 0x06, "v_fmac_dx9_zero_f32", [](float a, float b, float c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); }, kAccumulate),
    vector_row(V2, 0x07, "v_mul_dx9_zero_f32", [](float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; }),
    vector_row(V2, 0x08, "v_mul_f32", [](float a, float b) { return a * b; }),
    vector_row(V2, 0x09, "v_mul_i32_i24", [](uint32_t a, uint32_t b) { return uint32_t(i24(a)) * uint32_t(i24(b)); }),
    vector_row(V2, 0x0a, "v_mul_hi_i32_i24", [](uint32_t a, uint32_t b) { return uint32_t(int64_t(i24(a)) * i24(b) >> 32); }),
    vector_row(V2, 0x0b, "v_mul_u32_u24", [](uint32_t a, uint32_t b) { return u24(a) * u24(b); }),
    vector_row(V2, 0x0c, "v_mul_hi_u32_u24", [](uint32_t a, uint32_t b) { return uint32_t(uint64_t{u24(a)} * u24(b) >> 32); }),
    vector_row(V2, 0x0f, "v_min_f32", [](float a, float b) { return fmin_gpu(a, b); }), vector_row(V2, 0x10, "v_max_f32", [](float a, float b) { return fmax_gpu(a, b); }),
    vector_row(V2, 0x11, "v_min_i32", [](int32_t a, int32_t b) { return a < b ? a : b; }), vector_row(V2, 0x12, "v_max_i32", [](int32_t a, int32_t b) { return a > b ? a : b; }),
    vector_row(V2, 0x13, "v_min_u32", [](uint32_t a, uint32_t b) { return a < b ? a : b; }), vector_row(V2, 0x14, "v_max_u32", [](uint32_t a, uint32_t b) { return a > b ? a : b; }),
    vector_row(V2, 0x18, "v_lshlrev_b32", [](uint32_t a, uint32_t b) { return b << (a & 31); }), vector_row(V2, 0x19, "v_lshrrev_b32", [](uint32_t a, uint32_t b) { return b >> (a & 31); }),
    vector_row(V2, 0x1a, "v_ashrrev_i32", [](uint32_t a, int32_t b) { return b >> (a & 31); }),
    vector_row(V2, 0x1b, "v_and_b32", [](uint32_t a, uint32_t b) { return a & b; }), vector_row(V2, 0x1c, "v_or_b32", [](uint32_t a, uint32_t b) { return a | b; }),
    vector_row(V2, 0x1d, "v_xor_b32", [](uint32_t a, uint32_t b) { return a ^ b; }), vector_row(V2, 0x1e, "v_xnor_b32", [](uint32_t a, uint32_t b) { return ~(a ^ b); }),
    vector_row(V2, 0x20, "v_add_co_ci_u32", [](uint32_t a, uint32_t b, bool c) { const uint64_t r = uint64_t{a} + b + c; return Carry<uint32_t>{uint32_t(r), r >> 32 != 0}; }),
    vector_row(V2, 0x21, "v_sub_co_ci_u32", [](uint32_t a, uint32_t b, bool c) { return Carry<uint32_t>{a - b - c, uint64_t{b} + c > a}; }),
    vector_row(V2, 0x22, "v_subrev_co_ci_u32", [](uint32_t a, uint32_t b, bool c) { return Carry<uint32_t>{b - a - c, uint64_t{a} + c > b}; }),
    with_clamp(vector_row(V2, 0x25, "v_add_nc_u32", [](uint32_t a, uint32_t b) { return a + b; }), [](uint32_t a, uint32_t b) { return a + b < a ? ~0u : a + b; }),
    with_clamp(vector_row(V2, 0x26, "v_sub_nc_u32", [](uint32_t a, uint32_t b) { return a - b; }), [](uint32_t a, uint32_t b) { return b > a ? 0u : a - b; }),
    with_clamp(vector_row(V2, 0x27, "v_subrev_nc_u32", [](uint32_t a, uint32_t b) { return b - a; }), [](uint32_t a, uint32_t b) { return a > b ? 0u : b - a; }),
    vector_row(V2, 0x2b, "v_fmac_f32", [](float a, float b, float c) { return std::fma(a, b, c); }, kAccumulate),
    vector_row(V2, 0x2c, "v_fmamk_f32", [](float a, float k, float b) { return std::fma(a, k, b); }, kMadK | kNoE64),
    vector_row(V2, 0x2d, "v_fmaak_f32", [](float a, float b, float k) { return std::fma(a, b, k); }, kAddK | kNoE64),
    vector_row(V2, 0x2f, "v_cvt_pk_rtz_f16_f32", [](float a, float b) { return uint32_t(half_rtz(a)) | uint32_t(half_rtz(b)) << 16; }, kPlainPrint),
    vector_row(V2, 0x32, "v_add_f16", [](Half a, Half b) { return half_of(f(a) + f(b)); }), vector_row(V2, 0x33, "v_sub_f16", [](Half a, Half b) { return half_of(f(a) - f(b)); }),
    vector_row(V2, 0x34, "v_subrev_f16", [](Half a, Half b) { return half_of(f(b) - f(a)); }), vector_row(V2, 0x35, "v_mul_f16", [](Half a, Half b) { return half_of(f(a) * f(b)); }),
    vector_row(V2, 0x36, "v_fmac_f16", [](Half a, Half b, Half c) { return fma_half(a, b, c); }, kAccumulate),
    vector_row(V2, 0x37, "v_fmamk_f16", [](Half a, Half k, Half b) { return fma_half(a, k, b); }, kMadK | kNoE64),
    vector_row(V2, 0x38, "v_fmaak_f16", [](Half a, Half b, Half k) { return fma_half(a, b, k); }, kAddK | kNoE64),
    vector_row(V2, 0x39, "v_max_f16", [](Half a, Half b) { return half_of(fmax_gpu(f(a), f(b))); }), vector_row(V2, 0x3a, "v_min_f16", [](Half a, Half b) { return half_of(fmin_gpu(f(a), f(b))); }),
    vector_row(V2, 0x3b, "v_ldexp_f16", [](Half a, int16_t b) { return half_of(float(std::ldexp(double(f(a)), b))); }),
};

}  // namespace

std::span<const OpRow> vop1_rows() { return std::span(kRows).first(std::size(kRows) - 39); }
std::span<const OpRow> vop2_rows() { return std::span(kRows).last(39); }

}  // namespace baregpu::mock::isa
