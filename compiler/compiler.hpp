// The front door of compiler/: kernel sources to AMDGPU code objects, and code objects to program images (public).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/elf/elf_loader.hpp"
#include "compiler/program_image.hpp"

namespace baregpu::compiler {

enum class SourceKind { kOpenCl, kHip, kLlvmIr, kAssembly, kCodeObject };

struct CompileOptions {
  std::string arch;                  ///< "gfx1100"
  unsigned optimization = 3;         ///< 0..3
  bool wave64 = false;               ///< 64 lanes a wave instead of the architecture's default
  std::vector<std::string> defines;  ///< NAME or NAME=VALUE; not for LLVM IR
  std::vector<std::string> extra;    ///< further arguments of clang; not for LLVM IR
  std::string clang;                 ///< the clang to use; "" = BAREGPU_CLANG, else clang-22 to clang-19 in PATH
  bool use_cache = true;             ///< look in and add to the disk cache (BAREGPU_CACHE)
};

/// The kind of a file, from its first bytes (ELF, LLVM bitcode) or its name: .cl, .hip, .ll, .bc, .s, .co, .hsaco, .o.
/// @throws Error naming the file and the known endings.
SourceKind source_kind(const std::string& path, std::span<const std::byte> bytes);

/// Compiles and links one source text to a code object (ELF bytes). OpenCL C 2.0, HIP-like C++ (see prelude.hpp) and
/// assembly go through clang 19 or newer; LLVM IR is compiled in this process. The builtins of OpenCL come from libclc.
/// @param name  what diagnostics call the text. @throws CompileError with clang's diagnostics; UnsupportedError if
/// clang, the linker or libclc is missing, naming the package. Thread: any.
std::vector<std::byte> compile(SourceKind kind, std::string_view text, const std::string& name,
                               const CompileOptions& options);

/// Reads, and compiles unless it is a code object. @throws Error if the file cannot be read, and as compile().
std::vector<std::byte> compile_file_to_object(const std::string& path, const CompileOptions& options);
/// The same, loaded; a code object for another architecture than `options.arch` is refused.
ProgramImage compile_file(const std::string& path, const CompileOptions& options);

/// Kernels with their resources and arguments, then instructions with addresses, as LLVM prints them.
/// @throws ParseError as load_code_object().
std::string disassemble(std::span<const std::byte> object, const std::string& name);

}  // namespace baregpu::compiler
