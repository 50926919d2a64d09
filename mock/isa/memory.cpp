// Memory instructions through the page tables: SMEM, FLAT, GLOBAL, SCRATCH. Opcode numbers: RDNA3 ISA chapter 16, checked with
// LLVM's assembler. A wave looks an address up once where its lanes are neighbours or equal, else lane by lane.
#include <atomic>

#include "mock/isa/lanes.hpp"
#include "mock/isa/vmath.hpp"

namespace baregpu::mock::isa {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// Addresses of one half's lanes.
struct Addresses {
  const u32* low = nullptr;   ///< varying part, 32 bits
  const u32* high = nullptr;  ///< upper bits a lane, or nullptr
  u64 base = 0;               ///< added to every lane
  u64 at(unsigned lane) const { return base + (u64{low[lane]} | (high ? u64{high[lane]} << 32 : 0)); }
};

Addresses global_addresses(const Wave& w, const Uop* u, unsigned half) {
  const u32* base = w.v + half * kHalf;
  if (u->mode == kSgprPlusVgpr) return {base + u->src[0], nullptr, w.pair(unsigned(u->src[1])) + u64(int64_t(u->imm))};
  return {base + u->src[0], base + u->src[0] + kLanes, u64(int64_t(u->imm))};
}

/// Raises the first lane's fault with the mask of all lanes that want the same page.
const Uop* fault(Wave& w, const Uop* u, FaultKind why, Access access, u64 address, unsigned lane) { return raise(w, u, why, access, address, u64{1} << lane); }

/// Copies an access that may cross into another translation.
bool copy_split(Wave& w, u64 va, std::byte* local, unsigned bytes, Access access, FaultKind& why, u64& where) {
  for (unsigned done = 0; done < bytes; ++done) {
    where = va + done;
    std::byte* p = w.tlb->find(va + done, 1, access, why);
    if (!p) return false;
    if (access == Access::kRead) local[done] = *p;
    else *p = local[done];
  }
  return true;
}

/// Where a flat address leads.
enum class Space { kGlobal, kShared, kPrivate };
Space space_of(const Wave& w, u64 va) {
  const u32 top = u32(va >> 32);
  if (top == w.s[kSharedBase + 1]) return Space::kShared;
  if (top == w.s[kPrivateBase + 1]) return Space::kPrivate;
  return Space::kGlobal;
}

/// Backing address of dword-interleaved scratch: dword d of lane l is at (d * lanes + l) * 4.
u64 scratch_va(const Wave& w, u32 offset, unsigned lane) { return w.flat_scratch + (u64{offset / 4} * (kLanes * w.halves) + lane) * 4 + offset % 4; }

/// Reads or writes `bytes` of a lane's scratch. Outside its size the access faults at the backing address it would have.
bool scratch_access(Wave& w, u32 offset, unsigned lane, std::byte* local, unsigned bytes, Access access, FaultKind& why, u64& where) {
  for (unsigned done = 0; done < bytes;) {
    const u32 o = offset + done;
    const unsigned n = std::min(bytes - done, 4 - o % 4);
    where = scratch_va(w, o, lane);
    std::byte* p = o < w.scratch_bytes ? w.tlb->find(where, n, access, why) : (why = FaultKind::kPageFault, nullptr);
    if (!p) return false;
    if (access == Access::kRead) std::memcpy(local + done, p, n);
    else std::memcpy(p, local + done, n);
    done += n;
  }
  return true;
}

bool lds_access(Wave& w, u32 offset, std::byte* local, unsigned bytes, Access access) {
  const bool in = u64{offset} + bytes <= w.group->lds_bytes;
  std::byte* p = reinterpret_cast<std::byte*>(w.group->lds.data()) + offset;
  if (access == Access::kRead) in ? (void)std::memcpy(local, p, bytes) : (void)std::memset(local, 0, bytes);
  else if (in) std::memcpy(p, local, bytes);
  return true;
}

/// Any lane, any space, through a copy.
bool slow_access(Wave& w, const Uop* u, u64 va, unsigned lane, std::byte* local, unsigned bytes, Access access, FaultKind& why, u64& where) {
  if (u->mode == kFlatVgpr64) {
    switch (space_of(w, va)) {
      case Space::kShared: return lds_access(w, u32(va), local, bytes, access);
      case Space::kPrivate: return scratch_access(w, u32(va), lane, local, bytes, access, why, where);
      case Space::kGlobal: break;
    }
  }
  return copy_split(w, va, local, bytes, access, why, where);
}

template <Load L, unsigned N> const Uop* load(Wave& w, const Uop* u) {
  constexpr unsigned bytes = load_bytes(L, N);
  for (unsigned half = 0; half < w.halves; ++half) {
    const u32 exec = w.exec(half);
    if (!exec) continue;
    alignas(32) u32 copy[2 * kLanes];
    Addresses a = global_addresses(w, u, half);
    u32* to = w.v + half * kHalf + u->dst;
    if (a.low + (a.high ? 2 : 1) * kLanes > to && a.low < to + N * kLanes) {  // the destination overlaps the address
      std::memcpy(copy, a.low, (a.high ? 2 : 1) * sizeof(u32) * kLanes);
      a.low = copy;
      if (a.high) a.high = copy + kLanes;
    }
    FaultKind why{};
    if (exec == kFull && u->mode != kFlatVgpr64 && (!a.high || all_equal(a.high))) {
      if (in_steps(a.low, bytes) && a.low[0] <= ~u32{0} - bytes * kLanes) {
        if (const std::byte* p = w.tlb->find(a.at(0), u64{bytes} * kLanes, Access::kRead, why)) {
          if constexpr (L == Load::kDwords && N == 1) std::memcpy(to, p, 4 * kLanes);
          else for (unsigned i = 0; i < kLanes; ++i) land<L, N>(to, i, p + i * bytes);
          continue;
        }
      } else if (all_equal(a.low)) {
        if (const std::byte* p = w.tlb->find(a.at(0), bytes, Access::kRead, why)) {
          for (unsigned i = 0; i < kLanes; ++i) land<L, N>(to, i, p);
          continue;
        }
      }
    }
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(exec >> i & 1)) continue;
      const u64 va = a.at(i);
      if (u->mode != kFlatVgpr64 || space_of(w, va) == Space::kGlobal)
        if (const std::byte* p = w.tlb->find(va, bytes, Access::kRead, why)) {
          land<L, N>(to, i, p);
          continue;
        }
      std::byte local[16];
      u64 where = va;
      if (!slow_access(w, u, va, half * kLanes + i, local, bytes, Access::kRead, why, where)) return fault(w, u, why, Access::kRead, where, half * kLanes + i);
      land<L, N>(to, i, local);
    }
  }
  return u + 1;
}

