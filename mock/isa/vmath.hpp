// Arithmetic of the vector units where it differs from C++'s. Included only by files built with -mavx2 -mfma -mf16c.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "mock/isa/valu.hpp"

namespace baregpu::mock::isa {

[[gnu::always_inline]] inline float f(Half h) { return _cvtsh_ss(h.bits); }
/// Rounds by the current mode. Results of f16 arithmetic computed in f32 are exact enough: f32 has more than twice the
/// digits.
[[gnu::always_inline]] inline Half half_of(float x) { return {_cvtss_sh(x, _MM_FROUND_CUR_DIRECTION)}; }
inline uint16_t half_rtz(float x) { return _cvtss_sh(x, _MM_FROUND_TO_ZERO); }
/// One rounding: the double product of two halves is exact, the sum is rounded to odd before the last step.
inline Half fma_half(Half a, Half b, Half c) {
  const double product = double(f(a)) * double(f(b)), sum = product + double(f(c));
  // A double has 53 bits, enough for the exact sum unless the exponents are far apart; then the small part is a sticky
  // bit.
  float narrow = float(sum);
  if (double(narrow) != sum && !std::isnan(sum)) {
    uint32_t bits = std::bit_cast<uint32_t>(narrow);
    if (std::fabs(double(narrow)) > std::fabs(sum)) --bits;  // truncate towards zero, then set the sticky bit
    narrow = std::bit_cast<float>(bits | 1);
  }
  return half_of(narrow);
}

inline float bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
inline float dot2_f16(uint32_t a, uint32_t b, float c) {
  return std::fma(f(Half{uint16_t(a >> 16)}), f(Half{uint16_t(b >> 16)}),
                  std::fma(f(Half{uint16_t(a)}), f(Half{uint16_t(b)}), c));
}

[[gnu::always_inline]] inline int32_t i24(uint32_t x) { return int32_t(x << 8) >> 8; }
[[gnu::always_inline]] inline uint32_t u24(uint32_t x) { return x & 0xffffff; }
template <class T>
constexpr T clamp_to(T v, T low, T high) {
  return v < low ? low : v > high ? high : v;
}
template <class T, class W>
constexpr T saturate(W v) {
  return T(clamp_to<W>(v, W(std::numeric_limits<T>::min()), W(std::numeric_limits<T>::max())));
}

/// Float to integer: truncated, NaN gives 0, out of range gives the nearest end.
template <class T, class F>
[[gnu::always_inline]] inline T to_int(F x) {
  // The smallest value above the range, exactly representable in F.
  const F top = std::ldexp(F(1), std::numeric_limits<T>::digits), bottom = F(std::numeric_limits<T>::min());
  if (!(x == x)) return 0;
  if (x >= top) return std::numeric_limits<T>::max();
  if (x <= bottom) return std::numeric_limits<T>::min();
  return T(x);
}

template <class F>
inline F fract(F x) {
  if (std::isinf(x)) return std::numeric_limits<F>::quiet_NaN();
  const F r = x - std::floor(x), below_one = std::nextafter(F(1), F(0));
  return r < F(1) || std::isnan(r) ? r : below_one;
}
template <class F>
inline int32_t frexp_exponent(F x) {
  if (x == 0 || std::isnan(x) || std::isinf(x)) return 0;
  int e;
  (void)std::frexp(x, &e);
  return e;
}
template <class F>
inline F frexp_mantissa(F x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  int e;
  return std::frexp(x, &e);
}

// Results of the transcendental unit: correctly rounded here (hardware is within 1 ulp).
inline float exp2_gpu(float x) { return float(std::exp2(double(x))); }
inline float log2_gpu(float x) { return float(std::log2(double(x))); }
/// Input in turns; more than 256 turns are out of the unit's range and give 0 turns.
inline float sin_turns(float x) {
  if (std::isinf(x)) return std::numeric_limits<float>::quiet_NaN();
  if (std::fabs(x) > 256.0f) return 0.0f;
  return float(std::sin(std::remainder(double(x), 1.0) * 6.283185307179586));
}
inline float cos_turns(float x) {
  if (std::isinf(x)) return std::numeric_limits<float>::quiet_NaN();
  if (std::fabs(x) > 256.0f) return 1.0f;
  return float(std::cos(std::remainder(double(x), 1.0) * 6.283185307179586));
}
inline uint32_t reverse(uint32_t x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}

/// IEEE minNum/maxNum: a NaN loses against a number; -0 is smaller than +0. A signalling NaN comes back quiet.
template <class F>
[[gnu::always_inline]] inline F fmin_gpu(F a, F b) {
  const F less = a < b ? a : b < a ? b : (std::signbit(a) ? a : b);
  return a != a ? (b != b ? a + b : b) : b != b ? a : less;
}
template <class F>
[[gnu::always_inline]] inline F fmax_gpu(F a, F b) {
  const F more = a > b ? a : b > a ? b : (std::signbit(a) ? b : a);
  return a != a ? (b != b ? a + b : b) : b != b ? a : more;
}
template <class F>
inline F med3_gpu(F a, F b, F c) {
  if (a != a || b != b || c != c) return fmin_gpu(fmin_gpu(a, b), c);
  const F top = fmax_gpu(fmax_gpu(a, b), c);
  return top == a ? fmax_gpu(b, c) : top == b ? fmax_gpu(a, c) : fmax_gpu(a, b);
}

inline int16_t norm_i16(float x) {
  return std::isnan(x) ? int16_t(0) : int16_t(std::nearbyint(clamp_to(x, -1.0f, 1.0f) * 32767.0f));
}
inline uint16_t norm_u16(float x) {
  return std::isnan(x) ? uint16_t(0) : uint16_t(std::nearbyint(clamp_to(x, 0.0f, 1.0f) * 65535.0f));
}

}  // namespace baregpu::mock::isa
