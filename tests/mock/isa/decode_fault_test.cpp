// The decoder against LLVM's, and what the executor reports when code goes wrong.
#include <random>

#include "compiler/llvm_backend.hpp"
#include "harness.hpp"
#include "mock/isa/disasm.hpp"

using namespace baregpu;
using mock::isa::disassemble;
using test::Machine;

namespace {

constexpr const char* kKernels = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void mix(global float* x, global double* d, global half* h, global long* l, global uchar* b, int n) {
  local float part[128];
  int i = get_global_id(0), t[9];
  for (int k = 0; k < 9; ++k) t[k] = i * k;
  part[get_local_id(0)] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < n; ++k) x[i] += part[(i + k) & 127] / (1.0f + x[k]) + exp(x[k]) * sin(x[i]) + t[(i + k) % 9];
  d[i] = d[i] / d[i + 1] + sqrt(d[i]);
  h[i] = h[i] * h[i + 1] + (half)x[i];
  l[i] = l[i] / (l[i + 1] | 1) + atom_add((global int*)&l[3], 5);
  b[i] = b[i] * 3 + popcount(b[i + 1]);
}
)";

std::string first_word(const std::string& s) { return s.substr(0, s.find(' ')); }

}  // namespace

TEST_CASE("the decoder agrees with LLVM on compiled code", "[isa][decode]") {
  unsigned seen = 0, same_text = 0;
  for (const unsigned level : {0u, 1u, 2u, 3u})
    for (const bool wave64 : {false, true}) {
      Machine m(compiler::SourceKind::kOpenCl, kKernels, {level, wave64});
      const ProgramImage& image = m.image();
      const KernelInfo& k = image.kernels[0];
      const auto code = std::span(image.bytes).subspan(k.code_offset);
      for (const compiler::Instruction& i : compiler::disassemble_code(code, "gfx1100", wave64)) {
        if (i.text == "s_code_end") break;
        std::vector<uint32_t> words((code.size() - i.offset) / 4);
        words.resize(std::min<size_t>(words.size(), 4));
        std::memcpy(words.data(), code.data() + i.offset, words.size() * 4);
        const auto ours = disassemble(mock::isa::Target::kGfx1100, words, i.offset);
        CAPTURE(i.text, ours.text);
        REQUIRE(ours.legal);
        REQUIRE(ours.dwords * 4 == i.size);
        REQUIRE(first_word(ours.text) == first_word(i.text));
        ++seen;
        same_text += ours.text == i.text;
      }
    }
  CHECK(seen > 3000);
  CHECK(same_text > seen / 2);  // modifiers and waits are printed shorter here; operands are the same
}

