// OpenCL C of the demos and benchmarks.
#pragma once

namespace baregpu::tools {

/// c[i] = a[i] + b[i]; n is a multiple of the workgroup.
inline constexpr char kVaddSource[] = R"(
__kernel void vadd(__global const float* restrict a, __global const float* restrict b, __global float* restrict c) {
  size_t i = get_global_id(0);
  c[i] = a[i] + b[i];
}
)";

/// C = A B for n x n matrices, 16 x 16 tiles in LDS; block 16,16; grid n/16,n/16.
inline constexpr char kMatmulSource[] = R"(
#define T 16
__kernel __attribute__((reqd_work_group_size(T, T, 1)))
void matmul16(__global const float* restrict a, __global const float* restrict b, __global float* restrict c, int n) {
  __local float ta[T][T], tb[T][T];
  const int x = get_local_id(0), y = get_local_id(1);
  const int col = get_group_id(0) * T + x, row = get_group_id(1) * T + y;
  float sum = 0.0f;
  for (int k = 0; k < n; k += T) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + col];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < T; ++i) sum += ta[y][i] * tb[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + col] = sum;
}
)";

/// y[b][o] = act(bias[o] + sum_i x[b][i] w[o][i]); one work-item an output; grid (outputs / 64, batch), block 64.
inline constexpr char kMlpSource[] = R"(
__kernel void linear(__global const float* restrict x, __global const float* restrict w, __global const float* restrict bias,
                     __global float* restrict y, int inputs, int outputs, int relu) {
  const int o = get_global_id(0), b = get_global_id(1);
  if (o >= outputs) return;
  float sum = bias[o];
  for (int i = 0; i < inputs; ++i) sum += x[b * inputs + i] * w[o * inputs + i];
  y[b * outputs + o] = relu ? fmax(sum, 0.0f) : sum;
}
/* One workgroup of 64 a row: numerically safe softmax with a tree reduction in LDS. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void softmax(__global float* y, int n) {
  __local float part[64];
  const int l = get_local_id(0);
  __global float* row = y + get_group_id(0) * n;
  float m = -INFINITY;
  for (int i = l; i < n; i += 64) m = fmax(m, row[i]);
  part[l] = m;
  for (int s = 32; s > 0; s >>= 1) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < s) part[l] = fmax(part[l], part[l + s]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  m = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = l; i < n; i += 64) sum += exp(row[i] - m);
  part[l] = sum;
  for (int s = 32; s > 0; s >>= 1) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < s) part[l] += part[l + s];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = part[0];
  for (int i = l; i < n; i += 64) row[i] = exp(row[i] - m) / sum;
}
)";

/// Nothing: what a dispatch costs.
inline constexpr char kEmptySource[] = R"(
__kernel void empty(__global int* p, int v) {}
)";

}  // namespace baregpu::tools
