#include "tools/arg_spec.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "drivers/base/error.hpp"

namespace baregpu::tools {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{64} << 30;

[[noreturn]] void bad(std::string_view text, const std::string& why) {
  throw UsageError(
      {.device = {},
       .what = fmt::format("--arg {}: {}", text, why),
       .source = {},
       .hint = "forms: i32:5, f32:1.5, buf:f32:1024[:zeros|iota|rand(SEED)], buf:f32:@in.npy, local:4096"});
}

template <class T>
bool number(std::string_view s, T& out) {
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
  return ec == std::errc() && end == s.data() + s.size() && !s.empty();
}

template <class T>
void put(NpyArray& a, uint64_t i, T v) {
  std::memcpy(a.bytes.data() + i * sizeof v, &v, sizeof v);
}

/// Stores `integer` (or `real` for float types) as element `i`. False if it is out of range.
bool store_integer(NpyArray& a, uint64_t i, bool negative, uint64_t magnitude) {
  const unsigned bits = dtype_info(a.dtype).size * 8;
  const bool is_signed = a.dtype <= DType::kI64;
  const uint64_t limit = is_signed  ? (uint64_t{1} << (bits - 1)) - !negative
                         : negative ? 0
                                    : ~uint64_t{0} >> (64 - bits);
  if (magnitude > limit) return false;
  const uint64_t value = negative ? 0 - magnitude : magnitude;
  std::memcpy(a.bytes.data() + i * (bits / 8), &value, bits / 8);
  return true;
}

void store_real(NpyArray& a, uint64_t i, double v) {
  if (a.dtype == DType::kF16)
    put(a, i, to_half(v));
  else if (a.dtype == DType::kF32)
    put(a, i, float(v));
  else
    put(a, i, v);
}

bool is_real(DType t) { return t >= DType::kF16; }

void parse_value(std::string_view text, std::string_view value, NpyArray& a) {
  if (is_real(a.dtype)) {
    double v;
    if (!number(value, v)) bad(text, fmt::format("'{}' is not a number", value));
    return store_real(a, 0, v);
  }
  const bool negative = value.starts_with('-');
  std::string_view digits = negative ? value.substr(1) : value;
  uint64_t magnitude = 0;
  const int base = digits.starts_with("0x") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (ec != std::errc() || end != digits.data() + digits.size() || digits.empty() ||
      !store_integer(a, 0, negative, magnitude))
    bad(text, fmt::format("'{}' is not an integer of type {}", value, dtype_info(a.dtype).name));
}

void fill(std::string_view text, std::string_view how, NpyArray& a) {
  const uint64_t n = a.count();
  if (how.empty() || how == "zeros") return;
  if (how == "iota") {
    for (uint64_t i = 0; i < n; ++i)
      if (is_real(a.dtype))
        store_real(a, i, double(i));
      else if (!store_integer(a, i, false, i))
        bad(text, fmt::format("iota of {} elements does not fit {}", n, dtype_info(a.dtype).name));
    return;
  }
  uint64_t seed;
  if (!how.starts_with("rand(") || !how.ends_with(')') || !number(how.substr(5, how.size() - 6), seed))
    bad(text, fmt::format("'{}' is not zeros, iota or rand(SEED)", how));
  for (uint64_t i = 0; i < n; ++i) {
    // splitmix64: the same numbers on every host
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    if (is_real(a.dtype))
      store_real(a, i, double(z >> 11) * 0x1p-52 - 1.0);
    else
      store_integer(a, i, false, z % 128);
  }
}

ArgSpec parse_buffer(std::string_view text, std::string_view rest) {
  ArgSpec out{.kind = ArgSpec::Kind::kBuffer, .text = std::string(text)};
  const size_t colon = rest.find(':');
  const DTypeInfo* type = find_dtype(rest.substr(0, colon));
  if (!type) bad(text, fmt::format("'{}' is not an element type", rest.substr(0, colon)));
  if (colon == rest.npos) bad(text, "a count or @FILE is missing");
  rest.remove_prefix(colon + 1);
  if (rest.starts_with('@')) {
    out.data = read_npy(std::string(rest.substr(1)));
    if (out.data.dtype != type->type)
      throw Error({.device = {},
                   .what = fmt::format("{} holds {}, the argument says {}", rest.substr(1),
                                       dtype_info(out.data.dtype).name, type->name),
                   .source = {},
                   .hint = {}},
                  "dtype");
    if (out.data.bytes.empty()) bad(text, "an empty array cannot be a kernel argument");
    return out;
  }
  const size_t second = rest.find(':');
  uint64_t count;
  if (!number(rest.substr(0, second), count) || count == 0 || count > kMaxBytes / type->size)
    bad(text, fmt::format("'{}' is not a count of elements", rest.substr(0, second)));
  out.data.dtype = type->type;
  out.data.shape = {count};
  out.data.bytes.resize(count * type->size);
  fill(text, second == rest.npos ? std::string_view() : rest.substr(second + 1), out.data);
  return out;
}

}  // namespace

