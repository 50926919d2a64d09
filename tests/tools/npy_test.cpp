#include "tools/npy.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::tools;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> file(const std::string& header, const std::string& data, unsigned major = 1) {
  std::string out = "\x93NUMPY";
  out += char(major);
  out += '\0';
  out += char(header.size() & 0xff);
  out += char(header.size() >> 8);
  if (major > 1) out += std::string(2, '\0');
  out += header + data;
  std::vector<std::byte> bytes(out.size());
  std::memcpy(bytes.data(), out.data(), out.size());
  return bytes;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  try {
    parse_npy(bytes, "x.npy");
  } catch (const ParseError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("files as numpy.save writes them are read", "[tools][npy]") {
  // numpy.save of numpy.arange(6, dtype='<f4').reshape(2, 3): the header as NumPy 1.24 writes it.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  std::string data;
  for (int i = 0; i < 6; ++i) {
    const float f = float(i);
    data.append(reinterpret_cast<const char*>(&f), 4);
  }
  for (unsigned version : {1u, 2u, 3u}) {
    const NpyArray a = parse_npy(file(header + std::string(20, ' ') + "\n", data, version), "x.npy");
    CHECK(a.dtype == DType::kF32);
    CHECK(a.shape == std::vector<uint64_t>{2, 3});
    CHECK(element(a, 5) == 5.0);
  }
  CHECK(parse_npy(file("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", std::string(8, '\1')), "x.npy")
            .count() == 1);
  CHECK(parse_npy(file("{\"shape\": (1,), \"descr\": \"|u1\", \"fortran_order\": False}", "a"), "x.npy").count() == 1);
  CHECK(parse_npy(file("{'descr': '<f2', 'fortran_order': False, 'shape': (0, 5), }\n", ""), "x.npy").count() == 0);
}

TEST_CASE("what is written is read back", "[tools][npy]") {
  const fs::path path = fs::temp_directory_path() / "baregpu-test.npy";
  NpyArray a{DType::kI16, {3, 1}, std::vector<std::byte>(6, std::byte{7})};
  write_npy(path.string(), a);
  const NpyArray b = read_npy(path.string());
  CHECK(b.dtype == a.dtype);
  CHECK(b.shape == a.shape);
  CHECK(b.bytes == a.bytes);
  CHECK(format_npy(a).size() % 64 == 6);  // the data starts on a multiple of 64
  fs::remove(path);
  CHECK_THROWS_AS(write_npy("/nonexistent/x.npy", a), Error);
  CHECK_THROWS_AS(read_npy("/nonexistent/x.npy"), Error);
  CHECK_THROWS_AS(read_npy("/"), Error);
}

TEST_CASE("bad files are refused by name", "[tools][npy]") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const std::vector<std::byte> whole = file(good, std::string(8, '\0'));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + long(n));
    REQUIRE(error_of(cut).find("x.npy") != std::string::npos);
  }
  CHECK(error_of(file(good, std::string(9, '\0'))) != "");
  for (const char* header :
       {"", "{", "[]", "{'descr': '<f4'}", "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "{'descr': '<f4",
        "{'x': '<f4', 'fortran_order': False, 'shape': (2,)}"}) {
    CAPTURE(header);
    CHECK(error_of(file(header, std::string(8, '\0'))) != "");
  }
  CHECK(error_of(file(good, std::string(8, '\0'), 9)).find("version 9") != std::string::npos);
}

TEST_CASE("half conversion rounds to nearest even and keeps specials", "[tools][npy]") {
  struct Row {
    double in;
    uint16_t bits;
  };  // from IEEE 754 binary16
  for (const Row& r :
       {Row{0.0, 0}, Row{-0.0, 0x8000}, Row{1.0, 0x3c00}, Row{-2.0, 0xc000}, Row{65504, 0x7bff}, Row{65519.99, 0x7bff},
        Row{65520, 0x7c00}, Row{1e9, 0x7c00}, Row{0x1p-24, 1}, Row{0x1p-25, 0}, Row{0x1.8p-25, 1}, Row{0x1.8p-24, 2},
        Row{1.00048828125, 0x3c00}, Row{1.00146484375, 0x3c02}, Row{0x1p-14, 0x0400}, Row{0x1.ff8p-15, 0x03ff},
        Row{0x1.ffcp-15, 0x0400}, Row{HUGE_VAL, 0x7c00}}) {
    CAPTURE(r.in);
    CHECK(to_half(r.in) == r.bits);
  }
  for (uint32_t b = 0; b < 0x7c00; ++b) REQUIRE(to_half(from_half(uint16_t(b))) == b);
  CHECK(std::isnan(from_half(to_half(std::nan("")))));
}
