// One instruction a kernel, assembled by LLVM; expected values are written from the ISA document's pseudocode and IEEE 754.
#include <cmath>
#include <fmt/format.h>
#include <random>

#include "harness.hpp"

using namespace baregpu;
using test::Machine;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

/// Inputs of a lane are v0..v5, results v8 and v9; VCC's bit of the lane is `mask`.
struct Out { u32 lo = 0, hi = 0; int mask = -1; };
struct Row {
  const char* text;
  Out (*expect)(const u32* in, unsigned lane);
};

float f(u32 x) { return std::bit_cast<float>(x); }
u32 b(float x) { return std::bit_cast<u32>(x); }
double d(const u32* in) { return std::bit_cast<double>(u64{in[0]} | u64{in[1]} << 32); }
Out w(u64 v) { return {u32(v), u32(v >> 32)}; }
u64 q(const u32* in) { return u64{in[0]} | u64{in[1]} << 32; }
bool nan(u32 x) { return f(x) != f(x); }
Out quiet(float x) { return {b(x)}; }
i32 sat32(double x) { return x != x ? 0 : x >= 2147483648.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : i32(x); }

/// IEEE 754-2008 minNum with -0 < +0.
float min_num(u32 x, u32 y) {
  if (nan(x)) return nan(y) ? NAN : f(y);
  if (nan(y)) return f(x);
  if (f(x) == f(y)) return std::signbit(f(x)) ? f(x) : f(y);
  return f(x) < f(y) ? f(x) : f(y);
}

