// What OpenCL C and HIP-like sources can rely on beyond clang and libclc.
#pragma once

namespace baregpu::compiler {

/// Text put in front of an OpenCL C source. libclc has no sub-groups, and its work-item functions are of no use here: they read
/// the dispatch packet, and take implicit arguments for another layout than code object V5's (get_global_id adds the dword at 4,
/// which is the number of workgroups in y). gnu_inline: the text leaves no code of its own behind.
/// Layout: LLVM AMDGPUUsage, "Code Object V5 Metadata", hidden arguments: u32 whole workgroups at 0, u16 group sizes at
/// 12, remainders (the size of a last group that is not whole) at 18, u64 global offsets at 40, u16 dimensions at 64.
inline constexpr char kOpenClPrelude[] = R"(
#define BAREGPU_FN __attribute__((overloadable, always_inline, gnu_inline)) extern inline
#define BAREGPU_IMPLICIT(type, at) (*(const __constant type*)((const __constant uchar*)__builtin_amdgcn_implicitarg_ptr() + (at)))
/* Of three loads one is chosen: from an address that is computed LLVM cannot tell which arguments are used, and asks for all, the
   queue's address among them. */
#define BAREGPU_PICK(type, at, otherwise) \
  const type x = BAREGPU_IMPLICIT(type, at), y = BAREGPU_IMPLICIT(type, at + sizeof(type)), z = BAREGPU_IMPLICIT(type, at + 2 * sizeof(type)); \
  return d == 0 ? x : d == 1 ? y : d == 2 ? z : otherwise
BAREGPU_FN uint get_work_dim(void) { return BAREGPU_IMPLICIT(ushort, 64); }
BAREGPU_FN size_t get_local_id(uint d) {
  switch (d) {
    case 0: return __builtin_amdgcn_workitem_id_x();
    case 1: return __builtin_amdgcn_workitem_id_y();
    case 2: return __builtin_amdgcn_workitem_id_z();
    default: return 0;
  }
}
BAREGPU_FN size_t get_group_id(uint d) {
  switch (d) {
    case 0: return __builtin_amdgcn_workgroup_id_x();
    case 1: return __builtin_amdgcn_workgroup_id_y();
    case 2: return __builtin_amdgcn_workgroup_id_z();
    default: return 0;
  }
}
BAREGPU_FN size_t baregpu_whole_groups(uint d) { BAREGPU_PICK(uint, 0, 1); }
BAREGPU_FN size_t baregpu_remainder(uint d) { BAREGPU_PICK(ushort, 18, 0); }
BAREGPU_FN size_t get_enqueued_local_size(uint d) { BAREGPU_PICK(ushort, 12, 1); }
BAREGPU_FN size_t get_local_size(uint d) { return d >= 3 || get_group_id(d) < baregpu_whole_groups(d) ? get_enqueued_local_size(d) : baregpu_remainder(d); }
BAREGPU_FN size_t get_num_groups(uint d) { return baregpu_whole_groups(d) + (baregpu_remainder(d) != 0); }
BAREGPU_FN size_t get_global_offset(uint d) { BAREGPU_PICK(ulong, 40, 0); }
BAREGPU_FN size_t get_global_size(uint d) { return baregpu_whole_groups(d) * get_enqueued_local_size(d) + baregpu_remainder(d); }
BAREGPU_FN size_t get_global_id(uint d) { return get_group_id(d) * get_enqueued_local_size(d) + get_local_id(d) + get_global_offset(d); }
BAREGPU_FN size_t get_local_linear_id(void) { return (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0); }
BAREGPU_FN size_t get_global_linear_id(void) {
  return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) - get_global_offset(1)) * get_global_size(0) + get_global_id(0) - get_global_offset(0);
}
BAREGPU_FN void work_group_barrier(cl_mem_fence_flags flags) { barrier(flags); }
BAREGPU_FN void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope) {
  if ((flags & CLK_GLOBAL_MEM_FENCE) && scope >= memory_scope_device) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  barrier(flags);
  if ((flags & CLK_GLOBAL_MEM_FENCE) && scope >= memory_scope_device) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
/* A sub-group is a wave; work-items fill waves in the order of their linear ids. */
BAREGPU_FN uint get_max_sub_group_size(void) { return __builtin_amdgcn_wavefrontsize(); }
BAREGPU_FN uint get_sub_group_local_id(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
BAREGPU_FN uint get_sub_group_id(void) { return (uint)get_local_linear_id() / get_max_sub_group_size(); }
BAREGPU_FN uint get_num_sub_groups(void) { return ((uint)(get_local_size(0) * get_local_size(1) * get_local_size(2)) + get_max_sub_group_size() - 1) / get_max_sub_group_size(); }
BAREGPU_FN uint get_enqueued_num_sub_groups(void) { return get_num_sub_groups(); }
BAREGPU_FN uint get_sub_group_size(void) {
  const uint left = (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2)) - get_sub_group_id() * get_max_sub_group_size();
  return left < get_max_sub_group_size() ? left : get_max_sub_group_size();
}
BAREGPU_FN void sub_group_barrier(cl_mem_fence_flags flags) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
BAREGPU_FN int sub_group_broadcast(int v, uint lane) { return __builtin_amdgcn_ds_bpermute((int)(lane << 2), v); }
BAREGPU_FN uint sub_group_broadcast(uint v, uint lane) { return as_uint(sub_group_broadcast(as_int(v), lane)); }
BAREGPU_FN float sub_group_broadcast(float v, uint lane) { return as_float(sub_group_broadcast(as_int(v), lane)); }
#undef BAREGPU_PICK
#undef BAREGPU_IMPLICIT
#undef BAREGPU_FN
)";

