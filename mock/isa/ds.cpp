// Local data share. Addresses out of range read 0 and store nothing. The waves of a group take turns on one thread, so LDS
// atomics are plain operations. Opcode numbers: RDNA3 ISA chapter 16, checked with LLVM's assembler.
#include <cmath>

#include "mock/isa/lanes.hpp"
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

struct Lds {
  std::byte* base;
  u32 size;
  explicit Lds(const Wave& w) : base(reinterpret_cast<std::byte*>(w.group->lds.data())), size(w.group->lds_bytes) {}
  bool in(u64 at, unsigned bytes) const { return at + bytes <= size; }
};
const u32* addresses(const Wave& w, const Uop* u, unsigned half) { return w.v + half * kHalf + u->src[0]; }
u32 offset16(const Uop* u) { return u32(u->imm) & 0xffff; }

/// The 8 lanes from `first` on, all active: neighbours and equal addresses are what matrix kernels have, and decide their speed.
/// @returns false if they are neither (or out of range).
template <unsigned N> [[gnu::always_inline]] inline bool load_chunk(const Lds& lds, const u32* address, u32 offset, u32* to, unsigned first) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(address + first));
  const __m256i a0 = _mm256_set1_epi32(int(address[first]));
  const u64 at = u64{address[first]} + offset;
  if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(a, a0)) == -1) {
    if (!lds.in(at, 4 * N)) return false;
    for (unsigned d = 0; d < N; ++d) {
      u32 value;
      std::memcpy(&value, lds.base + at + 4 * d, 4);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + d * kLanes + first), _mm256_set1_epi32(int(value)));
    }
    return true;
  }
  if constexpr (N == 1) {
    const __m256i steps = _mm256_add_epi32(a0, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(a, steps)) == -1 && lds.in(at, 32)) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + first), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lds.base + at)));
      return true;
    }
  }
  return false;
}

/// One value a lane into the registers from `to` on.
template <Load L, unsigned N> void load_at(Wave& w, unsigned half, const u32* address, u32 offset, u32* to) {
  constexpr unsigned bytes = load_bytes(L, N);
  const Lds lds(w);
  const u32 exec = w.exec(half);
  static constexpr std::byte kZero[16]{};
  for (unsigned first = 0; first < kLanes; first += 8) {
    const u32 active = exec >> first & 0xff;
    if constexpr (L == Load::kDwords)
      if (active == 0xff && load_chunk<N>(lds, address, offset, to, first)) continue;
    for (unsigned i = first; i < first + 8; ++i) {
      if (!(exec >> i & 1)) continue;
      const u64 at = u64{address[i]} + offset;
      land<L, N>(to, i, lds.in(at, bytes) ? lds.base + at : kZero);
    }
  }
}

/// Loads must not destroy the address register before the last use of it: through a buffer where they overlap.
template <Load L, unsigned N> const Uop* load(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    u32 copy[kLanes];
    const u32* address = addresses(w, u, half);
    u32* to = w.v + half * kHalf + u->dst;
    if (address >= to && address < to + N * kLanes) address = static_cast<const u32*>(std::memcpy(copy, address, sizeof copy));
    load_at<L, N>(w, half, address, offset16(u), to);
  }
  return u + 1;
}
template <unsigned N, unsigned Stride> const Uop* load2(Wave& w, const Uop* u) {
  const u32 offset0 = (u32(u->imm) & 0xff) * Stride, offset1 = (u32(u->imm) >> 8 & 0xff) * Stride;
  const Lds lds(w);
  for (unsigned half = 0; half < w.halves; ++half) {
    alignas(32) u32 copy[kLanes];
    const u32* address = addresses(w, u, half);
    u32* to = w.v + half * kHalf + u->dst;
    if (address >= to && address < to + 2 * N * kLanes) address = static_cast<const u32*>(std::memcpy(copy, address, sizeof copy));
    if constexpr (N == 1) {
      // Both loads have one pattern: looked at once. Anything unusual takes the general way below.
      unsigned first = 0;
      for (; first < kLanes && w.exec(half) == kFull; first += 8) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(address + first)), a0 = _mm256_set1_epi32(int(address[first]));
        const u64 at0 = u64{address[first]} + offset0, at1 = u64{address[first]} + offset1;
        auto *to0 = reinterpret_cast<__m256i*>(to + first), *to1 = reinterpret_cast<__m256i*>(to + kLanes + first);
        if (!lds.in(std::max(at0, at1), 32)) break;
        if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(a, a0)) == -1) {
          _mm256_storeu_si256(to0, _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(lds.base + at0))));
          _mm256_storeu_si256(to1, _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(lds.base + at1))));
        } else if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(a, _mm256_add_epi32(a0, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)))) == -1) {
          _mm256_storeu_si256(to0, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lds.base + at0)));
          _mm256_storeu_si256(to1, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lds.base + at1)));
        } else {
          break;
        }
      }
      if (first == kLanes) continue;
    }
    load_at<Load::kDwords, N>(w, half, address, offset0, to);
    load_at<Load::kDwords, N>(w, half, address, offset1, to + N * kLanes);
  }
  return u + 1;
}