template <Store S, unsigned N> const Uop* store(Wave& w, const Uop* u) {
  constexpr unsigned bytes = store_bytes(S, N);
  for (unsigned half = 0; half < w.halves; ++half) {
    const u32 exec = w.exec(half);
    if (!exec) continue;
    const Addresses a = global_addresses(w, u, half);
    const u32* data = w.v + half * kHalf + u->src[2];
    FaultKind why{};
    if (exec == kFull && u->mode != kFlatVgpr64 && (!a.high || all_equal(a.high)) && in_steps(a.low, bytes) && a.low[0] <= ~u32{0} - bytes * kLanes)
      if (std::byte* p = w.tlb->find(a.at(0), u64{bytes} * kLanes, Access::kWrite, why)) {
        if constexpr (S == Store::kDwords && N == 1) std::memcpy(p, data, 4 * kLanes);
        else for (unsigned i = 0; i < kLanes; ++i) take<S, N>(data, i, p + i * bytes);
        continue;
      }
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(exec >> i & 1)) continue;
      const u64 va = a.at(i);
      if (u->mode != kFlatVgpr64 || space_of(w, va) == Space::kGlobal)
        if (std::byte* p = w.tlb->find(va, bytes, Access::kWrite, why)) {
          take<S, N>(data, i, p);
          continue;
        }
      std::byte local[16];
      take<S, N>(data, i, local);
      u64 where = va;
      if (!slow_access(w, u, va, half * kLanes + i, local, bytes, Access::kWrite, why, where)) return fault(w, u, why, Access::kWrite, where, half * kLanes + i);
    }
  }
  return u + 1;
}

