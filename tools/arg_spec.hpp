// Kernel arguments as text: `i32:5`, `f32:1.5`, `buf:f32:1024:iota`, `buf:f32:@in.npy`, `local:4096`.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hcq/kernel_args.hpp"
#include "tools/npy.hpp"

namespace baregpu::tools {

struct ArgSpec {
  enum class Kind { kScalar, kBuffer, kLocal };
  Kind kind = Kind::kScalar;
  NpyArray data;  ///< buffer: contents at launch; scalar: one element
  uint32_t local_bytes = 0;
  std::string text;
};

/// Parses one SPEC and reads the file that it names.
/// TYPE:VALUE | buf:TYPE:COUNT[:zeros|iota|rand(SEED)] | buf:TYPE:@FILE.npy | local:BYTES
/// TYPE is i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64. rand gives floats in [-1, 1), integers in [0, 128).
/// @throws UsageError for text that does not parse, Error for a file that does not fit.
ArgSpec parse_arg_spec(std::string_view text);

/// The scalar as a launch argument.
hcq::Arg scalar_arg(const ArgSpec& spec);

/// "N=rest". @throws UsageError showing `option`.
std::pair<unsigned, std::string> split_index(std::string_view option, std::string_view text);

/// "X", "X,Y" or "X,Y,Z", each 1..2^32-1. @throws UsageError showing `option`.
hcq::Dim3 parse_dim3(std::string_view option, std::string_view text);

/// The largest absolute difference; NaN equals NaN, and infinities only themselves.
/// @throws Error if types or counts differ.
struct Comparison {
  bool ok = true;
  double max_abs_err = 0;
  uint64_t first_bad = 0;
  double got = 0, want = 0;
};
Comparison compare(const NpyArray& got, const NpyArray& want, double tolerance);

}  // namespace baregpu::tools