const Row kRows[] = {
    {"v_lshlrev_b32 v8, v0, v1", [](const u32* i, unsigned) { return Out{i[1] << (i[0] % 32)}; }},
    {"v_ashrrev_i32 v8, v0, v1", [](const u32* i, unsigned) { return Out{u32(i32(i[1]) >> (i[0] % 32))}; }},
    {"v_lshrrev_b64 v[8:9], v0, v[2:3]", [](const u32* i, unsigned) { return w(q(i + 2) >> (i[0] % 64)); }},
    {"v_ashrrev_i64 v[8:9], v0, v[2:3]", [](const u32* i, unsigned) { return w(u64(i64(q(i + 2)) >> (i[0] % 64))); }},
    {"v_bfe_u32 v8, v0, v1, v2", [](const u32* i, unsigned) { return Out{u32(u64{i[0]} >> (i[1] % 32) & ((u64{1} << (i[2] % 32)) - 1))}; }},
    {"v_bfe_i32 v8, v0, 4, 8", [](const u32* i, unsigned) { return Out{u32(i32(i[0] << 20) >> 24)}; }},
    {"v_bfi_b32 v8, v0, v1, v2", [](const u32* i, unsigned) { return Out{(i[0] & i[1]) | (~i[0] & i[2])}; }},
    {"v_alignbit_b32 v8, v0, v1, v2", [](const u32* i, unsigned) { return Out{u32((u64{i[0]} << 32 | i[1]) >> (i[2] % 32))}; }},
    {"v_mul_hi_i32 v8, v0, v1", [](const u32* i, unsigned) { return Out{u32(i64(i32(i[0])) * i32(i[1]) >> 32)}; }},
    {"v_mul_hi_u32 v8, v0, v1", [](const u32* i, unsigned) { return Out{u32(u64{i[0]} * i[1] >> 32)}; }},
    {"v_mul_i32_i24 v8, v0, v1", [](const u32* i, unsigned) { return Out{u32(i64(i32(i[0] << 8) >> 8) * (i32(i[1] << 8) >> 8))}; }},
    {"v_mad_u64_u32 v[8:9], vcc_lo, v0, v1, v[2:3]", [](const u32* i, unsigned) { const u64 p = u64{i[0]} * i[1], r = p + q(i + 2); Out o = w(r); o.mask = r < p; return o; }},
    {"v_add_co_u32 v8, vcc_lo, v0, v1", [](const u32* i, unsigned) { return Out{i[0] + i[1], 0, (u64{i[0]} + i[1]) >> 32 != 0}; }},
    {"v_sub_co_u32 v8, vcc_lo, v0, v1", [](const u32* i, unsigned) { return Out{i[0] - i[1], 0, i[1] > i[0]}; }},
    {"v_add_nc_u32 v8, v0, v1 clamp", [](const u32* i, unsigned) { return Out{u64{i[0]} + i[1] > 0xffffffff ? 0xffffffff : i[0] + i[1]}; }},
    {"v_sub_nc_i32 v8, v0, v1 clamp", [](const u32* i, unsigned) { const i64 r = i64(i32(i[0])) - i32(i[1]); return Out{u32(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : i32(r))}; }},
    {"v_med3_i32 v8, v0, v1, v2", [](const u32* i, unsigned) { i32 v[3] = {i32(i[0]), i32(i[1]), i32(i[2])}; std::sort(v, v + 3); return Out{u32(v[1])}; }},
    {"v_perm_b32 v8, v0, v1, v2", [](const u32* i, unsigned) { u32 r = 0; for (int k = 0; k < 4; ++k) { const u32 s = i[2] >> (8 * k) & 0xff; const u64 x = u64{i[0]} << 32 | i[1]; const u32 byte = s > 12 ? 0xff : s == 12 ? 0 : s >= 8 ? (x >> ((s - 8) * 16 + 15) & 1 ? 0xff : 0) : u32(x >> (8 * s)) & 0xff; r |= byte << (8 * k); } return Out{r}; }},
    {"v_sad_u8 v8, v0, v1, v2", [](const u32* i, unsigned) { u32 r = i[2]; for (int k = 0; k < 32; k += 8) r += u32(std::abs(int(i[0] >> k & 255) - int(i[1] >> k & 255))); return Out{r}; }},
    {"v_bcnt_u32_b32 v8, v0, v1", [](const u32* i, unsigned) { return Out{u32(__builtin_popcount(i[0])) + i[1]}; }},
    {"v_ctz_i32_b32 v8, v0", [](const u32* i, unsigned) { return Out{i[0] ? u32(__builtin_ctz(i[0])) : ~0u}; }},
    {"v_clz_i32_u32 v8, v0", [](const u32* i, unsigned) { return Out{i[0] ? u32(__builtin_clz(i[0])) : ~0u}; }},
    {"v_bfrev_b32 v8, v0", [](const u32* i, unsigned) { u32 r = 0; for (int k = 0; k < 32; ++k) r |= (i[0] >> k & 1) << (31 - k); return Out{r}; }},
    {"v_mbcnt_lo_u32_b32 v8, -1, 0", [](const u32*, unsigned lane) { return Out{lane}; }},
    {"v_cndmask_b32 v8, v0, v1, s8", [](const u32* i, unsigned lane) { return Out{lane % 2 ? i[1] : i[0]}; }},
    {"v_cndmask_b32 v8, -v0, |v1|, s8", [](const u32* i, unsigned lane) { return Out{lane % 2 ? i[1] & 0x7fffffff : i[0] ^ 0x80000000}; }},
    {"v_cvt_i32_f32 v8, v0", [](const u32* i, unsigned) { return Out{u32(sat32(f(i[0])))}; }},
    {"v_cvt_u32_f32 v8, v0", [](const u32* i, unsigned) { const float x = f(i[0]); return Out{x != x || x <= 0 ? 0 : x >= 4294967296.0f ? ~0u : u32(x)}; }},
    {"v_cvt_i32_f64 v8, v[0:1]", [](const u32* i, unsigned) { return Out{u32(sat32(d(i)))}; }},
    {"v_cvt_f32_i32 v8, v0", [](const u32* i, unsigned) { return Out{b(float(i32(i[0])))}; }},
    {"v_cvt_f32_u32 v8, v0", [](const u32* i, unsigned) { return Out{b(float(i[0]))}; }},
    {"v_cvt_f64_u32 v[8:9], v0", [](const u32* i, unsigned) { return w(std::bit_cast<u64>(double(i[0]))); }},
    {"v_cvt_f32_ubyte2 v8, v0", [](const u32* i, unsigned) { return Out{b(float(i[0] >> 16 & 255))}; }},
    {"v_min_f32 v8, v0, v1", [](const u32* i, unsigned) { return quiet(min_num(i[0], i[1])); }},
    {"v_max_f32 v8, v0, v1", [](const u32* i, unsigned) { return quiet(-min_num(i[0] ^ 0x80000000, i[1] ^ 0x80000000)); }},
    {"v_add_f32 v8, -v0, |v1|", [](const u32* i, unsigned) { return quiet(-f(i[0]) + std::fabs(f(i[1]))); }},
    {"v_mul_f32 v8, v0, v1 mul:2", [](const u32* i, unsigned) { return quiet(f(i[0]) * f(i[1]) * 2); }},
    {"v_mul_f32 v8, v0, v1 clamp", [](const u32* i, unsigned) { const float r = f(i[0]) * f(i[1]); return quiet(!(r > 0) ? 0 : r > 1 ? 1 : r); }},
    {"v_fma_f32 v8, v0, v1, v2", [](const u32* i, unsigned) { return quiet(std::fma(f(i[0]), f(i[1]), f(i[2]))); }},
    {"v_fract_f32 v8, v0", [](const u32* i, unsigned) { const float x = f(i[0]); return quiet(std::isinf(x) ? NAN : std::min(x - std::floor(x), 0x1.fffffep-1f)); }},
    {"v_rndne_f32 v8, v0", [](const u32* i, unsigned) { return quiet(std::nearbyint(f(i[0]))); }},
    {"v_rcp_f32 v8, v0", [](const u32* i, unsigned) { return quiet(1.0f / f(i[0])); }},
    {"v_ldexp_f32 v8, v0, 5", [](const u32* i, unsigned) { return quiet(std::ldexp(f(i[0]), 5)); }},
    {"v_frexp_exp_i32_f32 v8, v0", [](const u32* i, unsigned) { int e = 0; if (std::isfinite(f(i[0])) && f(i[0]) != 0) (void)std::frexp(f(i[0]), &e); return Out{u32(e)}; }},
    {"v_frexp_mant_f32 v8, v0", [](const u32* i, unsigned) { int e; return quiet(std::isfinite(f(i[0])) ? std::frexp(f(i[0]), &e) : f(i[0])); }},
    {"v_add_f64 v[8:9], v[0:1], -v[2:3]", [](const u32* i, unsigned) { return w(std::bit_cast<u64>(d(i) - d(i + 2))); }},
    {"v_fma_f64 v[8:9], v[0:1], v[2:3], v[4:5]", [](const u32* i, unsigned) { return w(std::bit_cast<u64>(std::fma(d(i), d(i + 2), d(i + 4)))); }},
    {"v_cmp_lt_f32 vcc_lo, v0, v1", [](const u32* i, unsigned) { return Out{0, 0, f(i[0]) < f(i[1])}; }},
    {"v_cmp_nlt_f32 vcc_lo, v0, v1", [](const u32* i, unsigned) { return Out{0, 0, !(f(i[0]) < f(i[1]))}; }},
    {"v_cmp_u_f32 vcc_lo, v0, v1", [](const u32* i, unsigned) { return Out{0, 0, nan(i[0]) || nan(i[1])}; }},
    {"v_cmp_gt_i64 vcc_lo, v[0:1], v[2:3]", [](const u32* i, unsigned) { return Out{0, 0, i64(q(i)) > i64(q(i + 2))}; }},
    {"v_cmp_le_u16 vcc_lo, v0.l, v1.h", [](const u32* i, unsigned) { return Out{0, 0, uint16_t(i[0]) <= uint16_t(i[1] >> 16)}; }},
    {"v_cmp_class_f32 vcc_lo, v0, 0x204", [](const u32* i, unsigned) { return Out{0, 0, std::isinf(f(i[0]))}; }},
    {"v_cmp_class_f32 vcc_lo, v0, 0x90", [](const u32* i, unsigned) { return Out{0, 0, std::fpclassify(f(i[0])) == FP_SUBNORMAL}; }},
    {"v_div_fixup_f32 v8, v0, v1, v2", [](const u32* i, unsigned) {
       const float qt = f(i[0]), den = f(i[1]), num = f(i[2]), sign = std::signbit(den) != std::signbit(num) ? -1.0f : 1.0f;
       if (num != num || den != den) return quiet(NAN);
       if ((den == 0 && num == 0) || (std::isinf(den) && std::isinf(num))) return quiet(NAN);
       if (den == 0 || std::isinf(num)) return quiet(sign * INFINITY);
       if (std::isinf(den) || num == 0) return quiet(sign * 0.0f);
       return std::isfinite(qt) ? quiet(std::copysign(qt, sign)) : quiet(sign * INFINITY); }},
    {"v_cvt_pk_rtz_f16_f32 v8, 1.0, 2.0", [](const u32*, unsigned) { return Out{0x40003c00}; }},
    {"v_pk_add_u16 v8, v0, v1 clamp", [](const u32* i, unsigned) { return Out{std::min((i[0] & 0xffff) + (i[1] & 0xffff), 0xffffu) | std::min((i[0] >> 16) + (i[1] >> 16), 0xffffu) << 16}; }},
    {"v_pk_sub_i16 v8, v0, v1 op_sel:[1,0] op_sel_hi:[0,1]", [](const u32* i, unsigned) { return Out{((i[0] >> 16) - i[1]) % 0x10000 | ((i[0] & 0xffff) - (i[1] >> 16)) << 16}; }},
    {"v_dot4_u32_u8 v8, v0, v1, v2", [](const u32* i, unsigned) { u32 s = i[2]; for (int k = 0; k < 32; k += 8) s += (i[0] >> k & 255) * (i[1] >> k & 255); return Out{s}; }},
    {"v_dot4_i32_iu8 v8, v0, v1, v2 neg_lo:[1,1,0]", [](const u32* i, unsigned) { u32 s = i[2]; for (int k = 0; k < 32; k += 8) s += u32(int(int8_t(i[0] >> k)) * int8_t(i[1] >> k)); return Out{s}; }},
    {"v_dot8_u32_u4 v8, v0, v1, 7", [](const u32* i, unsigned) { u32 s = 7; for (int k = 0; k < 32; k += 4) s += (i[0] >> k & 15) * (i[1] >> k & 15); return Out{s}; }},
    {"v_fma_mix_f32 v8, v0, v1, v2", [](const u32* i, unsigned) { return quiet(std::fma(f(i[0]), f(i[1]), f(i[2]))); }},
    {"v_readlane_b32 s10, v0, 5\n v_mov_b32 v8, s10", [](const u32* i, unsigned lane) { return Out{i[(5 - int(lane)) * 8]}; }},
    {"v_readfirstlane_b32 s10, v0\n v_mov_b32 v8, s10", [](const u32* i, unsigned lane) { return Out{i[-int(lane) * 8]}; }},
    {"v_mov_b32 v8, 77\n s_mov_b32 s10, 99\n v_writelane_b32 v8, s10, 3", [](const u32*, unsigned lane) { return Out{lane == 3 ? 99u : 77u}; }},
    {"v_mov_b32_dpp v8, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", [](const u32* i, unsigned lane) { return Out{i[(int(lane ^ 1) - int(lane)) * 8]}; }},
    {"v_mov_b32 v8, 5\n v_mov_b32_dpp v8, v0 row_shr:1 row_mask:0xf bank_mask:0xf", [](const u32* i, unsigned lane) { return Out{lane % 16 ? i[-8] : 5u}; }},
    {"v_mov_b32 v8, 5\n v_mov_b32_dpp v8, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", [](const u32* i, unsigned lane) { return Out{lane % 16 ? i[-8] : 0u}; }},
    {"v_mov_b32_dpp v8, v0 row_mirror row_mask:0xf bank_mask:0xf", [](const u32* i, unsigned lane) { return Out{i[(15 - 2 * int(lane % 16)) * 8]}; }},
    {"v_add_nc_u32_dpp v8, v0, v1 row_ror:3 row_mask:0xf bank_mask:0xf", [](const u32* i, unsigned lane) { return Out{i[(int((lane + 13) % 16) - int(lane % 16)) * 8] + i[1]}; }},
    {"v_mov_b32_dpp v8, v0 row_share:4 row_mask:0xf bank_mask:0xf", [](const u32* i, unsigned lane) { return Out{i[(4 - int(lane % 16)) * 8]}; }},
    {"v_mov_b32_dpp v8, v0 dpp8:[7,6,5,4,3,2,1,0]", [](const u32* i, unsigned lane) { return Out{i[(7 - 2 * int(lane % 8)) * 8]}; }},
    {"s_mov_b32 s10, 0x76543210\n s_mov_b32 s11, 0xfedcba98\n v_permlanex16_b32 v8, v0, s10, s11", [](const u32* i, unsigned lane) { return Out{i[(int(lane ^ 16) - int(lane)) * 8]}; }},
    {"v_mov_b32 v9, v0\n ds_swizzle_b32 v8, v9 offset:swizzle(SWAP,2)\n s_waitcnt lgkmcnt(0)", [](const u32* i, unsigned lane) { return Out{i[(int(lane ^ 2) - int(lane)) * 8], i[0]}; }},
    {"v_lshlrev_b32 v9, 2, v29\n v_xor_b32 v9, 28, v9\n ds_bpermute_b32 v8, v9, v0\n s_waitcnt lgkmcnt(0)\n v_mov_b32 v9, 0", [](const u32* i, unsigned lane) { return Out{i[(int(lane ^ 7) - int(lane)) * 8]}; }},
    {"v_dual_add_f32 v8, v0, v1 :: v_dual_mul_f32 v9, v2, v3", [](const u32* i, unsigned) { return Out{b(f(i[0]) + f(i[1])), b(f(i[2]) * f(i[3]))}; }},
    {"v_mov_b32 v8, v0\n v_mov_b32 v9, v1\n v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8", [](const u32* i, unsigned) { return Out{i[1], i[0]}; }},
    {"v_mov_b32 v8, v0\n v_mov_b32 v9, v1\n v_swap_b32 v8, v9", [](const u32* i, unsigned) { return Out{i[1], i[0]}; }},
    {"s_mov_b32 s11, 0xabcd1234\n s_bfe_i32 s10, s11, 0x80008\n v_mov_b32 v8, s10", [](const u32*, unsigned) { return Out{0x12}; }},
    {"s_add_u32 s10, -1, 1\n s_addc_u32 s11, 5, 0\n v_mov_b32 v8, s10\n v_mov_b32 v9, s11", [](const u32*, unsigned) { return Out{0, 6}; }},
    {"s_add_i32 s10, 0x7fffffff, 1\n s_cselect_b32 s11, 1, 2\n v_mov_b32 v8, s11", [](const u32*, unsigned) { return Out{1}; }},
    {"s_mul_hi_i32 s10, 0x80000000, 4\n v_mov_b32 v8, s10", [](const u32*, unsigned) { return Out{0xfffffffe}; }},
    {"s_ff1_i32_b32 s10, 0x100\n s_flbit_i32_b32 s11, 0x100\n v_mov_b32 v8, s10\n v_mov_b32 v9, s11", [](const u32*, unsigned) { return Out{8, 23}; }},
    {"s_mov_b32 s10, exec_lo\n s_and_saveexec_b32 s11, 0xff\n v_mov_b32 v8, 1\n s_mov_b32 exec_lo, s11", [](const u32*, unsigned lane) { return Out{lane < 8 ? 1u : 0u}; }},
    {"s_mov_b32 s11, exec_lo\n v_cmpx_gt_u32 4, v29\n v_mov_b32 v8, 9\n s_mov_b32 exec_lo, s11", [](const u32*, unsigned lane) { return Out{lane < 4 ? 9u : 0u}; }},
    {"s_mov_b32 s10, 0x55555555\n s_wqm_b32 s11, s10\n s_bcnt1_i32_b32 s10, s11\n v_mov_b32 v8, s10", [](const u32*, unsigned) { return Out{32}; }},
};

