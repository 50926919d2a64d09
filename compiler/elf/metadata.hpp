// The metadata of one kernel in a code object's note.
#pragma once
#include "compiler/elf/msgpack.hpp"
#include "compiler/program_image.hpp"

namespace baregpu::compiler {

/// Reads one map of "amdhsa.kernels". @throws ParseError naming `file` for a missing or mistyped field.
/// Source: LLVM AMDGPUUsage, "Code Object V4/V5 Metadata".
KernelInfo parse_kernel_metadata(const MsgPack& kernel, const std::string& file);

}  // namespace baregpu::compiler