template <Store S, unsigned N> void store_at(Wave& w, unsigned half, const u32* address, u32 offset, const u32* data) {
  constexpr unsigned bytes = store_bytes(S, N);
  const Lds lds(w);
  const u32 exec = w.exec(half);
  for (unsigned first = 0; first < kLanes; first += 8) {
    if constexpr (S == Store::kDwords && N == 1) {
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(address + first));
      const __m256i steps = _mm256_add_epi32(_mm256_set1_epi32(int(address[first])), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
      const u64 at = u64{address[first]} + offset;
      if ((exec >> first & 0xff) == 0xff && _mm256_movemask_epi8(_mm256_cmpeq_epi32(a, steps)) == -1 && lds.in(at, 32)) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(lds.base + at), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + first)));
        continue;
      }
    }
    for (unsigned i = first; i < first + 8; ++i) {
      if (!(exec >> i & 1)) continue;
      const u64 at = u64{address[i]} + offset;
      if (lds.in(at, bytes)) take<S, N>(data, i, lds.base + at);
    }
  }
}
template <Store S, unsigned N> const Uop* store(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) store_at<S, N>(w, half, addresses(w, u, half), offset16(u), w.v + half * kHalf + u->src[1]);
  return u + 1;
}
template <unsigned N, unsigned Stride> const Uop* store2(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    const u32* base = w.v + half * kHalf;
    store_at<Store::kDwords, N>(w, half, base + u->src[0], (u32(u->imm) & 0xff) * Stride, base + u->src[1]);
    store_at<Store::kDwords, N>(w, half, base + u->src[0], (u32(u->imm) >> 8 & 0xff) * Stride, base + u->src[2]);
  }
  return u + 1;
}

/// f(old, data0, data1) -> new value. `Return`: the old value goes to the destination.
template <class T, class F, bool Return> const Uop* atomic(Wave& w, const Uop* u) {
  const Lds lds(w);
  for (unsigned half = 0; half < w.halves; ++half) {
    u32* base = w.v + half * kHalf;
    auto get = [&](unsigned operand, unsigned i) {
      if (u->src[operand] == kNoOperand) return T{};
      if constexpr (sizeof(T) == 8) return std::bit_cast<T>(u64{base[u->src[operand] + i]} | u64{base[u->src[operand] + kLanes + i]} << 32);
      else return std::bit_cast<T>(base[u->src[operand] + i]);
    };
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(w.exec(half) >> i & 1)) continue;
      const u64 at = u64{base[u->src[0] + i]} + offset16(u);
      T old{};
      if (lds.in(at, sizeof(T))) {
        std::memcpy(&old, lds.base + at, sizeof old);
        const T next = F{}(old, get(1, i), get(2, i));
        std::memcpy(lds.base + at, &next, sizeof next);
      }
      if constexpr (Return) put(base + u->dst, base + u->dst + kLanes, i, old);
    }
  }
  return u + 1;
}

