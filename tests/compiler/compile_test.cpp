// Sources to code objects, the cache, and what goes wrong. llvm-readelf judges the loader.
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/cache.hpp"
#include "compiler/compiler.hpp"
#include "compiler/subprocess.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::compiler;
namespace fs = std::filesystem;

namespace {

constexpr const char* kCl = R"(
kernel void scale(global float* restrict x, float f, const int n, local float* tmp) {
  int i = get_global_id(0);
  tmp[get_local_id(0)] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) x[i] = tmp[get_local_id(0)] * f + sin(f);
}
kernel __attribute__((reqd_work_group_size(8, 4, 1))) void fixed(global int* p) { p[get_global_id(0)] = get_local_size(1); }
)";

CompileOptions options(const std::string& arch = "gfx1100") {
  CompileOptions o;
  o.arch = arch;
  o.use_cache = false;
  return o;
}

std::vector<std::byte> cl(const std::string& arch = "gfx1100") {
  return compile(SourceKind::kOpenCl, kCl, "scale.cl", options(arch));
}

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& s, const std::string& part) { return s.find(part) != s.npos; }

/// The number behind `key` in the part of llvm-readelf's notes that describes `kernel`.
unsigned judged(const std::string& notes, const std::string& kernel, const std::string& key) {
  const size_t name = notes.find(".name:           " + kernel + "\n");
  REQUIRE(name != notes.npos);
  const size_t at = notes.find(" " + key + ":", notes.rfind("- .args:", name));
  REQUIRE(at != notes.npos);
  return unsigned(std::strtoul(notes.c_str() + at + key.size() + 2, nullptr, 10));
}

}  // namespace

TEST_CASE("OpenCL C compiles, and the loader agrees with llvm-readelf", "[compiler]") {
  for (const char* arch : {"gfx1100", "gfx1101", "gfx1102"}) {
    const std::vector<std::byte> object = cl(arch);
    const ProgramImage image = load_code_object(object, "scale.cl");
    CHECK(image.arch == arch);
    CHECK(image.abi_version == 3);
    REQUIRE(image.kernels.size() == 2);
    const KernelInfo* k = image.find("scale");
    REQUIRE(k);
    CHECK(k->wave32);
    CHECK(k->code_offset % 256 == 0);
    CHECK(k->descriptor_offset % 64 == 0);
    REQUIRE(k->args.size() > 4);
    CHECK(k->args[0].kind == ArgKind::kGlobalBuffer);
    CHECK(k->args[0].name == "x");
    CHECK(k->args[0].type_name == "float*");
    CHECK(k->args[1].kind == ArgKind::kByValue);
    CHECK(k->args[1].offset == 8);
    CHECK(k->args[1].size == 4);
    CHECK(k->args[3].kind == ArgKind::kDynamicSharedPointer);
    for (size_t i = 4; i < k->args.size(); ++i) CHECK(is_hidden(k->args[i].kind));
    CHECK(image.find("fixed")->reqd_workgroup_size == std::array<uint32_t, 3>{8, 4, 1});
    // The other program's opinion.
    TemporaryFolder folder;
    std::ofstream(folder.file("a.co"), std::ios::binary)
        .write(reinterpret_cast<const char*>(object.data()), long(object.size()));
    const std::string readelf =
        find_program({"llvm-readelf-22", "llvm-readelf-21", "llvm-readelf-20", "llvm-readelf-19"});
    REQUIRE(readelf != "");
    const std::string notes = run_program({readelf, "--notes", folder.file("a.co")}).output;
    for (const char* name : {"scale", "fixed"}) {
      const KernelInfo* i = image.find(name);
      CHECK(i->vgpr_count == judged(notes, name, ".vgpr_count"));
      CHECK(i->sgpr_count == judged(notes, name, ".sgpr_count"));
      CHECK(i->kernarg_size == judged(notes, name, ".kernarg_segment_size"));
      CHECK(i->group_segment_size == judged(notes, name, ".group_segment_fixed_size"));
      CHECK(i->private_segment_size == judged(notes, name, ".private_segment_fixed_size"));
    }
  }
}

TEST_CASE("wave64 and optimisation levels", "[compiler]") {
  CompileOptions o = options();
  o.wave64 = true;
  CHECK_FALSE(load_code_object(compile(SourceKind::kOpenCl, kCl, "a.cl", o), "a.cl").kernels[0].wave32);
  for (unsigned level = 0; level < 3; ++level) {
    o = options();
    o.optimization = level;
    CHECK(load_code_object(compile(SourceKind::kOpenCl, kCl, "a.cl", o), "a.cl").kernels.size() == 2);
  }
  o = options();
  o.defines = {"N=5", "M"};
  CHECK_NOTHROW(compile(SourceKind::kOpenCl,
                        "#if N != 5 || !defined M\n#error no\n#endif\nkernel void k(global int* p) { *p = N; }", "d.cl",
                        o));
}