/// Text put in front of a .hip file: __global__, __device__, __shared__, threadIdx and its kin, __syncthreads, atomics,
/// shuffles, and the math functions of C (from libclc, under their OpenCL names: C++ and OpenCL C mangle them alike).
inline constexpr char kHipPrelude[] = R"(
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((amdgpu_flat_work_group_size(1, __VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
typedef __SIZE_TYPE__ size_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
struct dim3 { unsigned x, y, z; };
#define BAREGPU_INDEX(name, ex, ey, ez) \
  struct baregpu_##name { \
    struct X { __device__ __forceinline__ operator unsigned() const { return ex; } }; \
    struct Y { __device__ __forceinline__ operator unsigned() const { return ey; } }; \
    struct Z { __device__ __forceinline__ operator unsigned() const { return ez; } }; \
    [[no_unique_address]] X x; [[no_unique_address]] Y y; [[no_unique_address]] Z z; \
  }; \
  static __device__ const baregpu_##name name{}
/* The implicit arguments of code object V5: u32 block counts at 0, u16 group sizes at 12 (LLVM AMDGPUUsage). */
#define BAREGPU_IMPLICIT(type, at) (*(const __attribute__((address_space(4))) type*)((const __attribute__((address_space(4))) char*)__builtin_amdgcn_implicitarg_ptr() + (at)))
BAREGPU_INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z());
BAREGPU_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z());
BAREGPU_INDEX(blockDim, BAREGPU_IMPLICIT(unsigned short, 12), BAREGPU_IMPLICIT(unsigned short, 14), BAREGPU_IMPLICIT(unsigned short, 16));
BAREGPU_INDEX(gridDim, BAREGPU_IMPLICIT(unsigned, 0), BAREGPU_IMPLICIT(unsigned, 4), BAREGPU_IMPLICIT(unsigned, 8));
#undef BAREGPU_INDEX
#define warpSize __builtin_amdgcn_wavefrontsize()
static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
#define BAREGPU_ATOMIC(name, op) \
  template <class T> static __device__ __forceinline__ T name(T* p, T v) { return __hip_atomic_##op(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
BAREGPU_ATOMIC(atomicAdd, fetch_add)
BAREGPU_ATOMIC(atomicMin, fetch_min)
BAREGPU_ATOMIC(atomicMax, fetch_max)
BAREGPU_ATOMIC(atomicAnd, fetch_and)
BAREGPU_ATOMIC(atomicOr, fetch_or)
BAREGPU_ATOMIC(atomicXor, fetch_xor)
BAREGPU_ATOMIC(atomicExch, exchange)
#undef BAREGPU_ATOMIC
template <class T> static __device__ __forceinline__ T atomicSub(T* p, T v) { return atomicAdd(p, (T)-v); }
template <class T> static __device__ __forceinline__ T atomicCAS(T* p, T expected, T v) {
  __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
static __device__ __forceinline__ unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
static __device__ __forceinline__ int __shfl(int v, int lane) { return __builtin_amdgcn_ds_bpermute(lane << 2, v); }
static __device__ __forceinline__ float __shfl(float v, int lane) { return __builtin_bit_cast(float, __shfl(__builtin_bit_cast(int, v), lane)); }
template <class T> static __device__ __forceinline__ T __shfl_xor(T v, int mask) { return __shfl(v, (int)(__lane_id() ^ (unsigned)mask)); }
#define BAREGPU_MATH1(name) \
  extern __device__ float baregpu_##name(float) __asm__("_Z" BAREGPU_LENGTH_##name #name "f"); \
  extern __device__ double baregpu_##name(double) __asm__("_Z" BAREGPU_LENGTH_##name #name "d"); \
  static __device__ __forceinline__ float name##f(float x) { return baregpu_##name(x); } \
  static __device__ __forceinline__ float name(float x) { return baregpu_##name(x); } \
  static __device__ __forceinline__ double name(double x) { return baregpu_##name(x); }
#define BAREGPU_LENGTH_sin "3"
#define BAREGPU_LENGTH_cos "3"
#define BAREGPU_LENGTH_tan "3"
#define BAREGPU_LENGTH_exp "3"
#define BAREGPU_LENGTH_log "3"
#define BAREGPU_LENGTH_exp2 "4"
#define BAREGPU_LENGTH_log2 "4"
#define BAREGPU_LENGTH_log10 "5"
#define BAREGPU_LENGTH_tanh "4"
#define BAREGPU_LENGTH_sinh "4"
#define BAREGPU_LENGTH_cosh "4"
#define BAREGPU_LENGTH_asin "4"
#define BAREGPU_LENGTH_acos "4"
#define BAREGPU_LENGTH_atan "4"
#define BAREGPU_LENGTH_erf "3"
#define BAREGPU_LENGTH_cbrt "4"
#define BAREGPU_LENGTH_rsqrt "5"
BAREGPU_MATH1(sin) BAREGPU_MATH1(cos) BAREGPU_MATH1(tan) BAREGPU_MATH1(exp) BAREGPU_MATH1(log) BAREGPU_MATH1(exp2) BAREGPU_MATH1(log2)
BAREGPU_MATH1(log10) BAREGPU_MATH1(tanh) BAREGPU_MATH1(sinh) BAREGPU_MATH1(cosh) BAREGPU_MATH1(asin) BAREGPU_MATH1(acos) BAREGPU_MATH1(atan)
BAREGPU_MATH1(erf) BAREGPU_MATH1(cbrt) BAREGPU_MATH1(rsqrt)
#undef BAREGPU_MATH1
extern __device__ float baregpu_pow(float, float) __asm__("_Z3powff");
extern __device__ double baregpu_pow(double, double) __asm__("_Z3powdd");
extern __device__ float baregpu_fmod(float, float) __asm__("_Z4fmodff");
extern __device__ double baregpu_fmod(double, double) __asm__("_Z4fmoddd");
static __device__ __forceinline__ float powf(float x, float y) { return baregpu_pow(x, y); }
static __device__ __forceinline__ float pow(float x, float y) { return baregpu_pow(x, y); }
static __device__ __forceinline__ double pow(double x, double y) { return baregpu_pow(x, y); }
static __device__ __forceinline__ float fmodf(float x, float y) { return baregpu_fmod(x, y); }
static __device__ __forceinline__ double fmod(double x, double y) { return baregpu_fmod(x, y); }
#define BAREGPU_BUILTIN1(name) \
  static __device__ __forceinline__ float name##f(float x) { return __builtin_##name##f(x); } \
  static __device__ __forceinline__ float name(float x) { return __builtin_##name##f(x); } \
  static __device__ __forceinline__ double name(double x) { return __builtin_##name(x); }
#define BAREGPU_BUILTIN2(name) \
  static __device__ __forceinline__ float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  static __device__ __forceinline__ float name(float x, float y) { return __builtin_##name##f(x, y); } \
  static __device__ __forceinline__ double name(double x, double y) { return __builtin_##name(x, y); }
BAREGPU_BUILTIN1(sqrt) BAREGPU_BUILTIN1(fabs) BAREGPU_BUILTIN1(floor) BAREGPU_BUILTIN1(ceil) BAREGPU_BUILTIN1(trunc) BAREGPU_BUILTIN1(rint) BAREGPU_BUILTIN1(round)
BAREGPU_BUILTIN2(fmin) BAREGPU_BUILTIN2(fmax) BAREGPU_BUILTIN2(copysign)
#undef BAREGPU_BUILTIN1
#undef BAREGPU_BUILTIN2
static __device__ __forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
template <class T> static __device__ __forceinline__ T min(T a, T b) { return b < a ? b : a; }
template <class T> static __device__ __forceinline__ T max(T a, T b) { return a < b ? b : a; }
static __device__ __forceinline__ int abs(int x) { return __builtin_abs(x); }
)";

}  // namespace baregpu::compiler