std::string assembly() {
  std::string text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n.text\n", tail, meta = ".amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.kernels:\n";
  for (size_t i = 0; i < std::size(kRows); ++i) {
    text += fmt::format(R"(
.globl k{0}
.p2align 8
.type k{0},@function
k{0}:
  s_load_b128 s[4:7], s[0:1], 0x0
  s_mov_b32 s8, 0xaaaaaaaa
  s_mov_b32 vcc_lo, 0
  v_and_b32 v29, 0x3ff, v0
  v_lshlrev_b32 v30, 5, v29
  v_lshlrev_b32 v28, 4, v29
  s_waitcnt lgkmcnt(0)
  global_load_b128 v[0:3], v30, s[4:5]
  global_load_b128 v[4:7], v30, s[4:5] offset:16
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  s_waitcnt vmcnt(0)
  {1}
  v_mov_b32 v10, vcc_lo
  v_mov_b32 v11, 0
  global_store_b128 v28, v[8:11], s[6:7]
  s_endpgm
)", i, kRows[i].text);
    tail += fmt::format(".p2align 6\n.amdhsa_kernel k{0}\n.amdhsa_next_free_vgpr 32\n.amdhsa_next_free_sgpr 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_kernarg_size 16\n.amdhsa_wavefront_size32 1\n.amdhsa_float_denorm_mode_32 3\n.amdhsa_ieee_mode 1\n"
                        ".amdhsa_group_segment_fixed_size 1024\n.end_amdhsa_kernel\n", i);
    meta += fmt::format("  - .name: k{0}\n    .symbol: k{0}.kd\n    .kernarg_segment_size: 16\n    .kernarg_segment_align: 8\n    .group_segment_fixed_size: 1024\n    .private_segment_fixed_size: 0\n"
                        "    .wavefront_size: 32\n    .sgpr_count: 16\n    .vgpr_count: 32\n    .max_flat_workgroup_size: 32\n    .args:\n"
                        "      - {{.offset: 0, .size: 8, .value_kind: global_buffer}}\n      - {{.offset: 8, .size: 8, .value_kind: global_buffer}}\n", i);
  }
  return text + ".rodata\n" + tail + meta + ".end_amdgpu_metadata\n";
}

}  // namespace