TEST_CASE("HIP-like C++ compiles with threads, LDS, atomics, shuffles and math", "[compiler][hip]") {
  const char* source = R"(
template <class T> __device__ T square(T x) { return x * x; }
extern "C" __global__ void k(float* out, const float* in, int n, unsigned* count) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  float v = tile[63 - threadIdx.x];
  v += __shfl_xor(v, 1);
  out[i] = square(sinf(v)) + sqrtf(fabsf(v)) + powf(v, 2.0f) + expf(-v) + fmaxf(v, 0.0f) + fmaf(v, v, 1.0f) + (float)min(i, n) + gridDim.x;
  if (threadIdx.x == 0) atomicAdd(count, 1u);
})";
  const ProgramImage image = load_code_object(compile(SourceKind::kHip, source, "k.hip", options()), "k.hip");
  const KernelInfo* k = image.find("k");
  REQUIRE(k);
  CHECK(k->group_segment_size == 256);
  CHECK(k->args[0].kind == ArgKind::kGlobalBuffer);
  CHECK(k->args[2].size == 4);
}

TEST_CASE("LLVM IR is compiled in this process", "[compiler][ir]") {
  const char* ir = R"(
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %p, float %f) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  store float %f, ptr addrspace(1) %q
  ret void
}
)";
  const ProgramImage image = load_code_object(compile(SourceKind::kLlvmIr, ir, "k.ll", options()), "k.ll");
  REQUIRE(image.find("k"));
  CHECK(image.arch == "gfx1100");
  CHECK(
      contains(error_of<CompileError>([&] { compile(SourceKind::kLlvmIr, "define void @f( {", "bad.ll", options()); }),
               "bad.ll"));
  CHECK(contains(error_of<CompileError>([&] {
                   compile(SourceKind::kLlvmIr, "target triple = \"x86_64-linux-gnu\"\n", "x.ll", options());
                 }),
                 "x86_64"));
  CHECK(error_of<Error>([&] {
          compile(SourceKind::kLlvmIr,
                  "declare void @missing()\ndefine amdgpu_kernel void @k() {\n call void @missing()\n ret void\n}\n",
                  "u.ll", options());
        }) != "");
}

TEST_CASE("LLVM IR that LLVM gives up on is an error, and the process goes on", "[compiler][ir]") {
  const std::string mfma = R"(
declare <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float, float, <4 x float>, i32, i32, i32)
define amdgpu_kernel void @k(ptr addrspace(1) %p, float %f) {
  %q = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float %f, float %f, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  store <4 x float> %q, ptr addrspace(1) %p
  ret void
}
)";
  const std::string e = error_of<CompileError>([&] { compile(SourceKind::kLlvmIr, mfma, "m.ll", options("gfx1100")); });
  CAPTURE(e);
  CHECK(contains(e, "m.ll"));
  CHECK(contains(e, "gfx1100"));
  CHECK(contains(e, "mfma"));
  CHECK_NOTHROW(
      compile(SourceKind::kLlvmIr, mfma, "m.ll", options("gfx942")));  // a chip that has it; and LLVM still works
  const std::string lds =
      "@l = internal addrspace(3) global [200000 x i8] poison\ndefine amdgpu_kernel void @k(i32 %i) {\n %p = "
      "getelementptr i8, ptr addrspace(3) @l, i32 %i\n"
      " store volatile i8 1, ptr addrspace(3) %p\n ret void\n}\n";
  CHECK(contains(error_of<CompileError>([&] { compile(SourceKind::kLlvmIr, lds, "lds.ll", options()); }),
                 "exceeds limit"));
  const std::string plain = "define amdgpu_kernel void @k() {\n ret void\n}\n";
  CHECK(contains(error_of<UnsupportedError>([&] { compile(SourceKind::kLlvmIr, plain, "k.ll", options("gfx9999")); }),
                 "gfx9999"));
  CHECK(load_code_object(compile(SourceKind::kLlvmIr, plain, "k.ll", options()), "k.ll").abi_version ==
        3);  // V5, as clang's
  const std::string other = "define amdgpu_kernel void @k() \"target-cpu\"=\"gfx1030\" {\n ret void\n}\n";
  CHECK(contains(error_of<CompileError>([&] { compile(SourceKind::kLlvmIr, other, "k.ll", options()); }),
                 "'k' is for gfx1030, not for gfx1100"));
  CompileOptions o = options();
  o.defines = {"N"};
  CHECK(contains(error_of<UnsupportedError>([&] { compile(SourceKind::kLlvmIr, plain, "k.ll", o); }), "k.ll"));
}