ArgSpec parse_arg_spec(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) bad(text, "there is no ':'");
  const std::string_view head = text.substr(0, colon), rest = text.substr(colon + 1);
  if (head == "buf") return parse_buffer(text, rest);
  ArgSpec out{.text = std::string(text)};
  if (head == "local") {
    out.kind = ArgSpec::Kind::kLocal;
    if (!number(rest, out.local_bytes) || out.local_bytes == 0)
      bad(text, fmt::format("'{}' is not a number of bytes", rest));
    return out;
  }
  const DTypeInfo* type = find_dtype(head);
  if (!type) bad(text, fmt::format("'{}' is not a type", head));
  out.data.dtype = type->type;
  out.data.bytes.resize(type->size);
  parse_value(text, rest, out.data);
  return out;
}

hcq::Arg scalar_arg(const ArgSpec& spec) {
  uint64_t bits = 0;
  std::memcpy(&bits, spec.data.bytes.data(), spec.data.bytes.size());
  switch (spec.data.bytes.size()) {
    case 1: return hcq::Arg(uint8_t(bits));
    case 2: return hcq::Arg(uint16_t(bits));
    case 4: return hcq::Arg(uint32_t(bits));
    default: return hcq::Arg(bits);
  }
}

std::pair<unsigned, std::string> split_index(std::string_view option, std::string_view text) {
  const size_t eq = text.find('=');
  unsigned n;
  if (eq == text.npos || !number(text.substr(0, eq), n) || eq + 1 == text.size())
    throw UsageError({.device = {},
                      .what = fmt::format("{} {}: not N=...", option, text),
                      .source = {},
                      .hint = "N counts --arg options from 0"});
  return {n, std::string(text.substr(eq + 1))};
}

hcq::Dim3 parse_dim3(std::string_view option, std::string_view text) {
  std::array<uint32_t, 3> v{1, 1, 1};
  std::string_view rest = text;
  for (unsigned i = 0;; ++i) {
    const size_t comma = rest.find(',');
    if (i == 3 || !number(rest.substr(0, comma), v[i]) || v[i] == 0)
      throw UsageError({.device = {},
                        .what = fmt::format("{} {}: not X, X,Y or X,Y,Z with positive numbers", option, text),
                        .source = {},
                        .hint = {}});
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  return {v[0], v[1], v[2]};
}

Comparison compare(const NpyArray& got, const NpyArray& want, double tolerance) {
  if (got.dtype != want.dtype || got.count() != want.count())
    throw Error({.device = {},
                 .what = fmt::format("expected {} elements of {}, the buffer has {} of {}", want.count(),
                                     dtype_info(want.dtype).name, got.count(), dtype_info(got.dtype).name),
                 .source = {},
                 .hint = {}},
                "expect");
  Comparison c;
  const unsigned size = dtype_info(got.dtype).size;
  for (uint64_t i = 0; i < got.count(); ++i) {
    if (std::memcmp(got.bytes.data() + i * size, want.bytes.data() + i * size, size) == 0) continue;
    const double g = element(got, i), w = element(want, i);
    if (std::isnan(g) && std::isnan(w)) continue;
    // 64-bit integers that differ below a double's precision still differ.
    double err = std::fabs(g - w);
    if (err == 0 && !is_real(got.dtype)) err = 1;
    if (std::isnan(err)) err = HUGE_VAL;
    c.max_abs_err = std::max(c.max_abs_err, err);
    if (!(err <= tolerance) && c.ok) {
      c.ok = false;
      c.first_bad = i;
      c.got = g;
      c.want = w;
    }
  }
  return c;
}

}  // namespace baregpu::tools
