#include "mock/isa/disasm.hpp"

#include <fmt/format.h>

#include "mock/isa/decode.hpp"

namespace baregpu::mock::isa {
namespace {

std::string range(char file, unsigned first, unsigned count) {
  return count == 1 ? fmt::format("{}{}", file, first) : fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

/// A source or scalar destination by its encoding.
std::string operand(unsigned code, unsigned count, uint32_t literal) {
  if (code >= kSrcVgpr) return range('v', code - kSrcVgpr, count);
  if (code < 106) return range('s', code, count);
  constexpr const char* kFloats[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
  switch (code) {
    case 106: return count == 2 ? "vcc" : "vcc_lo";
    case 107: return "vcc_hi";
    case 124: return "null";
    case 125: return "m0";
    case 126: return count == 2 ? "exec" : "exec_lo";
    case 127: return "exec_hi";
    case 235: return "src_shared_base";
    case 236: return "src_shared_limit";
    case 237: return "src_private_base";
    case 238: return "src_private_limit";
    case 251: return "src_vccz";
    case 252: return "src_execz";
    case 253: return "src_scc";
    case kSrcLiteral: return fmt::format("{:#x}", literal);
    default: break;
  }
  if (code >= 108 && code < 124)
    return count == 1 ? fmt::format("ttmp{}", code - 108)
                      : fmt::format("ttmp[{}:{}]", code - 108, code - 108 + count - 1);
  if (code >= 128 && code <= 192) return std::to_string(code - 128);
  if (code >= 193 && code <= 208) return std::to_string(192 - int(code));
  if (code >= kSrcInlineFloat && code <= 248) return kFloats[code - kSrcInlineFloat];
  return fmt::format("?{}", code);
}

std::string source(const Inst& i, unsigned n) {
  const OpRow& row = *i.row;
  std::string s = operand(i.src[n], row.src[n] == Ty::kMask ? 1 : dwords(row.src[n]), i.literal);
  if (i.encoding == Format::kVop3p) return s;
  const bool mods = is_float(row.src[n]) || (row.flags & kFloatMods);
  if (mods && (i.abs >> n & 1)) s = "|" + s + "|";
  if (mods && (i.neg >> n & 1)) s = "-" + s;
  return s;
}

void add(std::string& out, const std::string& what) { out += (out.empty() ? " " : ", ") + what; }

std::string vector_text(const Inst& i) {
  const OpRow& row = *i.row;
  std::string ops;
  const bool e64 = i.encoding == Format::kVop3;
  if (row.format == Format::kVopc) {
    if (!(row.flags & kCmpx)) add(ops, operand(i.sdst, 1, 0));
  } else if (!(row.flags & kNoDst)) {
    add(ops, row.flags & kSgprDst ? operand(i.dst, 1, 0) : range('v', i.dst, std::max(1u, dwords(row.dst))));
    if (row.flags & kCarryOut) add(ops, operand(i.sdst, 1, 0));
  }
  for (unsigned n = 0; n < row.sources; ++n) {
    if (n == 2 && (row.flags & kAccumulate)) break;
    add(ops, source(i, n));
  }
  std::string name = row.name;
  const bool has_e32 = row.format == Format::kVop1 || row.format == Format::kVop2 || row.format == Format::kVopc;
  if (has_e32 && !(row.flags & (kNoE64 | kPlainPrint)))
    name += i.dpp ? (e64 ? "_e64_dpp" : "_dpp") : e64 ? "_e64" : "_e32";
  if (i.clamp) ops += " clamp";
  if (i.omod) ops += i.omod == 1 ? " mul:2" : i.omod == 2 ? " mul:4" : " div:2";
  return name + ops;
}

std::string memory_text(const Inst& i) {
  const OpRow& row = *i.row;
  std::string ops;
  const bool to_register = !(row.flags & kStore) && dwords(row.dst) && (!(row.flags & kAtomic) || i.glc);
  auto vgprs = [](unsigned first, Ty t) { return range('v', first, std::max(1u, dwords(t))); };
  switch (i.encoding) {
    case Format::kSmem:
      if (!dwords(row.dst)) return row.name;
      add(ops, operand(i.dst, dwords(row.dst), 0));
      add(ops, range('s', i.srsrc, row.name[2] == 'b' ? 4 : 2));
      add(ops, i.saddr == kSrcNull ? fmt::format("{:#x}", i.imm)
                                   : operand(i.saddr, 1, 0) + (i.imm ? fmt::format(" offset:{:#x}", i.imm) : ""));
      return row.name + ops;
    case Format::kDs:
      if (to_register) add(ops, vgprs(i.dst, row.dst));
      if (!(row.flags & kNoAddr)) add(ops, range('v', i.addr, 1));
      if (dwords(row.src[1])) add(ops, vgprs(i.data0, row.src[1]));
      if (row.flags & kTwoData) add(ops, vgprs(i.data1, row.src[2]));
      if (row.flags & kTwoAddr) {
        if (i.imm & 0xff) ops += fmt::format(" offset0:{}", i.imm & 0xff);
        if (i.imm >> 8) ops += fmt::format(" offset1:{}", i.imm >> 8);
      } else if (i.imm) {
        ops += fmt::format(" offset:{}", i.imm);
      }
      return row.name + ops;
    default: break;
  }
  if (i.encoding == Format::kMubuf) return row.name;
  const bool scratch = i.encoding == Format::kScratch, has_saddr = i.saddr != kSrcNull;
  const std::string address = scratch ? (i.sve ? range('v', i.addr, 1) : "off")
                                      : range('v', i.addr, i.encoding == Format::kGlobal && has_saddr ? 1 : 2);
  const std::string saddr = has_saddr ? operand(i.saddr, scratch ? 1 : 2, 0) : "off";
  if (to_register) add(ops, vgprs(i.dst, row.dst));
  add(ops, address);
  if (dwords(row.src[1])) add(ops, vgprs(i.data0, row.src[1]));
  if (i.encoding != Format::kFlat) add(ops, saddr);
  if (i.imm) ops += fmt::format(" offset:{}", i.imm);
  if (i.glc) ops += " glc";
  if (i.slc) ops += " slc";
  if (i.dlc) ops += " dlc";
  return row.name + ops;
}

std::string scalar_text(const Inst& i) {
  const OpRow& row = *i.row;
  std::string ops;
  if (row.format == Format::kSopp) {
    const bool bare = row.flags & kEnd && !(row.flags & kBranch);
    return bare || row.name == std::string_view("s_barrier") ? row.name : fmt::format("{} {}", row.name, i.imm);
  }
  if (!(row.flags & kNoDst) || row.format == Format::kSopk) add(ops, operand(i.dst, std::max(1u, dwords(row.dst)), 0));
  for (unsigned n = 0; n < row.sources; ++n) add(ops, operand(i.src[n], dwords(row.src[n]), i.literal));
  if (row.format == Format::kSopk) add(ops, fmt::format("{:#x}", uint16_t(i.imm)));
  return row.name + ops;
}

}  // namespace

DecodedText disassemble(Target target, std::span<const uint32_t> words, uint64_t) {
  if (words.empty()) return {"(nothing)", 1, false};
  const Inst i = decode(target, words);
  if (!i.row) return {fmt::format(".long {:#010x}", words[0]), i.size, false};
  DecodedText out{.text = {}, .dwords = i.size, .legal = true};
  switch (i.encoding) {
    case Format::kSop1:
    case Format::kSop2:
    case Format::kSopc:
    case Format::kSopk:
    case Format::kSopp: out.text = scalar_text(i); break;
    case Format::kVop1:
    case Format::kVop2:
    case Format::kVopc:
    case Format::kVop3:
    case Format::kVop3p: out.text = vector_text(i); break;
    case Format::kVopd: {
      auto dual = [](const char* name) { return "v_dual_" + std::string(name + 2); };
      out.text = fmt::format("{} v{}, {}, v{} :: {} v{}, {}, v{}", dual(i.row->name), i.dst,
                             operand(i.src[0], 1, i.literal), i.src[1] - kSrcVgpr, dual(i.row_y->name), i.dst_y,
                             operand(i.src_y[0], 1, i.literal), i.src_y[1] - kSrcVgpr);
      break;
    }
    case Format::kSmem:
    case Format::kDs:
    case Format::kFlat:
    case Format::kGlobal:
    case Format::kScratch:
    case Format::kMubuf: out.text = memory_text(i); break;
  }
  return out;
}

}  // namespace baregpu::mock::isa
