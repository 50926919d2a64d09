// The functions that kernels call without defining them.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "compiler/compiler.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::compiler;

namespace {

constexpr uint16_t kDispatchPtr = 1 << 1, kQueuePtr = 1 << 2, kKernargPtr = 1 << 3,
                   kWave32 = 1 << 10;  // kernel_code_properties, LLVM AMDGPUUsage "Kernel Descriptor"

CompileOptions options(const std::string& arch, unsigned optimization = 3) {
  CompileOptions o;
  o.arch = arch;
  o.optimization = optimization;
  o.use_cache = false;
  return o;
}

/// Offsets in the kernel-argument segment that the kernel loads from: "s_load_b32 s2, s[0:1], 0x14".
std::set<uint64_t> loads(const std::string& listing, const std::string& kernel) {
  std::set<uint64_t> out;
  std::istringstream in(listing.substr(listing.find("\n" + kernel + ": wave")));
  std::string line;
  std::getline(in, line), std::getline(in, line);
  for (; std::getline(in, line) && line.starts_with("  ");) {  // up to the next function
    const size_t at = line.find("s_load_"), end = line.find("  ", at);
    if (at == line.npos) continue;
    const std::string last = line.substr(line.rfind(' ', end - 1) + 1, end - line.rfind(' ', end - 1) - 1);
    out.insert(last == "null" ? 0 : std::strtoull(last.c_str(), nullptr, 0));
  }
  return out;
}

}  // namespace

TEST_CASE("work-item functions read the implicit argument that the metadata calls by that name",
          "[compiler][builtins]") {
  struct Row {
    const char* expression;
    std::vector<ArgKind> kinds;
  };
  const Row rows[] = {
      {"get_num_groups(0)", {ArgKind::kHiddenBlockCountX, ArgKind::kHiddenRemainderX}},
      {"get_num_groups(1)", {ArgKind::kHiddenBlockCountY, ArgKind::kHiddenRemainderY}},
      {"get_num_groups(2)", {ArgKind::kHiddenBlockCountZ, ArgKind::kHiddenRemainderZ}},
      {"get_local_size(0)", {ArgKind::kHiddenBlockCountX}},  // which chooses the address of the size
      {"get_enqueued_local_size(0)", {ArgKind::kHiddenGroupSizeX}},
      {"get_enqueued_local_size(1)", {ArgKind::kHiddenGroupSizeY}},
      {"get_enqueued_local_size(2)", {ArgKind::kHiddenGroupSizeZ}},
      {"get_global_offset(0)", {ArgKind::kHiddenGlobalOffsetX}},
      {"get_global_offset(1)", {ArgKind::kHiddenGlobalOffsetY}},
      {"get_global_offset(2)", {ArgKind::kHiddenGlobalOffsetZ}},
      {"get_work_dim()", {ArgKind::kHiddenGridDims}},
  };
  std::string source;
  for (size_t i = 0; i < std::size(rows); ++i)
    source.append("kernel void k")
        .append(std::to_string(i))
        .append("(global ulong* p) { *p = ")
        .append(rows[i].expression)
        .append("; }\n");
  // Ids: two loads, the group's size and the offset, nothing of another dimension.
  source += "kernel void id(global ulong* p) { *p = get_global_id(1); }\n";
  const auto object = compile(SourceKind::kOpenCl, source, "k.cl", options("gfx1100"));
  const ProgramImage image = load_code_object(object, "k.cl");
  const std::string listing = disassemble(object, "k.cl");
  auto offset_of = [](const KernelInfo& k, ArgKind kind) {
    for (const KernelArg& a : k.args)
      if (a.kind == kind) return uint64_t{a.offset} & ~uint64_t{3};  // scalar loads are of whole dwords
    FAIL("no such argument");
    return uint64_t{0};
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    const std::string name = std::string("k").append(std::to_string(i));
    CAPTURE(rows[i].expression);
    const KernelInfo* k = image.find(name);
    REQUIRE(k);
    CHECK((k->properties & (kDispatchPtr | kQueuePtr)) == 0);
    std::set<uint64_t> seen = loads(listing, name);
    seen.erase(0);  // p itself
    std::set<uint64_t> want;
    for (const ArgKind kind : rows[i].kinds) want.insert(offset_of(*k, kind));
    CHECK(seen == want);
  }
  const KernelInfo* id = image.find("id");
  std::set<uint64_t> seen = loads(listing, "id");
  seen.erase(0);
  CHECK(seen ==
        std::set<uint64_t>{offset_of(*id, ArgKind::kHiddenGroupSizeY), offset_of(*id, ArgKind::kHiddenGlobalOffsetY)});
}