TEST_CASE("single instructions give the documented results", "[isa][instructions]") {
  Machine m(compiler::SourceKind::kAssembly, assembly());
  // Edge values meet each other and random ones.
  const u32 kEdges[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x807fffff, 0x7f7fffff, 0x4f000000, 0xcf000000, 0x4f800000, 0xffffffff, 31, 32, 0x3effffff, 0x7fffffff};
  std::mt19937 rng(5);
  for (unsigned round = 0; round < 6; ++round) {
    std::vector<u32> in(32 * 8);
    for (u32& x : in) {
      x = rng();
      if (round % 2 == 0 && rng() % 3) x = kEdges[rng() % std::size(kEdges)];
      if (round == 5) x = b(float(i32(rng() % 2000) - 1000) / 16);
    }
    const uint64_t src = m.buffer(in), out = m.buffer(std::vector<u32>(32 * 4));
    for (size_t i = 0; i < std::size(kRows); ++i) {
      std::memset(m.space.at(out), 0xcc, 32 * 16);
      m.ok("k" + std::to_string(i), {1, 1, 1}, {32, 1, 1}, src, out);
      const auto got = m.read<u32>(out);
      for (unsigned lane = 0; lane < 32; ++lane) {
        const Out want = kRows[i].expect(&in[lane * 8], lane);
        const u32 lo = got[lane * 4], hi = got[lane * 4 + 1];
        const bool two = std::string(kRows[i].text).find("v[8:9]") != std::string::npos;
        const double as_double = two ? std::bit_cast<double>(u64{lo} | u64{hi} << 32) : 0, want_double = two ? std::bit_cast<double>(u64{want.lo} | u64{want.hi} << 32) : 0;
        CAPTURE(kRows[i].text, round, lane, in[lane * 8], in[lane * 8 + 1], in[lane * 8 + 2], lo, hi, want.lo, want.hi);
        // The bits of a NaN are not specified beyond being one; VOPC writes no register.
        const bool same = (lo == want.lo && hi == want.hi) || (!two && (lo == want.lo || (nan(lo) && nan(want.lo))) && (hi == want.hi || (nan(hi) && nan(want.hi)))) || (two && as_double != as_double && want_double != want_double);
        if (std::strncmp(kRows[i].text, "v_cmp_", 6) != 0) REQUIRE(same);
        if (want.mask >= 0) REQUIRE(int(got[lane * 4 + 2] >> lane & 1) == want.mask);
      }
    }
  }
}

