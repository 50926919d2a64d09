// Words to instruction fields. One decoded form serves the printer and the translator.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "mock/isa/executor.hpp"
#include "mock/isa/rows.hpp"

namespace baregpu::mock::isa {

/// Source operand encodings beyond registers (RDNA3 ISA, "SSRC/SRC operands").
enum SourceCode : uint16_t {
  kSrcNull = 124,
  kSrcInlineInt = 128,
  kSrcDpp8 = 233,
  kSrcDpp8Fi = 234,
  kSrcSharedBase = 235,
  kSrcPrivateLimit = 238,
  kSrcInlineFloat = 240,
  kSrcDpp16 = 250,
  kSrcVccz = 251,
  kSrcExecz = 252,
  kSrcScc = 253,
  kSrcLiteral = 255,
  kSrcVgpr = 256
};

struct Inst {
  const OpRow* row = nullptr;  ///< nullptr: illegal
  Format encoding = Format::kSop1;
  unsigned size = 1;  ///< dwords, literal and DPP word included
  std::array<uint32_t, 2> words{};
  uint16_t dst = 0, sdst = 0;
  std::array<uint16_t, 3> src{};
  bool has_literal = false;
  uint32_t literal = 0;
  uint8_t neg = 0, abs = 0, neg_hi = 0, op_sel = 0, op_sel_hi = 0, omod = 0, clamp = 0;
  uint8_t dpp = 0, dpp_fi = 0, dpp_bound = 0, dpp_rows = 15, dpp_banks = 15;
  uint32_t dpp_ctrl = 0;
  int32_t imm = 0;
  uint8_t addr = 0, data0 = 0, data1 = 0, saddr = 0, srsrc = 0;
  bool sve = false, glc = false, slc = false, dlc = false, gds = false, offen = false, idxen = false;
  const OpRow* row_y = nullptr;  ///< VOPD's second operation
  uint16_t dst_y = 0;
  std::array<uint16_t, 2> src_y{};
};

/// Decodes the instruction at the start of `words`. Never reads behind it; too few words give an illegal instruction
/// of one dword. Thread: any.
Inst decode(Target target, std::span<const uint32_t> words);

/// Value of an inline constant or literal as an operand of type `ty`.
uint64_t constant_value(uint16_t code, uint32_t literal, Ty ty);

}  // namespace baregpu::mock::isa
