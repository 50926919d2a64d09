#include "mock/isa/valu.hpp"

namespace baregpu::mock::isa {
namespace {

/// Source lane of DPP16 for `i`, or -1 outside its row. Source: RDNA3 ISA, "DPP16".
int dpp16_lane(uint32_t ctrl, int i) {
  const int row = i & ~15, n = i & 15;
  if (ctrl < 0x100) return (i & ~3) | int((ctrl >> (2 * (i & 3))) & 3);
  const int amount = int(ctrl & 15);
  switch (ctrl >> 4) {
    case 0x10: return n + amount < 16 ? i + amount : -1;
    case 0x11: return n - amount >= 0 ? i - amount : -1;
    case 0x12: return row | ((n - amount) & 15);
    case 0x14: return ctrl == 0x140 ? row | (15 - n) : (i & ~7) | (7 - (i & 7));
    case 0x15: return row | amount;
    case 0x16: return row | (n ^ amount);
    default: return -1;
  }
}

uint32_t permute(const Wave& w, const Uop& u, unsigned half, const uint32_t* from, uint32_t* to) {
  const uint32_t exec = w.exec(half);
  uint32_t enabled = exec;
  for (int i = 0; i < int(kLanes); ++i) {
    const int source = u.dpp == 2 ? (i & ~7) | int((u.dpp_ctrl >> (3 * (i & 7))) & 7) : dpp16_lane(u.dpp_ctrl, i);
    const bool valid = source >= 0 && (u.dpp_fi || (exec >> source & 1));
    to[i] = valid ? from[source] : 0;
    // DPP8 reads 0 from inactive lanes; DPP16 does so with bound_ctrl, else it leaves the destination alone.
    if (u.dpp == 1 && ((!valid && !u.dpp_bound) || !(u.dpp_rows >> ((i >> 4) + int(half) * 2) & 1) ||
                       !(u.dpp_banks >> ((i >> 2) & 3) & 1)))
      enabled &= ~(1u << i);
  }
  return enabled;
}

}  // namespace

uint32_t prepare(Wave& w, const Uop& u, unsigned half, std::array<Source, 3>& out) {
  uint32_t exec = w.exec(half);
  const OpRow& row = *u.row;
  const uint32_t* base = w.v + half * kHalf;
  for (unsigned i = 0; i < row.sources; ++i) {
    const Ty ty = row.src[i];
    uint32_t* lo = w.scratch[i][0].data();
    uint32_t* hi = w.scratch[i][1].data();
    if (ty == Ty::kMask) {
      uint32_t mask = u.kind[i] == Kind::kScalar ? w.s[u.src[i] + half] : uint32_t(u.src[i] >> (32 * half));
      expand_mask(lo, mask);
      out[i] = {lo, hi};
      continue;
    }
    const bool wide = dwords(ty) >= 2;
    if (u.kind[i] == Kind::kVector) {
      out[i].lo = base + u.src[i];
      out[i].hi = out[i].lo + kLanes;
    } else {
      out[i] = {lo, hi};
      if (half) continue;  // filled and modified for the first half already
      const uint64_t value = scalar(w, u, i, wide);
      broadcast(lo, uint32_t(value));
      if (wide) broadcast(hi, uint32_t(value >> 32));
    }
    if (i == 0 && u.dpp) {
      exec = permute(w, u, half, out[0].lo, lo);
      out[0].lo = lo;
    }
    const unsigned sel = u.op_sel >> i & 1;
    const bool mods = is_float(ty) || (row.flags & kFloatMods);
    const bool neg = mods && (u.neg >> i & 1), abs = mods && (u.abs >> i & 1);
    if (is_16bit(ty) && sel) {
      for (unsigned k = 0; k < kLanes; ++k) lo[k] = out[i].lo[k] >> 16;
      out[i].lo = lo;
    }
    if (!neg && !abs) continue;
    const uint32_t sign = is_16bit(ty) ? 0x8000u : 0x80000000u;
    const uint32_t keep = abs ? ~sign : kFull, flip = neg ? sign : 0;
    const uint32_t*& top = wide ? out[i].hi : out[i].lo;
    uint32_t* to = wide ? hi : lo;
    for (unsigned k = 0; k < kLanes; ++k) to[k] = (top[k] & keep) ^ flip;
    top = to;
  }
  return exec;
}

void prepare_packed(Wave& w, const Uop& u, unsigned half, unsigned i, bool high, bool fp, uint32_t* out) {
  const uint32_t shift = ((high ? u.op_sel_hi : u.op_sel) >> i & 1) * 16;
  const uint32_t flip = fp && ((high ? u.neg_hi : u.neg) >> i & 1) ? 0x8000 : 0;
  if (u.kind[i] == Kind::kVector) {
    const uint32_t* from = w.v + half * kHalf + u.src[i];
    for (unsigned k = 0; k < kLanes; ++k) out[k] = ((from[k] >> shift) & 0xffff) ^ flip;
  } else {
    broadcast(out, ((uint32_t(scalar(w, u, i, false)) >> shift) & 0xffff) ^ flip);
  }
}

void finish(Wave& w, const Uop& u, unsigned half, uint32_t exec, uint32_t* lo, uint32_t* hi) {
  const Ty ty = u.row->dst;
  uint32_t* dst = w.v + half * kHalf + u.dst;
  if ((u.omod | u.clamp) && is_float(ty)) {
    constexpr float kScale[] = {1.0f, 2.0f, 4.0f, 0.5f};
    for (unsigned k = 0; k < kLanes; ++k) {
      double x = ty == Ty::kF64   ? std::bit_cast<double>(uint64_t{lo[k]} | uint64_t{hi[k]} << 32)
                 : ty == Ty::kF32 ? double(std::bit_cast<float>(lo[k]))
                                  : double(_cvtsh_ss(uint16_t(lo[k])));
      if (u.omod) x *= kScale[u.omod];
      if (u.clamp) x = x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;  // NaN becomes 0: DX10_CLAMP, as HSA kernels set it
      if (ty == Ty::kF64) {
        lo[k] = uint32_t(std::bit_cast<uint64_t>(x));
        hi[k] = uint32_t(std::bit_cast<uint64_t>(x) >> 32);
      } else if (ty == Ty::kF32) {
        lo[k] = std::bit_cast<uint32_t>(float(x));
      } else {
        lo[k] = _cvtss_sh(float(x), _MM_FROUND_CUR_DIRECTION);
      }
    }
  }
  if (is_16bit(ty)) {  // the other half of the register keeps its value (gfx10 and later)
    const bool high = u.op_sel & 8;
    for (unsigned k = 0; k < kLanes; ++k)
      lo[k] = high ? (dst[k] & 0xffff) | lo[k] << 16 : (dst[k] & 0xffff0000) | (lo[k] & 0xffff);
  }
  blend(dst, lo, exec);
  if (dwords(ty) == 2) blend(dst + kLanes, hi, exec);
}

}  // namespace baregpu::mock::isa