TEST_CASE("WMMA multiplies 16 x 16 matrices with the layouts of gfx11", "[isa][wmma]") {
  // A row m in lanes m and m + 16, B column n likewise, D row 2j + lane / 16, column lane % 16 (RDNA3 ISA 7.9).
  const char* ir = R"(
target triple = "amdgcn-amd-amdhsa"
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16(<16 x half>, <16 x half>, <8 x float>)
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d) {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %m = and i32 %l, 15
  %pa = getelementptr <16 x half>, ptr addrspace(1) %a, i32 %m
  %pb = getelementptr <16 x half>, ptr addrspace(1) %b, i32 %m
  %va = load <16 x half>, ptr addrspace(1) %pa
  %vb = load <16 x half>, ptr addrspace(1) %pb
  %pd = getelementptr <8 x float>, ptr addrspace(1) %d, i32 %l
  %c = load <8 x float>, ptr addrspace(1) %pd
  %r = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16(<16 x half> %va, <16 x half> %vb, <8 x float> %c)
  store <8 x float> %r, ptr addrspace(1) %pd
  ret void
}
)";
  Machine m(compiler::SourceKind::kLlvmIr, ir);
  int a[16][16], bt[16][16];
  std::vector<uint16_t> ha(256), hb(256);
  auto half = [](int v) { _Float16 h = _Float16(v); return std::bit_cast<uint16_t>(h); };
  for (int r = 0; r < 16; ++r)
    for (int k = 0; k < 16; ++k) {
      a[r][k] = (r * 5 + k * 3) % 11 - 5, bt[r][k] = (r * 7 + k) % 9 - 4;
      ha[size_t(r * 16 + k)] = half(a[r][k]), hb[size_t(r * 16 + k)] = half(bt[r][k]);
    }
  std::vector<float> c(256);
  for (size_t i = 0; i < 256; ++i) c[i] = float(i);
  const uint64_t d = m.buffer(c);
  m.ok("k", {1, 1, 1}, {32, 1, 1}, m.buffer(ha), m.buffer(hb), d);
  const auto got = m.read<float>(d);
  for (int lane = 0; lane < 32; ++lane)
    for (int j = 0; j < 8; ++j) {
      const int row = 2 * j + lane / 16, column = lane % 16;
      int want = lane * 8 + j;
      for (int k = 0; k < 16; ++k) want += a[row][k] * bt[column][k];
      REQUIRE(got[size_t(lane * 8 + j)] == float(want));
    }
}
