// Vector handlers made from lane functions: a functor's C++ signature gives operand types, GCC vectorises the lane
// loop. Included only by files built with -mavx2 -mfma -mf16c.
#pragma once
#include <immintrin.h>

#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

#include "mock/isa/wave.hpp"

namespace baregpu::mock::isa {

struct Half {
  uint16_t bits;
};
template <class T>
struct Carry {
  T value;
  bool carry;
};
/// A functor that asks for a Ctx first gets its place: lane number in the wave and the micro-op.
struct Ctx {
  const Wave& w;
  const Uop& u;
  unsigned lane;
};

template <class T>
struct TyOf;
template <>
struct TyOf<uint32_t> {
  static constexpr Ty ty = Ty::kB32;
};
template <>
struct TyOf<int32_t> {
  static constexpr Ty ty = Ty::kB32;
};
template <>
struct TyOf<float> {
  static constexpr Ty ty = Ty::kF32;
};
template <>
struct TyOf<double> {
  static constexpr Ty ty = Ty::kF64;
};
template <>
struct TyOf<uint64_t> {
  static constexpr Ty ty = Ty::kB64;
};
template <>
struct TyOf<int64_t> {
  static constexpr Ty ty = Ty::kI64;
};
template <>
struct TyOf<Half> {
  static constexpr Ty ty = Ty::kF16;
};
template <>
struct TyOf<uint16_t> {
  static constexpr Ty ty = Ty::kB16;
};
template <>
struct TyOf<int16_t> {
  static constexpr Ty ty = Ty::kB16;
};
template <>
struct TyOf<bool> {
  static constexpr Ty ty = Ty::kMask;
};

template <class T>
struct Result {
  using value = T;
  static constexpr bool mask = false, both = false;
};
template <>
struct Result<bool> {
  using value = uint32_t;
  static constexpr bool mask = true, both = false;
};
template <class T>
struct Result<Carry<T>> {
  using value = T;
  static constexpr bool mask = true, both = true;
};

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> {
  using Return = R;
  using Args = std::tuple<A...>;
  static constexpr bool kContext = false;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(Ctx, A...) const> {
  using Return = R;
  using Args = std::tuple<A...>;
  static constexpr bool kContext = true;
};
template <class F, size_t I>
using Arg = std::tuple_element_t<I, typename Signature<F>::Args>;
template <class F>
constexpr size_t kArity = std::tuple_size_v<typename Signature<F>::Args>;

/// 32 lanes of a source: `hi` only for 64-bit types.
struct Source {
  const uint32_t* lo;
  const uint32_t* hi;
};

template <class T>
[[gnu::always_inline]] inline T lane(const Source& s, unsigned i) {
  if constexpr (std::is_same_v<T, bool>)
    return s.lo[i] != 0;
  else if constexpr (std::is_same_v<T, Half>)
    return Half{uint16_t(s.lo[i])};
  else if constexpr (sizeof(T) == 2)
    return T(s.lo[i]);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(s.lo[i]);
  else
    return std::bit_cast<T>(uint64_t{s.lo[i]} | uint64_t{s.hi[i]} << 32);
}

template <class T>
[[gnu::always_inline]] inline void put(uint32_t* lo, uint32_t* hi, unsigned i, T value) {
  if constexpr (std::is_same_v<T, Half>)
    lo[i] = value.bits;
  else if constexpr (sizeof(T) == 2)
    lo[i] = uint16_t(value);
  else if constexpr (sizeof(T) == 4)
    lo[i] = std::bit_cast<uint32_t>(value);
  else {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    lo[i] = uint32_t(bits);
    hi[i] = uint32_t(bits >> 32);
  }
}

inline __m256i lane_mask(uint32_t bits, unsigned chunk) {
  const __m256i select = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i b = _mm256_and_si256(_mm256_set1_epi32(int((bits >> (8 * chunk)) & 0xff)), select);
  return _mm256_cmpeq_epi32(b, select);
}
/// dst = exec ? value : dst, 32 lanes.
inline void blend(uint32_t* dst, const uint32_t* value, uint32_t exec) {
  for (unsigned c = 0; c < 4; ++c) {
    auto* d = reinterpret_cast<__m256i*>(dst) + c;
    const __m256i n = _mm256_load_si256(reinterpret_cast<const __m256i*>(value) + c);
    _mm256_store_si256(d, exec == kFull ? n : _mm256_blendv_epi8(_mm256_load_si256(d), n, lane_mask(exec, c)));
  }
}
inline void broadcast(uint32_t* dst, uint32_t value) {
  const __m256i v = _mm256_set1_epi32(int(value));
  for (unsigned c = 0; c < 4; ++c) _mm256_store_si256(reinterpret_cast<__m256i*>(dst) + c, v);
}
inline void broadcast_plain(uint32_t* dst, uint32_t value) {
  for (unsigned i = 0; i < kLanes; ++i) dst[i] = value;
}
inline void expand_mask(uint32_t* dst, uint32_t bits) {
  for (unsigned c = 0; c < 4; ++c) _mm256_store_si256(reinterpret_cast<__m256i*>(dst) + c, lane_mask(bits, c));
}
inline uint32_t collect_mask(const uint32_t* lanes) {
  uint32_t bits = 0;
  for (unsigned c = 0; c < 4; ++c)
    bits |= uint32_t(_mm256_movemask_ps(_mm256_load_ps(reinterpret_cast<const float*>(lanes) + 8 * c))) << (8 * c);
  return bits;
}

/// Sources of any form: broadcast, DPP, op_sel, abs, neg. Returns the lanes that may be written (EXEC less DPP's).
uint32_t prepare(Wave& w, const Uop& u, unsigned half, std::array<Source, 3>& out);
/// The 32 lanes of packed source `i`'s low or high 16 bits, op_sel and neg applied.
void prepare_packed(Wave& w, const Uop& u, unsigned half, unsigned i, bool high, bool is_float, uint32_t* out);
/// omod, clamp, op_sel of the destination, masked write of a result of `row.dst` type.
void finish(Wave& w, const Uop& u, unsigned half, uint32_t exec, uint32_t* lo, uint32_t* hi);
/// Writes the lane mask result of a compare or a carry.
inline void finish_mask(Wave& w, const Uop& u, unsigned half, uint32_t bits) { w.s[u.sdst + half] = bits; }

template <class F, size_t... I>
[[gnu::always_inline]] inline auto call(const Wave& w, const Uop& u, unsigned half, const std::array<Source, 3>& o,
                                        unsigned i, std::index_sequence<I...>) {
  if constexpr (Signature<F>::kContext)
    return F{}(Ctx{w, u, half * kLanes + i}, lane<Arg<F, I>>(o[I], i)...);
  else
    return F{}(lane<Arg<F, I>>(o[I], i)...);
}

template <class F>
[[gnu::always_inline]] inline void lanes(const Wave& w, const Uop& u, unsigned half, const std::array<Source, 3>& o,
                                         uint32_t* lo, uint32_t* hi, uint32_t* mask) {
  using R = typename Signature<F>::Return;
  constexpr auto kIndices = std::make_index_sequence<kArity<F>>{};
#pragma GCC ivdep
  for (unsigned i = 0; i < kLanes; ++i) {
    const auto r = call<F>(w, u, half, o, i, kIndices);
    if constexpr (Result<R>::both) {
      put(lo, hi, i, r.value);
      mask[i] = r.carry ? kFull : 0;
    } else if constexpr (Result<R>::mask) {
      mask[i] = r ? kFull : 0;
    } else {
      put(lo, hi, i, r);
    }
  }
}

/// Any form of an instruction.
template <class F>
const Uop* vector_any(Wave& w, const Uop* u) {
  using R = Result<typename Signature<F>::Return>;
  alignas(32) uint32_t lo[kLanes], hi[kLanes], mask[kLanes];
  for (unsigned half = 0; half < w.halves; ++half) {
    std::array<Source, 3> o{};
    const uint32_t exec = prepare(w, *u, half, o);
    lanes<F>(w, *u, half, o, lo, hi, mask);
    if constexpr (R::mask) finish_mask(w, *u, half, collect_mask(mask) & exec);
    if constexpr (!R::mask || R::both) finish(w, *u, half, exec, lo, hi);
  }
  return u + 1;
}

/// All operands 32 bits or lane masks, no modifiers. With all lanes on the result goes straight to its register.
template <class F>
const Uop* vector_fast(Wave& w, const Uop* u) {
  using R = Result<typename Signature<F>::Return>;
  alignas(32) uint32_t tmp[kLanes], mask[kLanes];
  for (unsigned half = 0; half < w.halves; ++half) {
    std::array<Source, 3> o{};
    const uint32_t* base = w.v + half * kHalf;
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((o[I].lo = base + u->src[I]), ...);
      if (u->scalars) {
        (
            [&] {
              if (!(u->scalars >> I & 1)) return;
              uint32_t* buffer = w.scratch[I][0].data();
              o[I].lo = buffer;
              if constexpr (std::is_same_v<Arg<F, I>, bool>)
                expand_mask(buffer, w.s[u->src[I] + half]);
              else if (half == 0)
                broadcast(buffer, uint32_t(scalar(w, *u, I, false)));
            }(),
            ...);
      }
    }
    (std::make_index_sequence<kArity<F>>{});
    const uint32_t exec = w.exec(half);
    uint32_t* dst = w.v + half * kHalf + u->dst;
    if constexpr (R::mask && !R::both) {
      lanes<F>(w, *u, half, o, nullptr, nullptr, mask);
      finish_mask(w, *u, half, collect_mask(mask) & exec);
    } else if (exec == kFull) {
      lanes<F>(w, *u, half, o, dst, nullptr, mask);
      if constexpr (R::mask) finish_mask(w, *u, half, collect_mask(mask));
    } else {
      lanes<F>(w, *u, half, o, tmp, nullptr, mask);
      blend(dst, tmp, exec);
      if constexpr (R::mask) finish_mask(w, *u, half, collect_mask(mask) & exec);
    }
  }
  return u + 1;
}

template <class T>
constexpr bool kIs32 = (sizeof(T) == 4 && !std::is_same_v<T, Half>) || std::is_same_v<T, bool>;

/// A row from a lane function.
template <class F>
constexpr OpRow vector_row(Format format, int16_t opcode, const char* name, F, uint32_t flags = 0) {
  using S = Signature<F>;
  using R = typename S::Return;
  OpRow row{.name = name, .opcode = {opcode}, .format = format, .flags = flags};
  row.sources = kArity<F>;
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((row.src[I] = TyOf<Arg<F, I>>::ty), ...);
    constexpr bool all32 = (kIs32<Arg<F, I>> && ...) && kIs32<typename Result<R>::value> && !S::kContext;
    if constexpr (all32) row.fast = &vector_fast<F>;
  }
  (std::make_index_sequence<kArity<F>>{});
  if constexpr (Result<R>::both) row.flags |= kCarryOut;
  row.dst = Result<R>::mask && !Result<R>::both ? Ty::kMask : TyOf<typename Result<R>::value>::ty;
  if constexpr (kArity < F >> 0)
    if constexpr (std::is_same_v<Arg<F, kArity<F> - 1>, bool>) row.flags |= kCarryIn;
  row.run = &vector_any<F>;
  return row;
}
/// Adds the form with CLAMP set of an integer operation.
template <class F>
constexpr OpRow with_clamp(OpRow row, F) {
  row.clamp = &vector_any<F>;
  return row;
}