TEST_CASE("random words never crash the decoder, and what it takes LLVM takes too", "[isa][decode]") {
  std::mt19937 rng(3);
  std::vector<uint32_t> words(400'000);
  for (uint32_t& w : words) {
    w = rng();
    if (rng() % 4 == 0) w = (w & 0x03ffffff) | 0xd4000000;  // more of the long encodings than chance gives
  }
  unsigned legal = 0, disputed = 0, longer = 0;
  std::string example;
  for (size_t i = 0; i + 4 < words.size(); i += 4) {
    const auto ours = disassemble(mock::isa::Target::kGfx1100, std::span(words).subspan(i, 4), 0);
    if (!ours.legal) continue;
    ++legal;
    const auto theirs = compiler::disassemble_code(std::as_bytes(std::span(words).subspan(i, 4)), "gfx1100", false);
    // Reserved bits set in an otherwise known instruction are what LLVM refuses and hardware ignores.
    if (theirs[0].text.starts_with(".long"))
      ++disputed;
    else if (theirs[0].size != ours.dwords * 4)
      ++longer, example = theirs[0].text + " / " + ours.text;
  }
  CAPTURE(legal, disputed, longer, example);
  CHECK(legal > 10'000);
  CHECK(longer == 0);
  CHECK(disputed < legal / 4);
}

TEST_CASE("faults say what, where and which instruction", "[isa][fault]") {
  Machine m(compiler::SourceKind::kOpenCl, R"(
kernel void far(global int* p, ulong at) { p[at] = 1; }
kernel void load(global int* p, global int* q, ulong at) { q[0] = p[at + get_local_id(0)]; }
kernel void endless(global volatile int* p) { while (p[0] == 0) {} }
kernel void bad(global int* p) { if (p[0] == 0) __asm__ volatile(".long 0xcffff000"); p[1] = 1; }
kernel void trap(global int* p) { if (p[0] == 0) __builtin_trap(); }
kernel void counts(global int* p) { p[0] += 1; }
)");
  using test::FaultKind;
  const uint64_t p = m.buffer(std::vector<int>(64));
  {
    const auto r = m.run("far", {1, 1, 1}, {1, 1, 1}, p, uint64_t{1} << 24);
    CHECK_FALSE(r.completed);
    CHECK(r.fault.kind == FaultKind::kPageFault);
    CHECK(r.fault.access == test::Access::kWrite);
    CHECK(r.fault.address == p + (uint64_t{4} << 24));
    CHECK(r.fault.text.find("global_store_b32") != std::string::npos);
  }
  {
    const uint64_t fixed = m.space.add(4096, false);
    const auto r = m.run("far", {1, 1, 1}, {1, 1, 1}, fixed, uint64_t{3});
    CHECK(r.fault.kind == FaultKind::kPermission);
    CHECK(r.fault.address == fixed + 12);
  }
  {
    const auto r = m.run("load", {1, 1, 1}, {32, 1, 1}, p, p, uint64_t{60});  // lanes 4.. are outside
    CHECK(r.fault.kind == FaultKind::kPageFault);
    CHECK(r.fault.address == p + 256);
    CHECK(r.fault.lane_mask == 1u << 4);
  }
  {
    const auto r = m.run("bad", {1, 1, 1}, {1, 1, 1}, p);
    CHECK(r.fault.kind == FaultKind::kIllegalInstruction);
    CHECK(r.fault.words[0] == 0xcffff000);
    CHECK(r.fault.pc > m.code());
  }
  CHECK(m.run("trap", {1, 1, 1}, {1, 1, 1}, p).fault.kind != FaultKind::kNone);
  {
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      m.stop = true;
    });
    const auto r = m.run("endless", {4, 1, 1}, {64, 1, 1}, p);
    stopper.join();
    CHECK(r.cancelled);
    CHECK_FALSE(r.completed);
    CHECK(r.fault.kind == FaultKind::kNone);
    m.stop = false;
  }
  m.ok("counts", {1, 1, 1}, {1, 1, 1}, p);
  CHECK(m.read<int>(p)[0] == 1);
}

TEST_CASE("code that is overwritten keeps running in its old form until the instruction cache is invalidated",
          "[isa][icache]") {
  Machine m(compiler::SourceKind::kOpenCl, "kernel void k(global int* p) { p[0] = 1; }");
  const uint64_t p = m.buffer(std::vector<int>(16));
  m.ok("k", {1, 1, 1}, {1, 1, 1}, p);
  REQUIRE(m.read<int>(p)[0] == 1);
  // Overwrites the first instruction with s_endpgm.
  const uint32_t end = 0xbfb00000;
  std::memcpy(m.space.at(m.code()) + m.image().kernels[0].code_offset, &end, 4);
  std::memset(m.space.at(p), 0, 4);
  m.ok("k", {1, 1, 1}, {1, 1, 1}, p);
  CHECK(m.read<int>(p)[0] == 1);
  m.executor().invalidate_code();
  std::memset(m.space.at(p), 0, 4);
  m.ok("k", {1, 1, 1}, {1, 1, 1}, p);
  CHECK(m.read<int>(p)[0] == 0);
}
