// MessagePack: refused with ParseError, or parsed to values that stay inside the input; then read as kernel metadata.
#include "compiler/elf/metadata.hpp"
#include "compiler/elf/msgpack.hpp"
#include "drivers/base/error.hpp"
#include "tests/fuzz/corpus.hpp"

namespace baregpu::fuzz {
namespace {

// MessagePack by hand (msgpack/msgpack spec.md): fixmap 0x80|n, fixarray 0x90|n, fixstr 0xa0|n, str8 0xd9, u16 0xcd.
std::string str(const std::string& s) {
  return s.size() < 32 ? char(0xa0 | s.size()) + s : std::string("\xd9") + char(s.size()) + s;
}
std::string u16(unsigned v) { return {char(0xcd), char(v >> 8), char(v)}; }
std::string array(std::initializer_list<std::string> items) {
  std::string out(1, char(0x90 | items.size()));
  for (const std::string& i : items) out += i;
  return out;
}
std::string map(std::initializer_list<std::pair<const char*, std::string>> items) {
  std::string out(1, char(0x80 | items.size()));
  for (const auto& [key, value] : items) out += str(key) + value;
  return out;
}

std::string kernel() {
  return map({{".name", str("k")},
              {".symbol", str("k.kd")},
              {".kernarg_segment_size", u16(280)},
              {".kernarg_segment_align", "\x08"},
              {".vgpr_count", "\x05"},
              {".sgpr_count", "\x12"},
              {".reqd_workgroup_size", array({"\x08", "\x04", "\x01"})},
              {".args",
               array({map({{".name", str("p")},
                           {".offset", std::string(1, '\0')},
                           {".size", "\x08"},
                           {".value_kind", str("global_buffer")},
                           {".access", str("read_only")},
                           {".is_const", "\xc3"}}),
                      map({{".offset", "\x08"}, {".size", "\x04"}, {".value_kind", str("hidden_block_count_x")}})})}});
}

/// Reads every value, so that the sanitizers see each byte that is claimed.
uint64_t walk(const compiler::MsgPack& v, const uint8_t* begin, const uint8_t* end) {
  const auto* text = reinterpret_cast<const uint8_t*>(v.text.data());
  require(v.text.empty() || (text >= begin && text + v.text.size() <= end), "strings lie inside the input");
  uint64_t values = 1;
  for (const compiler::MsgPack& i : v.items) values += walk(i, begin, end);
  for (const auto& [key, value] : v.map) values += walk(key, begin, end) + walk(value, begin, end);
  return values;
}

}  // namespace

Seeds seeds() {
  const std::string all = std::string("\x9d\xc0\xc2\xc3\xcc\xff\xd0\x80\xd2\xff\xff\xff\xff\xca") +
                          std::string(4, '\1') + "\xcb" + std::string(8, '\2') + "\xd4\1\2\xc4\2ab\xe0\x7f\xdc" +
                          std::string("\0\1\5", 3);
  return {{"kernel", to_bytes(kernel())},
          {"document", to_bytes(map({{"amdhsa.version", array({"\1", "\2"})},
                                     {"amdhsa.target", str("amdgcn-amd-amdhsa--gfx1100")},
                                     {"amdhsa.kernels", array({kernel()})}}))},
          {"types", to_bytes(all)},
          {"deep", to_bytes(std::string(40, '\x91'))},
          {"claims", to_bytes("\xdd\xff\xff\xff\xff")}};
}

}  // namespace baregpu::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baregpu;
  compiler::MsgPack value;
  try {
    value = compiler::parse_msgpack({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  } catch (const ParseError&) {
    return 0;
  }
  fuzz::require(fuzz::walk(value, data, data + size) <= size, "there are no more values than bytes");
  try {
    const KernelInfo k = compiler::parse_kernel_metadata(value, "fuzz");
    fuzz::require(!k.name.empty() && k.kernarg_align != 0, "a kernel has a name and an alignment");
  } catch (const ParseError&) {
  }
  return 0;
}
