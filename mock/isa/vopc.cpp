// Vector compares: VOPC and its V_CMPX forms. The opcode of a compare is type << 4 | condition (RDNA3 ISA 16.9), CMPX + 0x80.
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

/// Class bits: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf.
template <class U, unsigned ExponentBits, unsigned MantissaBits>
unsigned class_bit(U bits) {
  const U exponent = bits >> MantissaBits & ((U{1} << ExponentBits) - 1), mantissa = bits & ((U{1} << MantissaBits) - 1);
  const bool negative = bits >> (ExponentBits + MantissaBits) & 1, top = exponent == (U{1} << ExponentBits) - 1;
  if (top && mantissa) return mantissa >> (MantissaBits - 1) & 1 ? 1 : 0;
  if (top) return negative ? 2 : 9;
  if (exponent) return negative ? 3 : 8;
  if (mantissa) return negative ? 4 : 7;
  return negative ? 5 : 6;
}

template <class T> constexpr auto value(T x) { return x; }
inline float value(Half x) { return f(x); }

#define FLOATS(type, text, base, extra) \
  ROW("f_" text, base + 0, type, false), ROW("lt_" text, base + 1, type, value(a) < value(b)), ROW("eq_" text, base + 2, type, value(a) == value(b)), \
  ROW("le_" text, base + 3, type, value(a) <= value(b)), ROW("gt_" text, base + 4, type, value(a) > value(b)), ROW("lg_" text, base + 5, type, value(a) < value(b) || value(a) > value(b)), \
  ROW("ge_" text, base + 6, type, value(a) >= value(b)), ROW("o_" text, base + 7, type, value(a) == value(a) && value(b) == value(b)), \
  ROW("u_" text, base + 8, type, value(a) != value(a) || value(b) != value(b)), ROW("nge_" text, base + 9, type, !(value(a) >= value(b))), \
  ROW("nlg_" text, base + 10, type, !(value(a) < value(b) || value(a) > value(b))), ROW("ngt_" text, base + 11, type, !(value(a) > value(b))), \
  ROW("nle_" text, base + 12, type, !(value(a) <= value(b))), ROW("neq_" text, base + 13, type, value(a) != value(b)), \
  ROW("nlt_" text, base + 14, type, !(value(a) < value(b))), ROW("t_" text, base + 15, type, true)
#define ORDERS(type, text, base) \
  ROW("lt_" text, base + 1, type, a < b), ROW("eq_" text, base + 2, type, a == b), ROW("le_" text, base + 3, type, a <= b), \
  ROW("gt_" text, base + 4, type, a > b), ROW("ne_" text, base + 5, type, a != b), ROW("ge_" text, base + 6, type, a >= b)
#define INTS(type, text, base) ROW("f_" text, base + 0, type, false), ORDERS(type, text, base), ROW("t_" text, base + 7, type, true)
#define CLASSES(prefix, add, flags) \
  vector_row(Format::kVopc, add + 0x7d, prefix "class_f16", [](Half a, uint16_t m) { return bool(m >> class_bit<uint16_t, 5, 10>(a.bits) & 1); }, flags), \
  vector_row(Format::kVopc, add + 0x7e, prefix "class_f32", [](float a, uint32_t m) { return bool(m >> class_bit<uint32_t, 8, 23>(std::bit_cast<uint32_t>(a)) & 1); }, flags), \
  vector_row(Format::kVopc, add + 0x7f, prefix "class_f64", [](double a, uint32_t m) { return bool(m >> class_bit<uint64_t, 11, 52>(std::bit_cast<uint64_t>(a)) & 1); }, flags)
#define ALL \
  FLOATS(Half, "f16", 0x00, ), FLOATS(float, "f32", 0x10, ), FLOATS(double, "f64", 0x20, ), ORDERS(int16_t, "i16", 0x30), ORDERS(uint16_t, "u16", 0x38), \
  INTS(int32_t, "i32", 0x40), INTS(uint32_t, "u32", 0x48), INTS(int64_t, "i64", 0x50), INTS(uint64_t, "u64", 0x58)

#define ROW(text, op, type, test) vector_row(Format::kVopc, op, "v_cmp_" text, [](type a, type b) { (void)a, (void)b; return bool(test); })
const OpRow kCompares[] = {ALL, CLASSES("v_cmp_", 0, 0)};
#undef ROW
#define ROW(text, op, type, test) vector_row(Format::kVopc, (op) + 0x80, "v_cmpx_" text, [](type a, type b) { (void)a, (void)b; return bool(test); }, kCmpx)
const OpRow kCompareExec[] = {ALL, CLASSES("v_cmpx_", 0x80, kCmpx)};
#undef ROW

const std::vector<OpRow>& rows() {
  static const std::vector<OpRow> all = [] {
    std::vector<OpRow> r(std::begin(kCompares), std::end(kCompares));
    r.insert(r.end(), std::begin(kCompareExec), std::end(kCompareExec));
    return r;
  }();
  return all;
}

}  // namespace

std::span<const OpRow> vopc_rows() { return rows(); }

}  // namespace baregpu::mock::isa
