#include "tools/arg_spec.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::tools;

namespace {

template <class T>
T value(const char* text) {
  const ArgSpec a = parse_arg_spec(text);
  REQUIRE(a.data.bytes.size() == sizeof(T));
  T v;
  std::memcpy(&v, a.data.bytes.data(), sizeof v);
  return v;
}

}  // namespace

TEST_CASE("scalars take the whole range of their type and nothing else", "[tools][args]") {
  CHECK(value<int32_t>("i32:-5") == -5);
  CHECK(value<int8_t>("i8:-128") == -128);
  CHECK(value<uint8_t>("u8:255") == 255);
  CHECK(value<uint64_t>("u64:18446744073709551615") == ~uint64_t{0});
  CHECK(value<int64_t>("i64:-9223372036854775808") == std::numeric_limits<int64_t>::min());
  CHECK(value<uint32_t>("u32:0xff") == 255);
  CHECK(value<float>("f32:1.5") == 1.5f);
  CHECK(value<double>("f64:-1e300") == -1e300);
  CHECK(value<uint16_t>("f16:1") == 0x3c00);
  for (const char* bad : {"",
                          "i32",
                          "i32:",
                          "i32:x",
                          "i32:1.5",
                          "i8:128",
                          "i8:-129",
                          "u8:-1",
                          "u8:256",
                          "u64:18446744073709551616",
                          "f32:",
                          "f32:1x",
                          "x32:1",
                          "buf",
                          "buf:",
                          "buf:f32",
                          "buf:f32:",
                          "buf:f32:0",
                          "buf:f32:-1",
                          "buf:f99:4",
                          "buf:f32:4:ones",
                          "buf:f32:4:rand",
                          "buf:f32:4:rand()",
                          "buf:f32:4:rand(x)",
                          "buf:f32:4:rand(1",
                          "buf:i8:200:iota",
                          "buf:f32:99999999999999",
                          "local:0",
                          "local:x"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_arg_spec(bad), UsageError);
  }
  CHECK_THROWS_AS(parse_arg_spec("buf:f32:@/nonexistent.npy"), Error);
}

TEST_CASE("buffers are filled as asked, the same on every run", "[tools][args]") {
  const ArgSpec iota = parse_arg_spec("buf:i16:5:iota");
  CHECK(element(iota.data, 4) == 4);
  CHECK(element(parse_arg_spec("buf:f32:3").data, 2) == 0);
  const ArgSpec a = parse_arg_spec("buf:f32:1000:rand(1)"), b = parse_arg_spec("buf:f32:1000:rand(1)"),
                c = parse_arg_spec("buf:f32:1000:rand(2)");
  CHECK(a.data.bytes == b.data.bytes);
  CHECK(a.data.bytes != c.data.bytes);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double v = element(a.data, uint64_t(i));
    REQUIRE((v >= -1.0 && v <= 1.0));
    sum += v;
  }
  CHECK(std::fabs(sum) < 60);  // 3.3 sigma of 1000 uniform values
  CHECK(parse_arg_spec("local:4096").local_bytes == 4096);
}

TEST_CASE("dimensions and indexed options", "[tools][args]") {
  CHECK(parse_dim3("--grid", "7") == hcq::Dim3{7, 1, 1});
  CHECK(parse_dim3("--grid", "7,8,9") == hcq::Dim3{7, 8, 9});
  for (const char* bad : {"", "0", "1,", ",1", "1,2,3,4", "-1", "1,x", "4294967296"})
    CHECK_THROWS_AS(parse_dim3("--grid", bad), UsageError);
  CHECK(split_index("--out", "2=a=b.npy") == std::pair<unsigned, std::string>{2, "a=b.npy"});
  for (const char* bad : {"", "2", "=a", "x=a", "2="}) CHECK_THROWS_AS(split_index("--out", bad), UsageError);
}

TEST_CASE("comparison knows NaN, infinities and large integers", "[tools][args]") {
  auto f = [](std::vector<float> v) {
    NpyArray a{DType::kF32, {v.size()}, std::vector<std::byte>(v.size() * 4)};
    std::memcpy(a.bytes.data(), v.data(), v.size() * 4);
    return a;
  };
  CHECK(compare(f({1, 2}), f({1, 2}), 0).ok);
  CHECK(compare(f({NAN, INFINITY}), f({NAN, INFINITY}), 0).ok);
  CHECK_FALSE(compare(f({NAN}), f({1}), 1e30).ok);
  CHECK_FALSE(compare(f({INFINITY}), f({1e30f}), 1e38).ok);
  CHECK(compare(f({0.0f}), f({-0.0f}), 0).ok);
  const Comparison c = compare(f({1, 2, 3}), f({1, 2.5, 4}), 0.5);
  CHECK_FALSE(c.ok);
  CHECK(c.first_bad == 2);
  CHECK(c.max_abs_err == 1);
  NpyArray a{DType::kI64, {1}, std::vector<std::byte>(8)}, b = a;
  const int64_t x = (int64_t{1} << 60) + 1, y = int64_t{1} << 60;
  std::memcpy(a.bytes.data(), &x, 8);
  std::memcpy(b.bytes.data(), &y, 8);
  CHECK_FALSE(compare(a, b, 0).ok);
  CHECK_THROWS_AS(compare(f({1}), f({1, 2}), 0), Error);
  CHECK_THROWS_AS(compare(f({1}), a, 0), Error);
}