/// Lane i takes the value that lane address[i] / 4 has (bpermute), or sends its own there (permute).
template <bool Backward> const Uop* permute(Wave& w, const Uop* u) {
  for (unsigned half = 0; half < w.halves; ++half) {
    u32* base = w.v + half * kHalf;
    u32 out[kLanes] = {};
    const u32 exec = w.exec(half);
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(exec >> i & 1)) continue;
      // wave64 permutes inside each half of 32 lanes (RDNA3 ISA, DS_PERMUTE_B32).
      const unsigned other = (base[u->src[0] + i] + offset16(u)) / 4 % kLanes;
      if constexpr (Backward) out[i] = exec >> other & 1 ? base[u->src[1] + other] : 0;
      else out[other] = base[u->src[1] + i];
    }
    for (unsigned i = 0; i < kLanes; ++i)
      if (exec >> i & 1) base[u->dst + i] = out[i];
  }
  return u + 1;
}
const Uop* swizzle(Wave& w, const Uop* u) {
  const u32 control = offset16(u);
  for (unsigned half = 0; half < w.halves; ++half) {
    u32* base = w.v + half * kHalf;
    u32 out[kLanes];
    const u32 exec = w.exec(half);
    for (unsigned i = 0; i < kLanes; ++i) {
      unsigned from;
      if (control >= 0xe000) {
        from = i;  // FFT mode is for graphics; identity keeps it defined
      } else if (control >= 0xc000) {
        const unsigned amount = control >> 5 & 31, mask = control & 31;
        from = (i & mask) | ((control >> 10 & 1 ? i - amount : i + amount) & ~mask & 31);
      } else if (control & 0x8000) {
        from = (i & ~3u) | (control >> (2 * (i & 3)) & 3);
      } else {
        from = ((i & (control & 31)) | (control >> 5 & 31)) ^ (control >> 10 & 31);
      }
      out[i] = exec >> from & 1 ? base[u->src[0] + from] : 0;
    }
    for (unsigned i = 0; i < kLanes; ++i)
      if (exec >> i & 1) base[u->dst + i] = out[i];
  }
  return u + 1;
}

constexpr OpRow row(const char* name, int16_t op, Handler run, u32 flags = 0, uint8_t data = 0, uint8_t dst = 0) {
  constexpr Ty kTypes[] = {Ty::kNone, Ty::kB32, Ty::kI64, Ty::kB96, Ty::kB128};
  return {.name = name, .opcode = {op}, .format = Format::kDs, .dst = kTypes[dst], .src = {Ty::kB32, kTypes[data], kTypes[flags & kTwoData ? data : 0]}, .flags = flags, .run = run};
}
#define ATOMIC(text32, text64, op, type32, type64, ...) \
  row("ds_" text32, op, &atomic<type32, decltype([]([[maybe_unused]] type32 m, type32 d, type32) { return type32(__VA_ARGS__); }), false>, kStore, 1), \
  row("ds_" text64, op + 0x40, &atomic<type64, decltype([]([[maybe_unused]] type64 m, type64 d, type64) { return type64(__VA_ARGS__); }), false>, kStore, 2)
#define ATOMIC_RTN(text32, text64, op, type32, type64, ...) \
  row("ds_" text32, op, &atomic<type32, decltype([]([[maybe_unused]] type32 m, type32 d, type32) { return type32(__VA_ARGS__); }), true>, 0, 1, 1), \
  row("ds_" text64, op + 0x40, &atomic<type64, decltype([]([[maybe_unused]] type64 m, type64 d, type64) { return type64(__VA_ARGS__); }), true>, 0, 2, 2)

struct CmpStore {
  template <class T> T operator()(T m, T value, T compare) const { return m == compare ? value : m; }
};
struct Mskor {
  template <class T> T operator()(T m, T mask, T value) const { return (m & ~mask) | value; }
};

