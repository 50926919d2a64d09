// What memory instructions share: addresses of the lanes and their patterns. Included only by files built with -mavx2.
#pragma once
#include "mock/isa/valu.hpp"

namespace baregpu::mock::isa {

/// Whether all 32 values equal the first one.
inline bool all_equal(const uint32_t* v) {
  const __m256i first = _mm256_set1_epi32(int(v[0]));
  __m256i same = _mm256_set1_epi32(-1);
  for (unsigned c = 0; c < 4; ++c)
    same =
        _mm256_and_si256(same, _mm256_cmpeq_epi32(first, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(v) + c)));
  return _mm256_movemask_epi8(same) == -1;
}
/// Whether v[i] == v[0] + i * step for all 32.
inline bool in_steps(const uint32_t* v, uint32_t step) {
  __m256i want =
      _mm256_add_epi32(_mm256_set1_epi32(int(v[0])),
                       _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(step))));
  const __m256i next = _mm256_set1_epi32(int(step * 8));
  __m256i same = _mm256_set1_epi32(-1);
  for (unsigned c = 0; c < 4; ++c) {
    same =
        _mm256_and_si256(same, _mm256_cmpeq_epi32(want, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(v) + c)));
    want = _mm256_add_epi32(want, next);
  }
  return _mm256_movemask_epi8(same) == -1;
}

/// How a loaded value lands in registers.
enum class Load : uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kDwords,
  kD16Low,
  kD16High,
  kD16LowU8,
  kD16LowI8,
  kD16HighU8,
  kD16HighI8
};
constexpr unsigned load_bytes(Load l, unsigned n) {
  switch (l) {
    case Load::kU8:
    case Load::kI8:
    case Load::kD16LowU8:
    case Load::kD16LowI8:
    case Load::kD16HighU8:
    case Load::kD16HighI8: return 1;
    case Load::kU16:
    case Load::kI16:
    case Load::kD16Low:
    case Load::kD16High: return 2;
    case Load::kDwords: return 4 * n;
  }
  return 4;
}
/// Puts one lane's value (at `p`) into its register column. `dst` points at lane 0 of the first register.
template <Load L, unsigned N>
[[gnu::always_inline]] inline void land(uint32_t* dst, unsigned lane, const std::byte* p) {
  uint32_t& r = dst[lane];
  if constexpr (L == Load::kDwords) {
    for (unsigned d = 0; d < N; ++d) std::memcpy(&dst[d * kLanes + lane], p + 4 * d, 4);
  } else if constexpr (load_bytes(L, N) == 1) {
    const uint8_t b = uint8_t(*p);
    const uint32_t u = b, s = uint32_t(int32_t(int8_t(b)));
    if constexpr (L == Load::kU8)
      r = u;
    else if constexpr (L == Load::kI8)
      r = s;
    else if constexpr (L == Load::kD16LowU8)
      r = (r & 0xffff0000) | u;
    else if constexpr (L == Load::kD16LowI8)
      r = (r & 0xffff0000) | (s & 0xffff);
    else if constexpr (L == Load::kD16HighU8)
      r = (r & 0xffff) | u << 16;
    else
      r = (r & 0xffff) | s << 16;
  } else {
    uint16_t h;
    std::memcpy(&h, p, 2);
    if constexpr (L == Load::kU16)
      r = h;
    else if constexpr (L == Load::kI16)
      r = uint32_t(int32_t(int16_t(h)));
    else if constexpr (L == Load::kD16Low)
      r = (r & 0xffff0000) | h;
    else
      r = (r & 0xffff) | uint32_t{h} << 16;
  }
}

/// What a store takes from its data register.
enum class Store : uint8_t { kByte, kHalf, kDwords, kByteHigh, kHalfHigh };
constexpr unsigned store_bytes(Store s, unsigned n) {
  return s == Store::kByte || s == Store::kByteHigh ? 1 : s == Store::kDwords ? 4 * n : 2;
}
template <Store S, unsigned N>
[[gnu::always_inline]] inline void take(const uint32_t* data, unsigned lane, std::byte* p) {
  if constexpr (S == Store::kDwords) {
    for (unsigned d = 0; d < N; ++d) std::memcpy(p + 4 * d, &data[d * kLanes + lane], 4);
  } else {
    const uint32_t v = S == Store::kByteHigh || S == Store::kHalfHigh ? data[lane] >> 16 : data[lane];
    std::memcpy(p, &v, store_bytes(S, N));
  }
}

}  // namespace baregpu::mock::isa