/// A packed 16-bit operation on both halves of 32-bit registers.
template <class F>
const Uop* packed(Wave& w, const Uop* u) {
  constexpr size_t n = kArity<F>;
  constexpr bool fp = std::is_same_v<Arg<F, 0>, Half>;
  alignas(32) uint32_t in[3][kLanes], part[2][kLanes];
  for (unsigned half = 0; half < w.halves; ++half) {
    for (unsigned high = 0; high < 2; ++high) {
      std::array<Source, 3> o{};
      for (unsigned i = 0; i < n; ++i) {
        prepare_packed(w, *u, half, i, high != 0, fp, in[i]);
        o[i].lo = in[i];
      }
      lanes<F>(w, *u, half, o, part[high], nullptr, nullptr);
    }
    for (unsigned i = 0; i < kLanes; ++i) part[0][i] = (part[0][i] & 0xffff) | part[1][i] << 16;
    finish(w, *u, half, w.exec(half), part[0], nullptr);
  }
  return u + 1;
}
template <class F>
constexpr OpRow packed_row(int16_t opcode, const char* name, F, uint32_t flags = 0, Handler clamp = nullptr) {
  OpRow row{.name = name, .opcode = {opcode}, .format = Format::kVop3p, .dst = Ty::kB32, .flags = flags};
  row.sources = kArity<F>;
  // Inline constants of f16 operations are halves in the low 16 bits; integers are 32 bits wide.
  for (unsigned i = 0; i < kArity<F>; ++i) row.src[i] = std::is_same_v<Arg<F, 0>, Half> ? Ty::kF16 : Ty::kB32;
  row.run = &packed<F>;
  row.clamp = clamp;
  return row;
}

}  // namespace baregpu::mock::isa
