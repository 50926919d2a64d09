#include "tools/npy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "drivers/base/error.hpp"

// Format: NumPy documentation, numpy.lib.format.
namespace baregpu::tools {
namespace {

constexpr DTypeInfo kTypes[] = {
    {DType::kI8, "i8", "|i1", 1},   {DType::kI16, "i16", "<i2", 2}, {DType::kI32, "i32", "<i4", 4},
    {DType::kI64, "i64", "<i8", 8}, {DType::kU8, "u8", "|u1", 1},   {DType::kU16, "u16", "<u2", 2},
    {DType::kU32, "u32", "<u4", 4}, {DType::kU64, "u64", "<u8", 8}, {DType::kF16, "f16", "<f2", 2},
    {DType::kF32, "f32", "<f4", 4}, {DType::kF64, "f64", "<f8", 8},
};
constexpr char kMagic[] = "\x93NUMPY";
constexpr uint64_t kMaxHeader = 1 << 20;

[[noreturn]] void bad(const std::string& name, const std::string& what) {
  throw ParseError({.device = {},
                    .what = name + ": " + what,
                    .source = {},
                    .hint = "a .npy file as numpy.save writes it is wanted"});
}

/// The header is a Python dict literal; only the three keys of the format may be in it.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : s_(text), name_(name) {}
  void parse(NpyArray& out) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        descr = true;
        set_type(quoted(), out);
      } else if (key == "fortran_order") {
        order = true;
        if (word() != "False") bad(name_, "Fortran order is not supported");
      } else if (key == "shape") {
        shape = true;
        tuple(out.shape);
      } else {
        bad(name_, "unknown header key '" + key + "'");
      }
      if (!accept(',') && peek() != '}') bad(name_, "the header is not a dictionary");
    }
    if (!descr || !order || !shape) bad(name_, "the header lacks descr, fortran_order or shape");
  }

 private:
  char peek() {
    while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
    return at_ < s_.size() ? s_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(name_, fmt::format("the header lacks '{}' at {}", c, at_));
  }
  std::string quoted() {
    const char q = peek();
    if (q != '\'' && q != '"') bad(name_, fmt::format("the header lacks a string at {}", at_));
    const size_t end = s_.find(q, ++at_);
    if (end == s_.npos) bad(name_, "the header has an open string");
    std::string out(s_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  std::string word() {
    peek();
    size_t start = at_;
    while (at_ < s_.size() && std::isalpha(static_cast<unsigned char>(s_[at_]))) ++at_;
    return std::string(s_.substr(start, at_ - start));
  }
  void tuple(std::vector<uint64_t>& out) {
    expect('(');
    while (!accept(')')) {
      peek();
      uint64_t v = 0;
      const size_t start = at_;
      for (; at_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[at_])); ++at_) {
        if (v > (uint64_t{1} << 48)) bad(name_, "a dimension is too large");
        v = v * 10 + uint64_t(s_[at_] - '0');
      }
      if (at_ == start || out.size() == 64) bad(name_, "the shape is not a tuple of numbers");
      out.push_back(v);
      if (!accept(',') && peek() != ')') bad(name_, "the shape is not a tuple of numbers");
    }
  }
  void set_type(const std::string& descr, NpyArray& out) {
    for (const DTypeInfo& t : kTypes)
      if (descr == t.npy || (t.size == 1 && descr.size() == 3 && descr.substr(1) == t.npy + 1)) {
        out.dtype = t.type;
        return;
      }
    bad(name_, "element type '" + descr + "' is not supported (little-endian integers and floats are)");
  }
  std::string_view s_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