/// Byte offset of a lane in its scratch: VGPR and SGPR parts, each optional, and the instruction's offset.
u32 scratch_offset(const Wave& w, const Uop* u, unsigned half, unsigned lane) {
  u32 o = u32(u->imm);
  if (u->src[0] != kNoOperand) o += w.v[half * kHalf + u->src[0] + lane];
  if (u->src[1] != kNoOperand) o += w.s[u->src[1]];
  return o;
}
template <Load L, unsigned N> const Uop* scratch_load(Wave& w, const Uop* u) {
  constexpr unsigned bytes = load_bytes(L, N);
  for (unsigned half = 0; half < w.halves; ++half) {
    u32* to = w.v + half * kHalf + u->dst;
    const u32 exec = w.exec(half);
    FaultKind why{};
    if (exec == kFull && u->src[0] == kNoOperand && L == Load::kDwords && w.halves == 1) {
      // One offset for all lanes: each dword is a row of 32 neighbours.
      const u32 o = scratch_offset(w, u, half, 0);
      if (o % 4 == 0 && u64{o} + bytes <= w.scratch_bytes)
        if (const std::byte* p = w.tlb->find(scratch_va(w, o, 0), u64{bytes} * kLanes, Access::kRead, why)) {
          std::memcpy(to, p, bytes * kLanes);
          continue;
        }
    }
    u32 offsets[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) offsets[i] = scratch_offset(w, u, half, i);
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(exec >> i & 1)) continue;
      std::byte local[16];
      u64 where = 0;
      if (!scratch_access(w, offsets[i], half * kLanes + i, local, bytes, Access::kRead, why, where)) return fault(w, u, why, Access::kRead, where, half * kLanes + i);
      land<L, N>(to, i, local);
    }
  }
  return u + 1;
}
template <Store S, unsigned N> const Uop* scratch_store(Wave& w, const Uop* u) {
  constexpr unsigned bytes = store_bytes(S, N);
  for (unsigned half = 0; half < w.halves; ++half) {
    const u32* data = w.v + half * kHalf + u->src[2];
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(w.exec(half) >> i & 1)) continue;
      std::byte local[16];
      take<S, N>(data, i, local);
      FaultKind why{};
      u64 where = 0;
      if (!scratch_access(w, scratch_offset(w, u, half, i), half * kLanes + i, local, bytes, Access::kWrite, why, where)) return fault(w, u, why, Access::kWrite, where, half * kLanes + i);
    }
  }
  return u + 1;
}

