// State of a wave, the micro-op it runs, and what handlers share.
#pragma once
#include <cstring>
#include <unordered_map>
#include <vector>

#include "mock/isa/executor.hpp"
#include "mock/isa/rows.hpp"

namespace baregpu::mock::isa {

constexpr unsigned kLanes = 32;       ///< lanes of a half: wave64 runs as two halves with a register file each
constexpr unsigned kVgprs = 256 + 4;  ///< the last four are scratch registers of the translator
constexpr unsigned kScratchVgpr = 256;
constexpr unsigned kHalf = kVgprs * kLanes;
constexpr uint32_t kPoison = 0xA5A5A5A5;  ///< registers that nothing initialised
constexpr uint32_t kFull = ~uint32_t{0};

/// Indices in Wave::s. Up to 127 they are the encodings of scalar operands (RDNA3 ISA, "SSRC").
enum Slot : uint16_t {
  kVcc = 106,
  kNull = 124,
  kM0 = 125,
  kExec = 126,
  kSink = 128 /* writes to null land here */,
  kSharedBase = 144,
  kSharedLimit = 146,
  kPrivateBase = 148,
  kPrivateLimit = 150,
  kScc = 152,
  kSlots = 160
};

enum class Kind : uint8_t { kVector, kScalar, kConstant, kVccz, kExecz };

struct Uop {
  Handler run = nullptr;
  std::array<uint64_t, 3> src{};  ///< vector: dword offset in the register file; scalar: slot; constant: the value
  std::array<Kind, 3> kind{};
  uint8_t scalars = 0;  ///< bit i: source i is no vector
  uint8_t neg = 0, abs = 0, neg_hi = 0, op_sel = 0, op_sel_hi = 0;
  uint8_t omod = 0, clamp = 0;
  uint8_t dpp = 0;  ///< 0 none, 1 DPP16, 2 DPP8
  uint8_t dpp_fi = 0, dpp_bound = 0, dpp_rows = 15, dpp_banks = 15;
  bool glc = false;
  uint8_t mode = 0;  ///< memory: AddressMode
  uint32_t dpp_ctrl = 0;
  uint32_t dst = 0;   ///< dword offset in the register file, or slot
  uint16_t sdst = 0;  ///< slot of the lane mask result
  int32_t imm = 0;    ///< simm16, offset, or offset0 | offset1 << 8
  uint32_t seq = 0;   ///< index of the instruction in its program, for counting
  uint64_t pc = 0;
  std::array<uint32_t, 2> words{};
  const OpRow* row = nullptr;
  const Uop* target = nullptr;
  uint32_t size = 0;  ///< dwords of the instruction
};

struct TlbEntry {
  uint64_t begin = 1, end = 0;
  std::byte* host = nullptr;
  bool readable = false, writable = false;
};

/// Translations of one worker thread; dropped when the address space's generation moves.
class Tlb {
 public:
  void attach(AddressSpace& space) {
    space_ = &space;
    flush();
  }
  void check() {
    if (space_->generation() != generation_) [[unlikely]]
      flush();
  }
  /// Host address of [va, va + bytes) or nullptr with the fault in `why`. The range may not cross a translation.
  std::byte* find(uint64_t va, uint64_t bytes, Access access, FaultKind& why) {
    const TlbEntry& last = entries_[last_];
    const bool write = access != Access::kRead;
    if (va >= last.begin && va < last.end && last.end - va >= bytes && (write ? last.writable : last.readable))
        [[likely]]
      return last.host + (va - last.begin);
    return find_slow(va, bytes, access, why);
  }

 private:
  std::byte* find_slow(uint64_t va, uint64_t bytes, Access access, FaultKind& why);
  void flush();
  AddressSpace* space_ = nullptr;
  uint64_t generation_ = 0;
  unsigned last_ = 0, next_ = 0;
  std::array<TlbEntry, 16> entries_{};
};

enum class Status : uint8_t { kReady, kBarrier, kDone, kFault };

struct Group {
  std::vector<uint8_t> lds;  ///< padded: accesses test lds_bytes first
  uint32_t lds_bytes = 0;
  std::array<uint32_t, 3> id{};
};

/// Where handlers ask for code at an address known only at run time.
class CodeSource {
 public:
  virtual ~CodeSource() = default;
  virtual const Uop* code_at(uint64_t pc) = 0;
};

struct Wave {
  alignas(64) std::array<uint32_t, kSlots> s{};
  alignas(64) std::array<std::array<std::array<uint32_t, kLanes>, 2>, 3> scratch{};  ///< broadcast and modified sources
  uint32_t* v = nullptr;                                                             ///< [halves][kVgprs][32]
  unsigned halves = 1;
  unsigned index = 0;  ///< in its group
  Status status = Status::kReady;
  const Uop* resume = nullptr;
  int64_t fuel = 0;
  uint64_t instructions = 0;
  uint32_t run_start = 0;
  uint32_t mode = 0;           ///< MODE register: rsrc1.FLOAT_MODE in 7:0
  uint64_t flat_scratch = 0;   ///< backing of this wave's scratch
  uint32_t scratch_bytes = 0;  ///< of a lane
  const DispatchInfo* dispatch = nullptr;
  Group* group = nullptr;
  Tlb* tlb = nullptr;
  CodeSource* code = nullptr;
  WaveFault fault;

  uint32_t exec(unsigned half) const { return s[kExec + half]; }
  uint32_t scc() const { return s[kScc]; }
  uint64_t pair(unsigned slot) const { return s[slot] | uint64_t{s[slot + 1]} << 32; }
  void set_pair(unsigned slot, uint64_t value) {
    s[slot] = uint32_t(value);
    s[slot + 1] = uint32_t(value >> 32);
  }
};

/// How a memory instruction makes its address.
enum AddressMode : uint8_t { kVgpr64 = 0, kSgprPlusVgpr = 1, kFlatVgpr64 = 2, kScratchAddress = 3 };
constexpr uint64_t kNoOperand = ~uint64_t{0};

/// Stops the wave with a fault; handlers return what it returns.
const Uop* raise(Wave& w, const Uop* u, FaultKind kind, Access access = Access::kExecute, uint64_t address = 0,
                 uint64_t lanes = 0);
/// Loads the MODE register's rounding and denormal bits into MXCSR. The host has one mode for all widths: f32's.
void apply_mode(uint32_t mode);

/// Value of scalar source `i`, 64 bits wide where the operand is.
inline uint64_t scalar(const Wave& w, const Uop& u, unsigned i, bool wide) {
  switch (u.kind[i]) {
    case Kind::kScalar: return wide ? w.pair(unsigned(u.src[i])) : w.s[u.src[i]];
    case Kind::kConstant: return u.src[i];
    case Kind::kVccz: return w.s[kVcc] == 0 && (w.halves == 1 || w.s[kVcc + 1] == 0);
    case Kind::kExecz: return w.exec(0) == 0 && (w.halves == 1 || w.exec(1) == 0);
    case Kind::kVector: return w.v[u.src[i]];
  }
  return 0;
}

/// Transfers control. A backward edge burns fuel, so that every loop gives way to other waves and to `stop`.
inline const Uop* jump(Wave& w, const Uop* from, const Uop* to) {
  const uint32_t ran = from->seq - w.run_start + 1;
  w.instructions += ran;
  w.fuel -= ran;
  w.run_start = to->seq;
  if (w.fuel <= 0) [[unlikely]] {
    w.resume = to;
    return nullptr;
  }
  return to;
}

}  // namespace baregpu::mock::isa