std::span<const DTypeInfo> dtypes() { return kTypes; }
const DTypeInfo& dtype_info(DType t) { return kTypes[unsigned(t)]; }
const DTypeInfo* find_dtype(std::string_view name) {
  for (const DTypeInfo& t : kTypes)
    if (name == t.name) return &t;
  return nullptr;
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& name) {
  if (file.size() < 10 || std::memcmp(file.data(), kMagic, 6) != 0) bad(name, "not a .npy file");
  const unsigned major = unsigned(file[6]);
  if (major < 1 || major > 3) bad(name, fmt::format("format version {} is unknown", major));
  uint64_t start = major == 1 ? 10 : 12, length = 0;
  if (file.size() < start) bad(name, "the header is cut off");
  for (unsigned i = 0; i < start - 8; ++i) length |= uint64_t(file[8 + i]) << (8 * i);
  if (length > kMaxHeader || file.size() - start < length)
    bad(name, fmt::format("the header of {} bytes is cut off", length));
  NpyArray out;
  HeaderParser({reinterpret_cast<const char*>(file.data() + start), size_t(length)}, name).parse(out);
  const auto data = file.subspan(start + length);
  uint64_t want = dtype_info(out.dtype).size;
  for (uint64_t d : out.shape)
    if (__builtin_mul_overflow(want, d, &want)) bad(name, "the shape is too large");
  if (data.size() != want)
    bad(name, fmt::format("the shape needs {} bytes of data, the file has {}", want, data.size()));
  out.bytes.assign(data.begin(), data.end());
  return out;
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const auto size = in ? std::streamoff(in.tellg()) : -1;
  if (size < 0 || std::filesystem::is_directory(path))
    throw Error({.device = {},
                 .what = "cannot read " + path,
                 .source = std::strerror(std::filesystem::is_directory(path) ? EISDIR : errno),
                 .hint = {}},
                "file");
  std::vector<std::byte> bytes(size_t(size), std::byte{});
  in.seekg(0);
  if (size && !in.read(reinterpret_cast<char*>(bytes.data()), size))
    throw Error({.device = {}, .what = "cannot read " + path, .source = std::strerror(errno), .hint = {}}, "file");
  return bytes;
}

NpyArray read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

std::vector<std::byte> format_npy(const NpyArray& a) {
  std::string shape;
  for (uint64_t d : a.shape) shape += fmt::format("{},", d);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype_info(a.dtype).npy, shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::vector<std::byte> out(10 + header.size() + a.bytes.size());
  std::memcpy(out.data(), kMagic, 6);
  out[6] = std::byte{1};
  out[8] = std::byte(header.size());
  out[9] = std::byte(header.size() >> 8);
  std::memcpy(out.data() + 10, header.data(), header.size());
  if (!a.bytes.empty()) std::memcpy(out.data() + 10 + header.size(), a.bytes.data(), a.bytes.size());
  return out;
}

void write_npy(const std::string& path, const NpyArray& array) {
  const std::vector<std::byte> bytes = format_npy(array);
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    if (fd >= 0) ::unlink(temporary.c_str());
    throw Error({.device = {}, .what = std::string(what) + " " + path, .source = reason, .hint = {}}, "file");
  };
  if (fd < 0) fail("cannot write");
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      ::close(fd);
      fail("cannot write");
    }
    done += size_t(n);
  }
  ::fchmod(fd, 0644);
  if (::fsync(fd) != 0 || ::close(fd) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot write");
}

double from_half(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  double v = exponent == 0    ? std::ldexp(mantissa, -24)
             : exponent == 31 ? (mantissa ? std::nan("") : HUGE_VAL)
                              : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -v : v;
}

uint16_t to_half(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return sign | 0x7e00;
  v = std::fabs(v);
  if (v >= 65520.0) return sign | 0x7c00;  // rounds past the largest half
  if (v < 0x1p-14) return uint16_t(sign | uint16_t(std::nearbyint(std::ldexp(v, 24))));
  int exponent;
  const double m = std::nearbyint(std::ldexp(std::frexp(v, &exponent), 11));  // 1024..2048
  const int biased = exponent + 14;
  return uint16_t(sign | (uint32_t(biased << 10) + uint32_t(m) - 1024));
}

double element(const NpyArray& a, uint64_t i) {
  const std::byte* p = a.bytes.data() + i * dtype_info(a.dtype).size;
  auto load = [p]<class T>(T v) {
    std::memcpy(&v, p, sizeof v);
    return double(v);
  };
  switch (a.dtype) {
    case DType::kI8: return load(int8_t{});
    case DType::kI16: return load(int16_t{});
    case DType::kI32: return load(int32_t{});
    case DType::kI64: return load(int64_t{});
    case DType::kU8: return load(uint8_t{});
    case DType::kU16: return load(uint16_t{});
    case DType::kU32: return load(uint32_t{});
    case DType::kU64: return load(uint64_t{});
    case DType::kF16: return from_half(uint16_t(load(uint16_t{})));
    case DType::kF32: return load(float{});
    case DType::kF64: return load(double{});
  }
  return 0;
}

}  // namespace baregpu::tools