/// A read-modify-write that other host threads see as one step. Data is in src[2]; CMPSWAP has the comparand behind it.
template <class T, class F> const Uop* atomic(Wave& w, const Uop* u) {
  using U = std::conditional_t<sizeof(T) == 8, u64, u32>;
  for (unsigned half = 0; half < w.halves; ++half) {
    const Addresses a = global_addresses(w, u, half);
    u32* base = w.v + half * kHalf;
    u32 addresses_low[kLanes], addresses_high[kLanes];  // the result may overwrite the address
    std::memcpy(addresses_low, a.low, sizeof addresses_low);
    if (a.high) std::memcpy(addresses_high, a.high, sizeof addresses_high);
    const Addresses b{addresses_low, a.high ? addresses_high : nullptr, a.base};
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(w.exec(half) >> i & 1)) continue;
      const u64 va = b.at(i);
      const unsigned wide = sizeof(T) / 4;
      auto data = [&](unsigned first) {
        const u32* d = base + u->src[2] + first * kLanes;
        if constexpr (sizeof(T) == 8) return std::bit_cast<T>(u64{d[i]} | u64{d[kLanes + i]} << 32);
        else return std::bit_cast<T>(d[i]);
      };
      const T value = data(0), compare = u->row->flags & kTwoData ? data(wide) : T{};
      T old{};
      const Space space = u->mode == kFlatVgpr64 ? space_of(w, va) : Space::kGlobal;
      if (va % sizeof(T)) return fault(w, u, FaultKind::kMemoryViolation, Access::kAtomic, va, half * kLanes + i);
      if (space == Space::kGlobal) {
        FaultKind why{};
        std::byte* p = w.tlb->find(va, sizeof(T), Access::kAtomic, why);
        if (!p) return fault(w, u, why, Access::kAtomic, va, half * kLanes + i);
        std::atomic_ref<U> cell(*reinterpret_cast<U*>(p));
        U seen = cell.load(std::memory_order_relaxed);
        while (!cell.compare_exchange_weak(seen, std::bit_cast<U>(F{}(std::bit_cast<T>(seen), value, compare)), std::memory_order_acq_rel)) {
        }
        old = std::bit_cast<T>(seen);
      } else {
        std::byte local[8];
        FaultKind why{};
        u64 where = va;
        if (!slow_access(w, u, va, half * kLanes + i, local, sizeof(T), Access::kRead, why, where)) return fault(w, u, why, Access::kAtomic, where, half * kLanes + i);
        std::memcpy(&old, local, sizeof old);
        const T next = F{}(old, value, compare);
        std::memcpy(local, &next, sizeof next);
        if (!slow_access(w, u, va, half * kLanes + i, local, sizeof(T), Access::kWrite, why, where)) return fault(w, u, why, Access::kAtomic, where, half * kLanes + i);
      }
      if (u->glc) put(base + u->dst, base + u->dst + kLanes, i, old);
    }
  }
  return u + 1;
}

template <unsigned N> const Uop* s_load(Wave& w, const Uop* u) {
  u64 va = w.pair(unsigned(u->src[0])) + u64(int64_t(u->imm));
  if (u->src[1] != kNoOperand) va += w.s[u->src[1]];
  va &= ~u64{3};  // the low two bits are ignored
  u32 value[N];
  FaultKind why{};
  if (const std::byte* p = w.tlb->find(va, 4 * N, Access::kRead, why)) {
    std::memcpy(value, p, 4 * N);
  } else {
    u64 where = va;
    if (!copy_split(w, va, reinterpret_cast<std::byte*>(value), 4 * N, Access::kRead, why, where)) return raise(w, u, why, Access::kRead, where);
  }
  std::memcpy(&w.s[u->dst], value, 4 * N);
  return u + 1;
}
/// The descriptor's base (48 bits), stride (14 bits) and record count bound the read; outside it reads 0.
template <unsigned N> const Uop* s_buffer_load(Wave& w, const Uop* u) {
  const u32* d = &w.s[u->src[0]];
  const u64 base = u64{d[0]} | u64{d[1] & 0xffff} << 32;
  const u64 stride = d[1] >> 16 & 0x3fff, size = stride ? stride * d[2] : d[2];
  u64 offset = u64(int64_t(u->imm));
  if (u->src[1] != kNoOperand) offset += w.s[u->src[1]];
  offset &= ~u64{3};
  u32 value[N];
  for (unsigned i = 0; i < N; ++i) {
    value[i] = 0;
    if (offset + 4 * i + 4 > size) continue;
    FaultKind why{};
    const std::byte* p = w.tlb->find(base + offset + 4 * i, 4, Access::kRead, why);
    if (!p) return raise(w, u, why, Access::kRead, base + offset + 4 * i);
    std::memcpy(&value[i], p, 4);
  }
  std::memcpy(&w.s[u->dst], value, 4 * N);
  return u + 1;
}