TEST_CASE("kernels need only their arguments' address, at any optimisation level", "[compiler][builtins]") {
  const char* source =
      "kernel void k(global ulong* p, uint d) { p[get_global_id(d)] = get_local_size(d) + get_global_size(d) + "
      "get_num_groups(d) + get_group_id(d) + get_local_id(d) + get_global_linear_id(); }";
  for (unsigned level = 0; level <= 3; ++level) {
    CAPTURE(level);
    for (auto [kind, text] :
         {std::pair{SourceKind::kOpenCl, source},
          {SourceKind::kHip,
           "extern \"C\" __global__ void k(unsigned* p) { p[threadIdx.x] = blockDim.x + gridDim.y + blockIdx.z; }"},
          {SourceKind::kLlvmIr,
           "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n store i32 1, ptr addrspace(1) %p\n ret void\n}\n"}}) {
      const ProgramImage image = load_code_object(compile(kind, text, "k", options("gfx1100", level)), "k");
      CHECK(image.find("k")->properties == (kKernargPtr | kWave32));
    }
  }
}

TEST_CASE("OpenCL's builtins link: math, vectors, integers, atomics, halves, sub-groups", "[compiler][builtins]") {
  const char* source = R"(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void all(global float* p, global double* d, global float4* v, global int* i, local int* l, global uint* u, global half* h) {
  size_t n = get_global_id(0);
  float x = p[n], whole;
  p[n] = sin(x) + cos(x) + tan(x) + exp(x) + exp2(x) + log(x) + log2(x) + sqrt(x) + rsqrt(x) + fma(x, x, x) + mad(x, x, x) + min(x, 1.f) + max(x, 2.f) + clamp(x, 0.f, 1.f) +
         pow(x, x) + fabs(x) + floor(x) + ceil(x) + tanh(x) + erf(x) + native_exp(x) + native_sin(x) + fmod(x, 3.f) + hypot(x, x) + atan2(x, x) + mix(x, x, x) + step(x, x) +
         smoothstep(x, x, x) + sign(x) + rint(x) + round(x) + trunc(x) + ldexp(x, 3) + native_recip(x) + half_sqrt(x) + cbrt(x) + fract(x, &whole);
  d[n] = sqrt(d[n]) + exp(d[n]) + fma(d[n], d[n], d[n]) + sin(d[n]);
  v[n] = sin(v[n]) * dot(v[n], v[n]) + (float4)(length(v[n])) + cross(v[n], v[n]) + normalize(v[n]) + clamp(v[n], 0.f, 1.f) + convert_float4(convert_int4_rte(v[n])) + v[n].wzyx +
         vload4(n, p) + as_float4(as_int4(v[n])) + select(v[n], v[n], as_int4(v[n]));
  vstore4(v[n], n, p);
  i[n] = atomic_add(i, 1) + atomic_inc(i) + atomic_cmpxchg(i, 1, 2) + atomic_max(i, 3) + atomic_xchg(i, 4) + atomic_add(l, 2) + popcount(i[n]) + clz(i[n]) + mul_hi(i[n], i[n]) +
         mul24(i[n], i[n]) + abs(i[n]) + rotate(i[n], 3) + hadd(i[n], i[n]) + max(i[n], 3) + mad24(1, i[n], 3) + upsample((short)1, (ushort)2);
  h[n] = h[n] * h[n] + (half)x;
  vstore_half(x, n, h);
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
  work_group_barrier(CLK_GLOBAL_MEM_FENCE, memory_scope_device);
  atomic_fetch_add_explicit((volatile global atomic_int*)i, 1, memory_order_relaxed, memory_scope_device);
  sub_group_barrier(CLK_LOCAL_MEM_FENCE);
  u[n] = atom_add(u, 2u) + get_sub_group_local_id() + get_sub_group_size() + get_sub_group_id() + get_num_sub_groups() + sub_group_broadcast(u[n], 3);
}
)";
  for (const char* arch : {"gfx1100", "gfx1101", "gfx1102", "gfx1201", "gfx942"}) {
    CAPTURE(arch);
    const ProgramImage image =
        load_code_object(compile(SourceKind::kOpenCl, source, "all.cl", options(arch)), "all.cl");
    CHECK((image.find("all")->properties & kDispatchPtr) == 0);
  }
}

TEST_CASE("a builtin that is nowhere is named", "[compiler][builtins]") {
  try {
    compile(SourceKind::kOpenCl, "int missing_one(int);\nkernel void k(global int* p) { *p = missing_one(1); }", "m.cl",
            options("gfx1100"));
    FAIL("it compiled");
  } catch (const CompileError& e) {
    CAPTURE(e.what());
    CHECK(std::string(e.what()).find("missing_one") != std::string::npos);
    CHECK(std::string(e.what()).find("m.cl") != std::string::npos);
  }
}