TEST_CASE("assembly is assembled and linked", "[compiler][asm]") {
  const char* text = R"(
.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
.text
.globl k
.p2align 8
.type k,@function
k:
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 1
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 1
    .vgpr_count: 1
    .max_flat_workgroup_size: 256
.end_amdgpu_metadata
)";
  const auto object = compile(SourceKind::kAssembly, text, "k.s", options());
  CHECK(load_code_object(object, "k.s").find("k")->max_flat_workgroup_size == 256);
  CHECK(contains(disassemble(object, "k.s"), "s_endpgm"));
}

TEST_CASE("source that does not compile shows clang's diagnostics under the user's file name", "[compiler]") {
  const std::string e = error_of<CompileError>([&] {
    compile(SourceKind::kOpenCl, "kernel void k(global int* p) {\n  p[0] = nothing;\n}", "dir/mine.cl", options());
  });
  CAPTURE(e);
  CHECK(contains(e, "dir/mine.cl:2:10: error: use of undeclared identifier 'nothing'"));
  CHECK_FALSE(contains(e, "/tmp/"));
  CHECK(error_of<Error>([&] { compile(SourceKind::kOpenCl, "kernel void k(void) {}", "a.cl", options("gfx9999")); }) !=
        "");
}

TEST_CASE("a clang that is not there is named, with the package that has it", "[compiler]") {
  CompileOptions o = options();
  o.clang = "/nonexistent/clang";
  const std::string e = error_of<UnsupportedError>([&] { compile(SourceKind::kOpenCl, kCl, "a.cl", o); });
  CHECK(contains(e, "/nonexistent/clang"));
  CHECK(contains(e, "clang-22"));
  // The environment is read once a process: another one has none in PATH.
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const ProgramResult r = run_program({"/usr/bin/env", "PATH=/nonexistent", self, "compile without clang"});
  CAPTURE(r.output);
  CHECK(r.exit_code == 0);
  const ProgramResult chosen =
      run_program({"/usr/bin/env", "BAREGPU_CLANG=/nonexistent/mine", self, "compile with the clang of BAREGPU_CLANG"});
  CAPTURE(chosen.output);
  CHECK(chosen.exit_code == 0);
}
TEST_CASE("compile without clang", "[.child]") {
  const std::string e = error_of<UnsupportedError>([] { compile(SourceKind::kOpenCl, kCl, "a.cl", options()); });
  CAPTURE(e);
  CHECK(contains(e, "clang-22, clang-21, clang-20, clang-19"));
  CHECK(contains(e, "apt-get install clang-22"));
  const std::string plain = "define amdgpu_kernel void @k() {\n ret void\n}\n";
  CHECK(contains(error_of<UnsupportedError>([&] { compile(SourceKind::kLlvmIr, plain, "k.ll", options()); }),
                 "apt-get install lld-22"));
}
TEST_CASE("compile with the clang of BAREGPU_CLANG", "[.child]") {
  CHECK(contains(error_of<UnsupportedError>([] { compile(SourceKind::kOpenCl, kCl, "a.cl", options()); }),
                 "/nonexistent/mine"));
}

TEST_CASE("kinds of files", "[compiler]") {
  auto bytes = [](const char* s) { return std::as_bytes(std::span(s, std::strlen(s))); };
  CHECK(source_kind("a.cl", bytes("kernel")) == SourceKind::kOpenCl);
  CHECK(source_kind("a.hip", {}) == SourceKind::kHip);
  CHECK(source_kind("a.ll", {}) == SourceKind::kLlvmIr);
  CHECK(source_kind("a.cl", bytes("\x7f"
                                  "ELF....")) == SourceKind::kCodeObject);
  CHECK(source_kind("x", bytes("BC\xC0\xDE")) == SourceKind::kLlvmIr);
  CHECK(contains(error_of<ParseError>([&] { source_kind("a.txt", bytes("hello")); }), "a.txt"));
  CHECK(contains(error_of<Error>([&] { compile_file("/nonexistent/a.cl", options()); }), "/nonexistent/a.cl"));
  CHECK(contains(error_of<Error>([&] { compile_file("/tmp", options()); }), "folder"));
}

