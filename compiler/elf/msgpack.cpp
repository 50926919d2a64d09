#include "compiler/elf/msgpack.hpp"

#include <fmt/format.h>

#include <utility>

#include "drivers/base/error.hpp"

// Format: msgpack/msgpack spec.md.
namespace baregpu::compiler {
namespace {

constexpr unsigned kMaxDepth = 32;

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& what) : bytes_(bytes), what_(what) {}

  MsgPack value(unsigned depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    const uint8_t b = uint8_t(number(1));
    if (b < 0x80) return unsigned_value(b);
    if (b < 0x90) return map(b & 0xf, depth);
    if (b < 0xa0) return array(b & 0xf, depth);
    if (b < 0xc0) return string(b & 0x1f);
    switch (b) {
      case 0xc0: return {};
      case 0xc2:
      case 0xc3: return {.type = MsgPack::Type::kBool, .number = uint64_t(b & 1)};
      case 0xc4:
      case 0xc5:
      case 0xc6: return other(number(1u << (b - 0xc4)));
      case 0xc7:
      case 0xc8:
      case 0xc9: return other(number(1u << (b - 0xc7)) + 1);
      case 0xca: return other(4);
      case 0xcb: return other(8);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: return unsigned_value(number(1u << (b - 0xcc)));
      case 0xd0: return signed_value(uint64_t(int64_t(int8_t(number(1)))));
      case 0xd1: return signed_value(uint64_t(int64_t(int16_t(number(2)))));
      case 0xd2: return signed_value(uint64_t(int64_t(int32_t(number(4)))));
      case 0xd3: return signed_value(number(8));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8: return other((1u << (b - 0xd4)) + 1);
      case 0xd9:
      case 0xda:
      case 0xdb: return string(number(1u << (b - 0xd9)));
      case 0xdc:
      case 0xdd: return array(number(b == 0xdc ? 2 : 4), depth);
      case 0xde:
      case 0xdf: return map(number(b == 0xde ? 2 : 4), depth);
      default: break;
    }
    if (b >= 0xe0) return signed_value(uint64_t(int64_t(int8_t(b))));
    fail("byte 0xc1");
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw ParseError(
        {.device = {}, .what = fmt::format("{}: metadata: {} at byte {}", what_, why, at_), .source = {}, .hint = {}});
  }
  std::span<const std::byte> take(uint64_t n) {
    if (n > bytes_.size() - at_) fail("it is cut off");
    auto out = bytes_.subspan(at_, n);
    at_ += n;
    return out;
  }
  uint64_t number(unsigned n) {  // big-endian
    uint64_t v = 0;
    for (std::byte b : take(n)) v = v << 8 | uint64_t(b);
    return v;
  }
  static MsgPack unsigned_value(uint64_t v) { return {.type = MsgPack::Type::kUnsigned, .number = v}; }
  static MsgPack signed_value(uint64_t v) { return {.type = MsgPack::Type::kSigned, .number = v}; }
  MsgPack string(uint64_t n) {
    const auto s = take(n);
    return {.type = MsgPack::Type::kString, .text = {reinterpret_cast<const char*>(s.data()), s.size()}};
  }
  MsgPack other(uint64_t n) {
    take(n);
    return {.type = MsgPack::Type::kOther};
  }
  MsgPack array(uint64_t n, unsigned depth) {
    if (n > bytes_.size() - at_) fail("an array is larger than the rest");
    MsgPack out{.type = MsgPack::Type::kArray};
    for (uint64_t i = 0; i < n; ++i) out.items.push_back(value(depth + 1));
    return out;
  }
  MsgPack map(uint64_t n, unsigned depth) {
    if (n > (bytes_.size() - at_) / 2) fail("a map is larger than the rest");
    MsgPack out{.type = MsgPack::Type::kMap};
    for (uint64_t i = 0; i < n; ++i) {
      MsgPack key = value(depth + 1);
      out.map.push_back({std::move(key), value(depth + 1)});
    }
    return out;
  }

  std::span<const std::byte> bytes_;
  const std::string& what_;
  uint64_t at_ = 0;
};

}  // namespace

const MsgPack* MsgPack::find(std::string_view key) const {
  for (const auto& [k, v] : map)
    if (k.type == Type::kString && k.text == key) return &v;
  return nullptr;
}

MsgPack parse_msgpack(std::span<const std::byte> bytes, const std::string& what) {
  return Parser(bytes, what).value(0);
}

}  // namespace baregpu::compiler
