// A bounds-checked reader for MessagePack documents, as code-object metadata uses them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregpu::compiler {

/// One value. Numbers keep their sign; floats, extension types and binary data are kept as kOther without content.
struct MsgPack {
  struct Entry;  // a key and its value; a std::pair would need the complete type here
  enum class Type : uint8_t { kNil, kBool, kUnsigned, kSigned, kString, kArray, kMap, kOther };
  Type type = Type::kNil;
  uint64_t number = 0;         ///< kBool, kUnsigned, kSigned (two's complement)
  std::string_view text;       ///< kString; points into the parsed bytes
  std::vector<MsgPack> items;  ///< kArray
  std::vector<Entry> map;      ///< kMap, in file order

  /// The value of a string key, nullptr if there is none or this is no map.
  const MsgPack* find(std::string_view key) const;
};
struct MsgPack::Entry {
  MsgPack key, value;
};

/// Parses one document. @throws ParseError naming `what` for truncated, too deep (> 32 levels) or oversized input; more
/// elements than bytes cannot be claimed, so memory stays proportional to the input.
MsgPack parse_msgpack(std::span<const std::byte> bytes, const std::string& what);

}  // namespace baregpu::compiler