TEST_CASE("a code object for another chip is refused", "[compiler]") {
  TemporaryFolder folder;
  const auto object = cl("gfx1101");
  std::ofstream(folder.file("a.co"), std::ios::binary)
      .write(reinterpret_cast<const char*>(object.data()), long(object.size()));
  const std::string e = error_of<Error>([&] { compile_file(folder.file("a.co"), options("gfx1100")); });
  CHECK(contains(e, "gfx1101"));
  CHECK(contains(e, "gfx1100"));
  CHECK_NOTHROW(compile_file(folder.file("a.co"), options("gfx1101")));
}

TEST_CASE("the cache finds, repairs and does without", "[compiler][cache]") {
  TemporaryFolder folder;
  const std::string dir = folder.file("cache"), key = content_key({"a", "b"});
  CHECK(key.size() == 64);
  CHECK(key != content_key({"ab", ""}));  // lengths count
  // SHA-256 of nothing at all, FIPS 180-4.
  CHECK(content_key({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::vector<std::byte> data(5000, std::byte{7});
  CHECK_FALSE(cache_load(dir, key));
  cache_store(dir, key, data);
  CHECK(cache_load(dir, key) == data);
  {
    std::fstream f(dir + "/" + key, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(3000);
    f << 'X';
  }
  CHECK_FALSE(cache_load(dir, key));
  CHECK_FALSE(fs::exists(dir + "/" + key));  // removed, to be made anew
  cache_store(dir, key, data);
  fs::resize_file(dir + "/" + key, 20);
  CHECK_FALSE(cache_load(dir, key));
  CHECK_NOTHROW(cache_store("/proc/nonexistent", key, data));
  CHECK_FALSE(cache_load("/proc/nonexistent", key));
}

TEST_CASE("compiling fills the cache, uses it, repairs it, and does without", "[compiler][cache]") {
  TemporaryFolder folder;
  const std::string self = fs::read_symlink("/proc/self/exe").string(), dir = folder.file("cache");
  auto child = [&](const std::string& cache, const char* clang = "") {
    const ProgramResult r =
        run_program({"/usr/bin/env", "BAREGPU_CACHE=" + cache, std::string("BAREGPU_CLANG=") + clang, self,
                     "compile one kernel through the cache"});
    CAPTURE(r.output);
    return r.exit_code;
  };
  auto entries = [&] {
    std::vector<fs::path> out;
    for (const auto& e : fs::directory_iterator(dir)) out.push_back(e.path());
    return out;
  };
  auto bytes = [](const fs::path& p) {
    std::ifstream in(p, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  REQUIRE(child(dir) == 0);
  REQUIRE(entries().size() == 1);  // one kernel, and no temporary file is left
  const fs::path entry = entries()[0];
  const std::string good = bytes(entry);
  const auto written = fs::last_write_time(entry);
  CHECK(child(dir) == 0);
  CHECK(fs::last_write_time(entry) == written);  // used as it is
  {
    std::fstream f(entry, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(long(good.size() / 2));
    f << "damage";
  }
  CHECK(child(dir) == 0);
  CHECK(bytes(entry) == good);  // compiled anew; clang's output is reproducible
  // Another compiler is another key: a script that passes everything on.
  const std::string script = folder.file("clang");
  std::ofstream(script) << "#!/bin/sh\nexec " << find_program({"clang-22", "clang-21", "clang-20", "clang-19"})
                        << " \"$@\"\n";
  fs::permissions(script, fs::perms::owner_all);
  CHECK(child(dir, script.c_str()) == 0);
  CHECK(entries().size() == 2);
  // A folder that cannot be made is no error: a file is in its place.
  std::ofstream(folder.file("file")) << "x";
  CHECK(child(folder.file("file")) == 0);
  CHECK(child(folder.file("file") + "/below") == 0);
}
TEST_CASE("compile one kernel through the cache", "[.child]") {
  CompileOptions o = options();
  o.use_cache = true;
  CHECK(load_code_object(compile(SourceKind::kOpenCl, "kernel void k(global int* p) { *p = 1; }", "k.cl", o), "k.cl")
            .find("k"));
}

TEST_CASE("programs that cannot start, fail or hang", "[compiler][subprocess]") {
  CHECK(run_program({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}).output == "out\nerr\n");
  CHECK(run_program({"/bin/sh", "-c", "exit 3"}).exit_code == 3);
  CHECK(run_program({"/bin/sh", "-c", "kill -9 $$"}).exit_code == 137);
  CHECK_THROWS_AS(run_program({"/nonexistent/program"}), Error);
  CHECK_THROWS_AS(run_program({"/bin/sleep", "30"}, std::chrono::seconds(1)), TimeoutError);
  CHECK(find_program({"no-such-program-anywhere"}) == "");
  CHECK(find_program({"sh"}) != "");
}