const OpRow kRows[] = {
    ATOMIC("add_u32", "add_u64", 0x00, u32, u64, m + d), ATOMIC("sub_u32", "sub_u64", 0x01, u32, u64, m - d), ATOMIC("rsub_u32", "rsub_u64", 0x02, u32, u64, d - m),
    ATOMIC("inc_u32", "inc_u64", 0x03, u32, u64, m >= d ? 0 : m + 1), ATOMIC("dec_u32", "dec_u64", 0x04, u32, u64, m == 0 || m > d ? d : m - 1), ATOMIC("min_i32", "min_i64", 0x05, int32_t, int64_t, m < d ? m : d),
    ATOMIC("max_i32", "max_i64", 0x06, int32_t, int64_t, m > d ? m : d), ATOMIC("min_u32", "min_u64", 0x07, u32, u64, m < d ? m : d), ATOMIC("max_u32", "max_u64", 0x08, u32, u64, m > d ? m : d),
    ATOMIC("and_b32", "and_b64", 0x09, u32, u64, m & d), ATOMIC("or_b32", "or_b64", 0x0a, u32, u64, m | d), ATOMIC("xor_b32", "xor_b64", 0x0b, u32, u64, m ^ d),
    row("ds_mskor_b32", 0x0c, &atomic<u32, Mskor, false>, kStore | kTwoData, 1), row("ds_store_b32", 0x0d, &store<Store::kDwords, 1>, kStore, 1),
    row("ds_store_2addr_b32", 0x0e, &store2<1, 4>, kStore | kTwoAddr | kTwoData, 1), row("ds_store_2addr_stride64_b32", 0x0f, &store2<1, 256>, kStore | kTwoAddr | kTwoData, 1),
    row("ds_cmpstore_b32", 0x10, &atomic<u32, CmpStore, false>, kStore | kTwoData, 1), row("ds_cmpstore_f32", 0x11, &atomic<float, CmpStore, false>, kStore | kTwoData, 1),
    ATOMIC("min_f32", "min_f64", 0x12, float, double, fmin_gpu(m, d)), ATOMIC("max_f32", "max_f64", 0x13, float, double, fmax_gpu(m, d)), row("ds_nop", 0x14, nullptr, kDrop | kNoAddr | kStore),
    row("ds_add_f32", 0x15, &atomic<float, decltype([](float m, float d, float) { return m + d; }), false>, kStore, 1), row("ds_store_b8", 0x1e, &store<Store::kByte, 1>, kStore, 1),
    row("ds_store_b16", 0x1f, &store<Store::kHalf, 1>, kStore, 1),
    ATOMIC_RTN("add_rtn_u32", "add_rtn_u64", 0x20, u32, u64, m + d), ATOMIC_RTN("sub_rtn_u32", "sub_rtn_u64", 0x21, u32, u64, m - d), ATOMIC_RTN("rsub_rtn_u32", "rsub_rtn_u64", 0x22, u32, u64, d - m),
    ATOMIC_RTN("inc_rtn_u32", "inc_rtn_u64", 0x23, u32, u64, m >= d ? 0 : m + 1), ATOMIC_RTN("dec_rtn_u32", "dec_rtn_u64", 0x24, u32, u64, m == 0 || m > d ? d : m - 1),
    ATOMIC_RTN("min_rtn_i32", "min_rtn_i64", 0x25, int32_t, int64_t, m < d ? m : d), ATOMIC_RTN("max_rtn_i32", "max_rtn_i64", 0x26, int32_t, int64_t, m > d ? m : d),
    ATOMIC_RTN("min_rtn_u32", "min_rtn_u64", 0x27, u32, u64, m < d ? m : d), ATOMIC_RTN("max_rtn_u32", "max_rtn_u64", 0x28, u32, u64, m > d ? m : d), ATOMIC_RTN("and_rtn_b32", "and_rtn_b64", 0x29, u32, u64, m & d),
    ATOMIC_RTN("or_rtn_b32", "or_rtn_b64", 0x2a, u32, u64, m | d), ATOMIC_RTN("xor_rtn_b32", "xor_rtn_b64", 0x2b, u32, u64, m ^ d), row("ds_mskor_rtn_b32", 0x2c, &atomic<u32, Mskor, true>, kTwoData, 1, 1),
    ATOMIC_RTN("storexchg_rtn_b32", "storexchg_rtn_b64", 0x2d, u32, u64, d), row("ds_cmpstore_rtn_b32", 0x30, &atomic<u32, CmpStore, true>, kTwoData, 1, 1),
    row("ds_cmpstore_rtn_f32", 0x31, &atomic<float, CmpStore, true>, kTwoData, 1, 1), ATOMIC_RTN("min_rtn_f32", "min_rtn_f64", 0x32, float, double, fmin_gpu(m, d)),
    ATOMIC_RTN("max_rtn_f32", "max_rtn_f64", 0x33, float, double, fmax_gpu(m, d)), row("ds_swizzle_b32", 0x35, &swizzle, 0, 0, 1), row("ds_load_b32", 0x36, &load<Load::kDwords, 1>, 0, 0, 1),
    row("ds_load_2addr_b32", 0x37, &load2<1, 4>, kTwoAddr, 0, 2), row("ds_load_2addr_stride64_b32", 0x38, &load2<1, 256>, kTwoAddr, 0, 2), row("ds_load_i8", 0x39, &load<Load::kI8, 1>, 0, 0, 1),
    row("ds_load_u8", 0x3a, &load<Load::kU8, 1>, 0, 0, 1), row("ds_load_i16", 0x3b, &load<Load::kI16, 1>, 0, 0, 1), row("ds_load_u16", 0x3c, &load<Load::kU16, 1>, 0, 0, 1),
    row("ds_mskor_b64", 0x4c, &atomic<u64, Mskor, false>, kStore | kTwoData, 2), row("ds_store_b64", 0x4d, &store<Store::kDwords, 2>, kStore, 2),
    row("ds_store_2addr_b64", 0x4e, &store2<2, 8>, kStore | kTwoAddr | kTwoData, 2), row("ds_store_2addr_stride64_b64", 0x4f, &store2<2, 512>, kStore | kTwoAddr | kTwoData, 2),
    row("ds_cmpstore_b64", 0x50, &atomic<u64, CmpStore, false>, kStore | kTwoData, 2), row("ds_cmpstore_f64", 0x51, &atomic<double, CmpStore, false>, kStore | kTwoData, 2),
    row("ds_mskor_rtn_b64", 0x6c, &atomic<u64, Mskor, true>, kTwoData, 2, 2), row("ds_cmpstore_rtn_b64", 0x70, &atomic<u64, CmpStore, true>, kTwoData, 2, 2),
    row("ds_cmpstore_rtn_f64", 0x71, &atomic<double, CmpStore, true>, kTwoData, 2, 2), row("ds_load_b64", 0x76, &load<Load::kDwords, 2>, 0, 0, 2), row("ds_load_2addr_b64", 0x77, &load2<2, 8>, kTwoAddr, 0, 4),
    row("ds_load_2addr_stride64_b64", 0x78, &load2<2, 512>, kTwoAddr, 0, 4), row("ds_add_rtn_f32", 0x79, &atomic<float, decltype([](float m, float d, float) { return m + d; }), true>, 0, 1, 1),
    row("ds_store_b8_d16_hi", 0xa0, &store<Store::kByteHigh, 1>, kStore, 1), row("ds_store_b16_d16_hi", 0xa1, &store<Store::kHalfHigh, 1>, kStore, 1), row("ds_load_u8_d16", 0xa2, &load<Load::kD16LowU8, 1>, 0, 0, 1),
    row("ds_load_u8_d16_hi", 0xa3, &load<Load::kD16HighU8, 1>, 0, 0, 1), row("ds_load_i8_d16", 0xa4, &load<Load::kD16LowI8, 1>, 0, 0, 1), row("ds_load_i8_d16_hi", 0xa5, &load<Load::kD16HighI8, 1>, 0, 0, 1),
    row("ds_load_u16_d16", 0xa6, &load<Load::kD16Low, 1>, 0, 0, 1), row("ds_load_u16_d16_hi", 0xa7, &load<Load::kD16High, 1>, 0, 0, 1), row("ds_permute_b32", 0xb2, &permute<false>, 0, 1, 1),
    row("ds_bpermute_b32", 0xb3, &permute<true>, 0, 1, 1), row("ds_store_b96", 0xde, &store<Store::kDwords, 3>, kStore, 3), row("ds_store_b128", 0xdf, &store<Store::kDwords, 4>, kStore, 4),
    row("ds_load_b96", 0xfe, &load<Load::kDwords, 3>, 0, 0, 3), row("ds_load_b128", 0xff, &load<Load::kDwords, 4>, 0, 0, 4),
};

}  // namespace

std::span<const OpRow> ds_rows() { return kRows; }

}  // namespace baregpu::mock::isa