constexpr Ty kTypes[] = {Ty::kNone, Ty::kB32, Ty::kI64, Ty::kB96, Ty::kB128, Ty::kNone, Ty::kNone, Ty::kNone, Ty::kB256};
struct LoadRow { const char* names[3]; int16_t op; Handler any, scratch; uint8_t dwords; };
struct StoreRow { const char* names[3]; int16_t op; Handler any, scratch; uint8_t dwords; };
struct AtomicRow { const char* names[2]; int16_t op; Handler run; uint8_t dwords; bool compare; };
#define NAMES(text) {"flat_" text, "global_" text, "scratch_" text}
#define LD(text, op, kind, n) LoadRow{NAMES("load_" text), op, &load<kind, n>, &scratch_load<kind, n>, n}
#define ST(text, op, kind, n) StoreRow{NAMES("store_" text), op, &store<kind, n>, &scratch_store<kind, n>, n}
constexpr LoadRow kLoads[] = {
    LD("u8", 0x10, Load::kU8, 1), LD("i8", 0x11, Load::kI8, 1), LD("u16", 0x12, Load::kU16, 1), LD("i16", 0x13, Load::kI16, 1), LD("b32", 0x14, Load::kDwords, 1), LD("b64", 0x15, Load::kDwords, 2),
    LD("b96", 0x16, Load::kDwords, 3), LD("b128", 0x17, Load::kDwords, 4), LD("d16_u8", 0x1e, Load::kD16LowU8, 1), LD("d16_i8", 0x1f, Load::kD16LowI8, 1), LD("d16_b16", 0x20, Load::kD16Low, 1),
    LD("d16_hi_u8", 0x21, Load::kD16HighU8, 1), LD("d16_hi_i8", 0x22, Load::kD16HighI8, 1), LD("d16_hi_b16", 0x23, Load::kD16High, 1),
};
constexpr StoreRow kStores[] = {
    ST("b8", 0x18, Store::kByte, 1), ST("b16", 0x19, Store::kHalf, 1), ST("b32", 0x1a, Store::kDwords, 1), ST("b64", 0x1b, Store::kDwords, 2), ST("b96", 0x1c, Store::kDwords, 3),
    ST("b128", 0x1d, Store::kDwords, 4), ST("d16_hi_b8", 0x24, Store::kByteHigh, 1), ST("d16_hi_b16", 0x25, Store::kHalfHigh, 1),
};
#define AT(text, op, type, n, ...) AtomicRow{{"flat_atomic_" text, "global_atomic_" text}, op, &atomic<type, decltype([]([[maybe_unused]] type m, [[maybe_unused]] type d, [[maybe_unused]] type c) { return type(__VA_ARGS__); })>, n, false}
#define ATC(text, op, type, n, ...) AtomicRow{{"flat_atomic_" text, "global_atomic_" text}, op, &atomic<type, decltype([](type m, type d, type c) { return type(__VA_ARGS__); })>, n, true}
constexpr AtomicRow kAtomics[] = {
    AT("swap_b32", 0x33, u32, 1, d), ATC("cmpswap_b32", 0x34, u32, 1, m == c ? d : m), AT("add_u32", 0x35, u32, 1, m + d), AT("sub_u32", 0x36, u32, 1, m - d),
    AT("csub_u32", 0x37, u32, 1, m > d ? m - d : 0), AT("min_i32", 0x38, int32_t, 1, m < d ? m : d), AT("min_u32", 0x39, u32, 1, m < d ? m : d), AT("max_i32", 0x3a, int32_t, 1, m > d ? m : d),
    AT("max_u32", 0x3b, u32, 1, m > d ? m : d), AT("and_b32", 0x3c, u32, 1, m & d), AT("or_b32", 0x3d, u32, 1, m | d), AT("xor_b32", 0x3e, u32, 1, m ^ d), AT("inc_u32", 0x3f, u32, 1, m >= d ? 0 : m + 1),
    AT("dec_u32", 0x40, u32, 1, m == 0 || m > d ? d : m - 1), AT("swap_b64", 0x41, u64, 2, d), ATC("cmpswap_b64", 0x42, u64, 2, m == c ? d : m), AT("add_u64", 0x43, u64, 2, m + d),
    AT("sub_u64", 0x44, u64, 2, m - d), AT("min_i64", 0x45, int64_t, 2, m < d ? m : d), AT("min_u64", 0x46, u64, 2, m < d ? m : d), AT("max_i64", 0x47, int64_t, 2, m > d ? m : d),
    AT("max_u64", 0x48, u64, 2, m > d ? m : d), AT("and_b64", 0x49, u64, 2, m & d), AT("or_b64", 0x4a, u64, 2, m | d), AT("xor_b64", 0x4b, u64, 2, m ^ d), AT("inc_u64", 0x4c, u64, 2, m >= d ? 0 : m + 1),
    AT("dec_u64", 0x4d, u64, 2, m == 0 || m > d ? d : m - 1), ATC("cmpswap_f32", 0x50, float, 1, m == c ? d : m), AT("min_f32", 0x51, float, 1, fmin_gpu(m, d)), AT("max_f32", 0x52, float, 1, fmax_gpu(m, d)),
    AT("add_f32", 0x56, float, 1, m + d),
};

