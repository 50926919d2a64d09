// `baregpu disasm`: a code object as text.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "compiler/compiler.hpp"
#include "compiler/llvm_backend.hpp"

namespace baregpu::compiler {
namespace {

/// Where a direct branch goes: its last operand is a signed 16-bit count of dwords from the next instruction
/// (RDNA3 ISA, SOPP). nullopt for everything else.
std::optional<uint64_t> branch_target(const Instruction& i, uint64_t base) {
  if (!i.text.starts_with("s_branch ") && !i.text.starts_with("s_cbranch_")) return std::nullopt;
  const std::string_view operand = std::string_view(i.text).substr(i.text.rfind(' ') + 1);
  const bool hex = operand.starts_with("0x");
  uint32_t dwords = 0;
  const auto [end, ec] =
      std::from_chars(operand.data() + (hex ? 2 : 0), operand.data() + operand.size(), dwords, hex ? 16 : 10);
  if (ec != std::errc() || end != operand.data() + operand.size() || dwords > 0xffff) return std::nullopt;
  return base + i.offset + i.size + uint64_t(int64_t{int16_t(dwords)} * 4);
}

// Between functions: s_code_end or s_nop. After the last one: zeros, which are v_illegal or nothing at all.
bool is_padding(const std::string& text) {
  return text == "s_code_end" || text == "s_nop 0" || text == "v_illegal" || text == ".long 0x00000000";
}

std::string describe(const KernelInfo& k) {
  std::string out = fmt::format(
      "\n{}: wave{}, {} VGPRs, {} SGPRs, {} bytes LDS, {} bytes scratch, {} bytes arguments\n", k.name,
      k.wave32 ? 32 : 64, k.vgpr_count, k.sgpr_count, k.group_segment_size, k.private_segment_size, k.kernarg_size);
  unsigned hidden = 0;
  for (const KernelArg& a : k.args) {
    hidden += is_hidden(a.kind);
    if (!is_hidden(a.kind))
      out += fmt::format("  argument at {:3}, {} bytes: {}{}{}\n", a.offset, a.size,
                         a.type_name.empty() ? "?" : a.type_name, a.name.empty() ? "" : " ", a.name);
  }
  if (hidden) out += fmt::format("  {} hidden arguments from {}\n", hidden, k.args[k.args.size() - hidden].offset);
  return out;
}

}  // namespace

std::string disassemble(std::span<const std::byte> object, const std::string& name) {
  const ProgramImage image = load_code_object(object, name);
  // What starts where: kernels by their descriptors, the functions that they call by the symbol table, if it was not
  // stripped.
  struct Part {
    std::string name;
    const KernelInfo* kernel;
    uint64_t size;
  };  // 0 = not told
  std::map<uint64_t, Part> parts;
  for (const KernelInfo& k : image.kernels) parts.insert({k.code_offset, {k.name, &k, 0}});
  for (const CodeSymbol& f : function_symbols(object, name))
    parts.insert({f.offset, {f.name, nullptr, 0}}).first->second.size = f.size;
  std::string out = fmt::format("{}: {}, code object V{}\n", name, image.arch, image.abi_version + 2);
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    const auto& [start, part] = *it;
    uint64_t end = std::next(it) == parts.end() ? image.bytes.size() : std::next(it)->first;
    if (part.size && part.size < end - start) end = start + part.size;
    const bool wave32 = part.kernel ? part.kernel->wave32 : image.kernels.empty() || image.kernels[0].wave32;
    const auto code = std::span(image.bytes).subspan(start, end - start);
    std::vector<Instruction> list = disassemble_code(code, image.arch, !wave32);
    while (list.size() > 1 && is_padding(list.back().text))
      list.pop_back();  // up to the next function, or the page's end
    std::set<uint64_t> targets;
    for (const Instruction& i : list)
      if (const auto to = branch_target(i, start)) targets.insert(*to);
    out += part.kernel ? describe(*part.kernel) : fmt::format("\n{}: function\n", part.name);
    for (const Instruction& i : list) {
      std::string words, text = i.text;
      for (uint32_t b = 0; b + 4 <= i.size; b += 4) {
        uint32_t w;
        std::memcpy(&w, code.data() + i.offset + b, 4);
        words += fmt::format(" {:08x}", w);
      }
      if (const auto to = branch_target(i, start)) text += fmt::format(" <L{:x}>", *to);
      if (targets.contains(start + i.offset)) out += fmt::format(" L{:x}:\n", start + i.offset);
      out += fmt::format("  {:#06x}: {:<56} //{}\n", start + i.offset, text, words);
    }
  }
  return out;
}

}  // namespace baregpu::compiler
