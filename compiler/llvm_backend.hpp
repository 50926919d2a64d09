// LLVM in this process: IR to relocatable objects, and the disassembler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregpu::compiler {

/// "22.1.8"
std::string llvm_version();

/// Optimises and compiles IR text or bitcode for amdgcn. @returns a relocatable ELF object.
/// @throws CompileError with LLVM's message; UnsupportedError for a target this LLVM lacks.
std::vector<std::byte> compile_ir(std::string_view ir, const std::string& name, const std::string& arch,
                                  unsigned optimization, bool wave64);

struct Instruction {
  uint64_t offset;
  uint32_t size;
  std::string text;
};
/// Disassembles machine code; bytes that are no instruction give ".long 0x...".
std::vector<Instruction> disassemble_code(std::span<const std::byte> code, const std::string& arch, bool wave64);

}  // namespace baregpu::compiler
