// Compiled kernels at every optimisation level and both wave sizes; expected values from host arithmetic.
#include <cmath>
#include <numeric>
#include <random>

#include "harness.hpp"
#include "tools/npy.hpp"

using namespace baregpu;
using test::Machine;

namespace {

constexpr const char* kSource = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void vadd(global const float* a, global const float* b, global float* c) { size_t i = get_global_id(0); c[i] = a[i] + b[i]; }
kernel void ints(global const int* a, global const int* b, global int* out, global long* wide) {
  int i = get_global_id(0), x = a[i], y = b[i];
  out[8 * i + 0] = x / y; out[8 * i + 1] = x % y; out[8 * i + 2] = (int)((uint)x / (uint)y); out[8 * i + 3] = mul_hi(x, y);
  out[8 * i + 4] = x >> (y & 31); out[8 * i + 5] = popcount(x) + clz(x); out[8 * i + 6] = rotate(x, y); out[8 * i + 7] = (int)((uint)max(x, y) - (uint)min(x, y));
  long lx = ((long)x << 20) + y, ly = ((long)y << 3) | 1;
  wide[4 * i + 0] = lx * ly; wide[4 * i + 1] = lx / ly; wide[4 * i + 2] = (long)((ulong)lx % (ulong)ly); wide[4 * i + 3] = lx >> (x & 63);
}
kernel void doubles(global const double* a, global const double* b, global double* out) {
  int i = get_global_id(0);
  out[4 * i] = a[i] / b[i]; out[4 * i + 1] = sqrt(fabs(a[i])); out[4 * i + 2] = fma(a[i], b[i], 1.0); out[4 * i + 3] = floor(a[i]) + (double)(int)b[i];
}
kernel void floats(global const float* a, global const float* b, global float* out) {
  int i = get_global_id(0);
  out[6 * i] = a[i] / b[i]; out[6 * i + 1] = sqrt(fabs(a[i])); out[6 * i + 2] = (float)(int)(a[i] * 1000.0f); out[6 * i + 3] = fmax(a[i], b[i]);
  out[6 * i + 4] = exp(a[i]); out[6 * i + 5] = sin(b[i]) + log(fabs(a[i]) + 1.0f);
}
kernel void halves(global const half* a, global const half* b, global half* out) { int i = get_global_id(0); out[3 * i] = a[i] + b[i]; out[3 * i + 1] = a[i] * b[i]; out[3 * i + 2] = fma(a[i], b[i], a[i]); }
kernel void packed(global const half2* a, global const half2* b, global half2* out) { int i = get_global_id(0); out[i] = a[i] * b[i] + a[i]; }
kernel void bytes(global const uchar* in, global uchar* out, global short* s) { int i = get_global_id(0); out[i] = in[i] * 3 + 1; s[i] = (short)((char)in[i]) * 2; }
kernel void reduce(global const int* in, global int* out) {
  local int part[256];
  int l = get_local_id(0);
  part[l] = in[get_global_id(0)];
  for (int s = get_local_size(0) / 2; s > 0; s >>= 1) { barrier(CLK_LOCAL_MEM_FENCE); if (l < s) part[l] += part[l + s]; }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l == 0) out[get_group_id(0)] = part[0];
}
kernel void matmul(global const float* a, global const float* b, global float* c, int n) {
  local float ta[16][16], tb[16][16];
  int x = get_local_id(0), y = get_local_id(1), col = get_group_id(0) * 16 + x, row = get_group_id(1) * 16 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x]; tb[y][x] = b[(k + y) * n + col];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + col] = sum;
}
kernel void collatz(global const uint* in, global uint* steps) {
  uint i = get_global_id(0), n = in[i], s = 0;
  while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; ++s; if (s > 500) break; }
  steps[i] = s;
}
kernel void choose(global const int* in, global int* out) {
  int i = get_global_id(0), v = in[i];
  switch (v % 7) { case 0: v += 100; break; case 1: v *= 3; break; case 2: v = -v; break; case 3: v ^= 0x55; break; case 4: v <<= 2; break; case 5: v -= 7; break; default: v = 42; }
  out[i] = v;
}
__attribute__((noinline)) int fib(int n) { int a = 0, b = 1; for (int i = 0; i < n; ++i) { int t = a + b; a = b; b = t; } return a; }
__attribute__((noinline)) int twice(int n) { return fib(n) * 2 + fib(n / 2); }
kernel void calls(global const int* in, global int* out) { int i = get_global_id(0); out[i] = twice(in[i] & 15); }
kernel void arrays(global const int* in, global int* out) {
  int i = get_global_id(0), t[40];
  for (int k = 0; k < 40; ++k) t[k] = in[i] * k;
  for (int k = 0; k < 39; ++k) if (t[k] > t[(k * 7 + in[i]) % 40]) { int x = t[k]; t[k] = t[39 - k]; t[39 - k] = x; }
  int s = 0;
  for (int k = 0; k < 40; ++k) s = s * 31 + t[k];
  out[i] = s;
}
kernel void atomics(global int* counters, global uint* order) {
  int i = get_global_id(0);
  atomic_add(&counters[0], i); atomic_max(&counters[1], i ^ 21); atomic_xor(&counters[2], i); atomic_inc(&counters[3]);
  order[atomic_add(&counters[4], 1)] = i;
  local int l;
  if (get_local_id(0) == 0) l = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&l, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) atomic_add(&counters[5], l);
}
kernel void grid3(global uint* out) {
  size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  out[(z * get_global_size(1) + y) * get_global_size(0) + x] = x | y << 8 | z << 16 | get_local_id(2) << 24;
}
kernel void vectors(global const float4* a, global float4* out, global uchar4* small) {
  int i = get_global_id(0);
  out[i] = a[i].wzyx * (float4)(1, 2, 3, 4) + a[i];
  small[i] = convert_uchar4_sat(a[i]);
}
)";

