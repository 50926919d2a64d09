// Machine code as text, from the same rows that execute it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "mock/isa/executor.hpp"

namespace baregpu::mock::isa {

struct DecodedText {
  std::string text;  ///< LLVM's mnemonic and operands; modifiers that are rare in compiled code are left out
  unsigned dwords = 1;
  bool legal = false;
};

/// Prints the instruction at the start of `words` (at most 4 are looked at). Thread: any.
DecodedText disassemble(Target target, std::span<const uint32_t> words, uint64_t pc);

}  // namespace baregpu::mock::isa
