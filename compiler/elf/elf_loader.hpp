// AMDGPU code objects (ELF) to plain program images.
#pragma once
#include <span>
#include <string>

#include "compiler/program_image.hpp"

namespace baregpu::compiler {

/// Whether the bytes start as an ELF file does.
bool is_elf(std::span<const std::byte> bytes);

/// Loads a linked AMDGPU HSA code object, version 4 to 6. Every offset and count in it is checked: the bytes may come
/// from anywhere. @param name  file name for messages. @throws ParseError naming the file and the field;
/// UnsupportedError for another ABI version or relocation. Layout: LLVM "User Guide for AMDGPU Backend" (code object,
/// kernel descriptor, metadata V4/V5).
ProgramImage load_code_object(std::span<const std::byte> elf, const std::string& name);

/// A function in a code object, kernel or not.
struct CodeSymbol {
  uint64_t offset, size;  ///< in ProgramImage::bytes
  std::string name;
};
/// The functions that the file's symbol tables name, by offset, one name an offset. @throws as load_code_object().
std::vector<CodeSymbol> function_symbols(std::span<const std::byte> elf, const std::string& name);

/// @throws Error("arch") if the image is for another architecture than the device.
void check_arch(const ProgramImage& image, const std::string& device_arch, const std::string& name);

}  // namespace baregpu::compiler