struct Row {
  unsigned optimization;
  bool wave64;
};
Row row() { return GENERATE(Row{0, false}, Row{1, false}, Row{2, false}, Row{3, false}, Row{0, true}, Row{3, true}); }

template <class T>
std::vector<T> random_values(size_t n, T low, T high, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<T> v(n);
  for (T& x : v)
    if constexpr (std::is_floating_point_v<T>)
      x = T(std::uniform_real_distribution<double>(double(low), double(high))(rng));
    else
      x = T(std::uniform_int_distribution<int64_t>(int64_t(low), int64_t(high))(rng));
  return v;
}

uint16_t half(double v) { return tools::to_half(v); }
double number(uint16_t h) { return tools::from_half(h); }

}  // namespace

TEST_CASE("compiled kernels compute what the host computes", "[isa][kernels]") {
  const Row r = row();
  CAPTURE(r.optimization, r.wave64);
  Machine m(compiler::SourceKind::kOpenCl, kSource, {r.optimization, r.wave64});
  constexpr unsigned n = 256;
  const std::array<uint32_t, 3> groups{4, 1, 1}, block{64, 1, 1};

  {
    const auto a = random_values<float>(n, -9, 9, 1), b = random_values<float>(n, -9, 9, 2);
    const uint64_t out = m.buffer(std::vector<float>(n));
    m.ok("vadd", groups, block, m.buffer(a), m.buffer(b), out);
    const auto got = m.read<float>(out);
    for (unsigned i = 0; i < n; ++i) REQUIRE(got[i] == a[i] + b[i]);
  }
  {
    auto a = random_values<int>(n, INT32_MIN, INT32_MAX, 3), b = random_values<int>(n, -1000, 1000, 4);
    for (int& x : b) x = x ? x : 1;
    a[0] = INT32_MAX, b[0] = 1, a[1] = INT32_MIN, b[1] = 2, a[2] = 0, b[2] = -7;
    const uint64_t out = m.buffer(std::vector<int>(8 * n)), wide = m.buffer(std::vector<int64_t>(4 * n));
    m.ok("ints", groups, block, m.buffer(a), m.buffer(b), out, wide);
    const auto got = m.read<int>(out);
    const auto w = m.read<int64_t>(wide);
    for (unsigned i = 0; i < n; ++i) {
      CAPTURE(i, a[i], b[i]);
      const int x = a[i], y = b[i];
      const uint32_t rot = uint32_t(y) & 31;
      const int want[8] = {x / y,
                           x % y,
                           int(uint32_t(x) / uint32_t(y)),
                           int(int64_t(x) * y >> 32),
                           x >> (y & 31),
                           __builtin_popcount(uint32_t(x)) + (x ? __builtin_clz(uint32_t(x)) : 32),
                           int(uint32_t(x) << rot | (rot ? uint32_t(x) >> (32 - rot) : 0)),
                           int(uint32_t(std::max(x, y)) - uint32_t(std::min(x, y)))};
      for (int k = 0; k < 8; ++k) {
        CAPTURE(k);
        REQUIRE(got[8 * i + unsigned(k)] == want[k]);
      }
      const int64_t lx = int64_t(uint64_t(int64_t(x)) << 20) + y, ly = int64_t(uint64_t(int64_t(y)) << 3) | 1;
      REQUIRE(w[4 * i] == int64_t(uint64_t(lx) * uint64_t(ly)));
      REQUIRE(w[4 * i + 1] == lx / ly);
      REQUIRE(w[4 * i + 2] == int64_t(uint64_t(lx) % uint64_t(ly)));
      REQUIRE(w[4 * i + 3] == lx >> (x & 63));
    }
  }
  {
    auto a = random_values<double>(n, -1e6, 1e6, 5), b = random_values<double>(n, -1e3, 1e3, 6);
    a[0] = 1e300, b[0] = 1e-3, a[1] = 1e-300, b[1] = 7, a[2] = 0, b[2] = 3, a[3] = 5e-324, b[3] = 2;
    const uint64_t out = m.buffer(std::vector<double>(4 * n));
    m.ok("doubles", groups, block, m.buffer(a), m.buffer(b), out);
    const auto got = m.read<double>(out);
    for (unsigned i = 0; i < n; ++i) {
      CAPTURE(i, a[i], b[i]);
      REQUIRE(got[4 * i] == a[i] / b[i]);
      REQUIRE(got[4 * i + 1] == Approx(std::sqrt(std::fabs(a[i]))).epsilon(1e-15));
      REQUIRE(got[4 * i + 2] == std::fma(a[i], b[i], 1.0));
      REQUIRE(got[4 * i + 3] == std::floor(a[i]) + double(int(b[i])));
    }
  }
  {
    auto a = random_values<float>(n, -20, 20, 7), b = random_values<float>(n, -20, 20, 8);
    a[0] = 1e38f, b[0] = 1e-3f, a[1] = 1e-38f, b[1] = 3e5f, a[2] = -0.0f, b[2] = 5, a[3] = 3e38f, b[3] = 2.5e38f;
    a[4] = INFINITY, b[4] = 2, a[5] = 1, b[5] = 0;
    const uint64_t out = m.buffer(std::vector<float>(6 * n));
    m.ok("floats", groups, block, m.buffer(a), m.buffer(b), out);
    const auto got = m.read<float>(out);
    auto near = [](float g, double want, double ulps) {
      return std::isnan(want)   ? std::isnan(g)
             : std::isinf(want) ? double(g) == want
                                : std::fabs(double(g) - want) <= ulps * std::max(std::fabs(want) * 0x1p-23, 0x1p-149);
    };
    for (unsigned i = 0; i < n; ++i) {
      CAPTURE(i, a[i], b[i], got[6 * i], got[6 * i + 4], got[6 * i + 5]);
      REQUIRE(near(got[6 * i], double(a[i] / b[i]), 2.5));  // OpenCL allows 2.5 ulp
      REQUIRE(near(got[6 * i + 1], std::sqrt(std::fabs(double(a[i]))), 3));
      if (std::fabs(a[i]) < 2e6) REQUIRE(got[6 * i + 2] == float(int(a[i] * 1000.0f)));
      REQUIRE(got[6 * i + 3] == std::fmax(a[i], b[i]));
      if (std::fabs(a[i]) < 80) REQUIRE(near(got[6 * i + 4], std::exp(double(a[i])), 4));
      if (std::fabs(b[i]) < 100 && std::fabs(a[i]) < 1e6)
        REQUIRE(got[6 * i + 5] ==
                Approx(std::sin(double(b[i])) + std::log(std::fabs(double(a[i])) + 1.0)).margin(2e-6));
    }
  }
  {
    std::vector<uint16_t> a(n), b(n);
    const auto fa = random_values<float>(n, -30, 30, 9), fb = random_values<float>(n, -30, 30, 10);
    for (unsigned i = 0; i < n; ++i) a[i] = half(fa[i]), b[i] = half(fb[i]);
    a[0] = half(65504), b[0] = half(32), a[1] = 1, b[1] = half(0.5), a[2] = half(-0.0), b[2] = half(0);
    const uint64_t out = m.buffer(std::vector<uint16_t>(3 * n)), pk = m.buffer(std::vector<uint16_t>(n));
    m.ok("halves", groups, block, m.buffer(a), m.buffer(b), out);
    const auto got = m.read<uint16_t>(out);
    for (unsigned i = 0; i < n; ++i) {
      CAPTURE(i, number(a[i]), number(b[i]));
      REQUIRE(number(got[3 * i]) == number(half(number(a[i]) + number(b[i]))));
      REQUIRE(number(got[3 * i + 1]) == number(half(number(a[i]) * number(b[i]))));
      REQUIRE(number(got[3 * i + 2]) == number(half(number(a[i]) * number(b[i]) + number(a[i]))));  // exact in double
    }
    m.ok("packed", {2, 1, 1}, {64, 1, 1}, m.buffer(a), m.buffer(b), pk);
    const auto p = m.read<uint16_t>(pk);
    for (unsigned i = 3; i < n; ++i) {
      CAPTURE(i);
      const double fused = number(half(number(a[i]) * number(b[i]) + number(a[i]))),
                   split = number(half(number(half(number(a[i]) * number(b[i]))) + number(a[i])));
      REQUIRE((number(p[i]) == fused || number(p[i]) == split));
    }
  }
  {
    std::vector<uint8_t> in(n);
    std::iota(in.begin(), in.end(), uint8_t(0));
    const uint64_t out = m.buffer(std::vector<uint8_t>(n)), s = m.buffer(std::vector<int16_t>(n));
    m.ok("bytes", groups, block, m.buffer(in), out, s);
    for (unsigned i = 0; i < n; ++i) {
      REQUIRE(m.read<uint8_t>(out)[i] == uint8_t(in[i] * 3 + 1));
      REQUIRE(m.read<int16_t>(s)[i] == int16_t(int8_t(in[i])) * 2);
    }
  }
}

