// The instruction table's vocabulary: a row serves decode, print and execute; a generation is a column.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace baregpu::mock::isa {

struct Wave;
struct Uop;
/// Executes one micro-op and returns the next one, or nullptr after it set Wave::status.
using Handler = const Uop* (*)(Wave&, const Uop*);

enum class Format : uint8_t {
  kSop2,
  kSopk,
  kSop1,
  kSopc,
  kSopp,
  kSmem,
  kVop1,
  kVop2,
  kVopc,
  kVop3,
  kVop3p,
  kVopd,
  kDs,
  kFlat,
  kScratch,
  kGlobal,
  kMubuf
};

/// Operand types: width, how inline constants and literals expand, which modifiers exist.
enum class Ty : uint8_t { kNone, kB16, kF16, kB32, kF32, kB64, kI64, kF64, kMask, kB96, kB128, kB256, kB512 };
constexpr unsigned dwords(Ty t) {
  constexpr uint8_t kDwords[] = {0, 1, 1, 1, 1, 2, 2, 2, 1, 3, 4, 8, 16};
  return kDwords[unsigned(t)];
}
constexpr bool is_float(Ty t) { return t == Ty::kF16 || t == Ty::kF32 || t == Ty::kF64; }
constexpr bool is_16bit(Ty t) { return t == Ty::kF16 || t == Ty::kB16; }

enum RowFlag : uint32_t {
  kSgprDst = 1 << 0,      ///< VOP1/VOP3: the destination is an SGPR (readlane)
  kAccumulate = 1 << 1,   ///< the destination is the last source too (fmac)
  kMadK = 1 << 2,         ///< literal in the middle (fmamk)
  kAddK = 1 << 3,         ///< literal at the end (fmaak)
  kCarryOut = 1 << 4,     ///< writes a lane mask beside its result: VCC in VOP2, sdst in VOP3
  kCarryIn = 1 << 5,      ///< last source is a lane mask: VCC in VOP2, src2 in VOP3
  kCmpx = 1 << 6,         ///< compare that writes EXEC and nothing else
  kFloatMods = 1 << 7,    ///< neg/abs apply to the 32-bit sources although the operation moves bits
  kMemory = 1 << 8,       ///< may raise memory faults
  kStore = 1 << 9,        ///< memory: no destination
  kAtomic = 1 << 10,      ///< memory: destination only with GLC (FLAT family)
  kTwoAddr = 1 << 11,     ///< DS: two 8-bit offsets
  kTwoData = 1 << 12,     ///< DS: data1 is used
  kNoAddr = 1 << 13,      ///< DS: no address operand
  kDrop = 1 << 14,        ///< no effect here: removed when code is translated
  kNoDst = 1 << 15,       ///< SALU: no destination
  kNoSrc = 1 << 16,       ///< SALU: no source
  kBranch = 1 << 17,      ///< SOPP: simm16 is a dword offset
  kEnd = 1 << 18,         ///< code does not continue behind it
  kNoE64 = 1 << 19,       ///< has no VOP3 form
  kOnlyVop3 = 1 << 20,    ///< sdst field although no VOP2 form exists (VOP3SD)
  kMix = 1 << 21,         ///< VOP3P: op_sel_hi selects f16 sources
  kPlainPrint = 1 << 22,  ///< e32 form is printed without suffix
  kNoSuffix = kPlainPrint,
  kImmU = 1 << 23,  ///< SOPP/SOPK immediate printed in hexadecimal
  kWmma = 1 << 24,
  kSwap = 1 << 25,   ///< both operands are written
  kDotIu = 1 << 26,  ///< VOP3P: neg bits are signedness, not negation
};

constexpr unsigned kGenerations = 1;  ///< gfx11
constexpr int16_t kAbsent = -1;

struct OpRow {
  const char* name = nullptr;  ///< LLVM's mnemonic without encoding suffix
  std::array<int16_t, kGenerations> opcode{kAbsent};
  Format format = Format::kSop1;
  Ty dst = Ty::kNone;
  std::array<Ty, 3> src{};
  uint8_t sources = 0;
  uint32_t flags = 0;
  Handler run = nullptr;    ///< every form, every modifier
  Handler fast = nullptr;   ///< all operands 32 bits, no modifiers
  Handler clamp = nullptr;  ///< saturating form of an integer operation
  uint16_t bytes = 0;       ///< memory: bytes a lane moves
};

std::span<const OpRow> salu_rows();
std::span<const OpRow> vop1_rows();
std::span<const OpRow> vop2_rows();
std::span<const OpRow> vopc_rows();
std::span<const OpRow> vop3_rows();
std::span<const OpRow> vop3p_rows();
std::span<const OpRow> ds_rows();
std::span<const OpRow> memory_rows();
const OpRow* vopd_row(unsigned opcode);  ///< X and Y share one numbering (Y has more), gfx11

}  // namespace baregpu::mock::isa