std::vector<OpRow> make_rows() {
  constexpr Format kFormats[] = {Format::kFlat, Format::kGlobal, Format::kScratch};
  std::vector<OpRow> rows;
  for (const LoadRow& l : kLoads)
    for (unsigned i = 0; i < 3; ++i)
      rows.push_back({.name = l.names[i], .opcode = {l.op}, .format = kFormats[i], .dst = kTypes[l.dwords], .flags = kMemory, .run = i == 2 ? l.scratch : l.any});
  for (const StoreRow& s : kStores)
    for (unsigned i = 0; i < 3; ++i)
      rows.push_back({.name = s.names[i], .opcode = {s.op}, .format = kFormats[i], .src = {Ty::kNone, kTypes[s.dwords]}, .flags = kMemory | kStore, .run = i == 2 ? s.scratch : s.any});
  for (const AtomicRow& a : kAtomics)
    for (unsigned i = 0; i < 2; ++i) {
      if (i == 0 && a.op == 0x37) continue;  // FLAT has no CSUB
      rows.push_back({.name = a.names[i], .opcode = {a.op}, .format = kFormats[i], .dst = kTypes[a.dwords], .src = {Ty::kNone, kTypes[a.dwords * (a.compare ? 2 : 1)]}, .flags = kMemory | kAtomic | (a.compare ? kTwoData : 0u), .run = a.run});
    }
  auto smem = [&](const char* name, int16_t op, Handler run, Ty dst, uint32_t flags = kMemory) { rows.push_back({.name = name, .opcode = {op}, .format = Format::kSmem, .dst = dst, .flags = flags, .run = run}); };
  smem("s_load_b32", 0x00, &s_load<1>, Ty::kB32), smem("s_load_b64", 0x01, &s_load<2>, Ty::kI64), smem("s_load_b128", 0x02, &s_load<4>, Ty::kB128);
  smem("s_load_b256", 0x03, &s_load<8>, Ty::kB256), smem("s_load_b512", 0x04, &s_load<16>, Ty::kB512);
  smem("s_buffer_load_b32", 0x08, &s_buffer_load<1>, Ty::kB32), smem("s_buffer_load_b64", 0x09, &s_buffer_load<2>, Ty::kI64), smem("s_buffer_load_b128", 0x0a, &s_buffer_load<4>, Ty::kB128);
  smem("s_buffer_load_b256", 0x0b, &s_buffer_load<8>, Ty::kB256), smem("s_buffer_load_b512", 0x0c, &s_buffer_load<16>, Ty::kB512);
  smem("s_gl1_inv", 0x20, nullptr, Ty::kNone, kDrop), smem("s_dcache_inv", 0x21, nullptr, Ty::kNone, kDrop);
  // buffer_gl0_inv and buffer_gl1_inv of the MUBUF encoding: caches that this executor does not model.
  rows.push_back({.name = "buffer_gl0_inv", .opcode = {0x2b}, .format = Format::kMubuf, .flags = kDrop});
  rows.push_back({.name = "buffer_gl1_inv", .opcode = {0x2c}, .format = Format::kMubuf, .flags = kDrop});
  return rows;
}

}  // namespace

std::span<const OpRow> memory_rows() {
  static const std::vector<OpRow> rows = make_rows();
  return rows;
}

}  // namespace baregpu::mock::isa