TEST_CASE("barriers, loops, calls, private arrays and atomics", "[isa][kernels]") {
  const Row r = row();
  CAPTURE(r.optimization, r.wave64);
  Machine m(compiler::SourceKind::kOpenCl, kSource, {r.optimization, r.wave64});
  {
    const auto in = random_values<int>(1024, -100, 100, 1);
    const uint64_t out = m.buffer(std::vector<int>(4));
    m.ok("reduce", {4, 1, 1}, {256, 1, 1}, m.buffer(in), out);
    for (unsigned g = 0; g < 4; ++g)
      REQUIRE(m.read<int>(out)[g] == std::accumulate(in.begin() + g * 256, in.begin() + (g + 1) * 256, 0));
  }
  {
    constexpr int n = 48;
    std::vector<float> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) a[size_t(i)] = float(i % 7) - 3, b[size_t(i)] = float(i % 5) - 2;  // exact sums
    const uint64_t out = m.buffer(std::vector<float>(n * n));
    m.ok("matmul", {3, 3, 1}, {16, 16, 1}, m.buffer(a), m.buffer(b), out, n);
    const auto c = m.read<float>(out);
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        float s = 0;
        for (int k = 0; k < n; ++k) s += a[size_t(y * n + k)] * b[size_t(k * n + x)];
        REQUIRE(c[size_t(y * n + x)] == s);
      }
  }
  {
    std::vector<uint32_t> in(200);
    std::iota(in.begin(), in.end(), 1u);
    const uint64_t out = m.buffer(std::vector<uint32_t>(200));
    m.ok("collatz", {2, 1, 1}, {100, 1, 1}, m.buffer(in), out);  // the last wave is partly empty
    const auto got = m.read<uint32_t>(out);
    for (uint32_t i = 0; i < 200; ++i) {
      uint32_t x = i + 1, s = 0;
      while (x != 1) x = x & 1 ? 3 * x + 1 : x / 2, ++s;
      REQUIRE(got[i] == s);
    }
  }
  {
    std::vector<int> in(128);
    std::iota(in.begin(), in.end(), 0);
    const uint64_t out = m.buffer(std::vector<int>(128));
    m.ok("choose", {2, 1, 1}, {64, 1, 1}, m.buffer(in), out);
    const auto got = m.read<int>(out);
    for (int i = 0; i < 128; ++i) {
      int v = i;
      switch (v % 7) {
        case 0: v += 100; break;
        case 1: v *= 3; break;
        case 2: v = -v; break;
        case 3: v ^= 0x55; break;
        case 4: v <<= 2; break;
        case 5: v -= 7; break;
        default: v = 42;
      }
      REQUIRE(got[size_t(i)] == v);
    }
    m.ok("calls", {2, 1, 1}, {64, 1, 1}, m.buffer(in), out);
    const int fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
    for (int i = 0; i < 128; ++i) REQUIRE(m.read<int>(out)[size_t(i)] == fib[i & 15] * 2 + fib[(i & 15) / 2]);
    m.ok("arrays", {2, 1, 1}, {64, 1, 1}, m.buffer(in), out);
    for (int i = 0; i < 128; ++i) {
      int t[40], s = 0;
      for (int k = 0; k < 40; ++k) t[k] = i * k;
      for (int k = 0; k < 39; ++k)
        if (t[k] > t[(k * 7 + i) % 40]) std::swap(t[k], t[39 - k]);
      for (int k = 0; k < 40; ++k) s = int(uint32_t(s) * 31u + uint32_t(t[k]));
      REQUIRE(m.read<int>(out)[size_t(i)] == s);
    }
  }
  {
    const uint64_t counters = m.buffer(std::vector<int>(8)), order = m.buffer(std::vector<uint32_t>(512));
    m.ok("atomics", {8, 1, 1}, {64, 1, 1}, counters, order);
    const auto c = m.read<int>(counters);
    CHECK(c[0] == 511 * 512 / 2);
    CHECK(c[1] == 511);
    CHECK(c[2] == 0);  // xor of 0..511
    CHECK(c[3] == 512);
    CHECK(c[5] == 512);
    auto o = m.read<uint32_t>(order);
    std::sort(o.begin(), o.end());
    for (uint32_t i = 0; i < 512; ++i) REQUIRE(o[i] == i);
  }
  {
    const uint64_t out = m.buffer(std::vector<uint32_t>(12 * 6 * 4));
    m.ok("grid3", {3, 2, 2}, {4, 3, 2}, out);
    const auto got = m.read<uint32_t>(out);
    for (uint32_t z = 0; z < 4; ++z)
      for (uint32_t y = 0; y < 6; ++y)
        for (uint32_t x = 0; x < 12; ++x) REQUIRE(got[(z * 6 + y) * 12 + x] == (x | y << 8 | z << 16 | (z % 2) << 24));
  }
  {
    const auto a = random_values<float>(256, -300, 300, 4);
    const uint64_t out = m.buffer(std::vector<float>(256)), small = m.buffer(std::vector<uint8_t>(256));
    m.ok("vectors", {1, 1, 1}, {64, 1, 1}, m.buffer(a), out, small);
    const auto got = m.read<float>(out);
    const auto bytes = m.read<uint8_t>(small);
    for (unsigned i = 0; i < 256; ++i) {
      const float f = a[(i & ~3u) + 3 - i % 4], k = float(i % 4 + 1);
      REQUIRE((got[i] == f * k + a[i] || got[i] == std::fma(f, k, a[i])));
      REQUIRE(bytes[i] == uint8_t(std::min(255.0f, std::max(0.0f, std::trunc(a[i])))));
    }
  }
}

TEST_CASE("speed of the tiled product", "[.bench]") {
  Machine m(compiler::SourceKind::kOpenCl, kSource, {3, false, 1});
  constexpr int n = 256;
  const uint64_t a = m.buffer(std::vector<float>(n * n, 1)), b = m.buffer(std::vector<float>(n * n, 2)),
                 c = m.buffer(std::vector<float>(n * n));
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    m.ok("matmul", {16, 16, 1}, {16, 16, 1}, a, b, c, n);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  WARN(2.0 * n * n * n / best * 1e-9 << " GFLOP/s on one thread");
}
