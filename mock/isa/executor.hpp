// Runs AMD machine code on the host: the shader cores of a mock GPU (public inside mock/ and for tools and tests).
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baregpu::mock::isa {

enum class Access : uint8_t { kRead, kWrite, kAtomic, kExecute };

/// Where the bytes of a GPU virtual address are. The range is as large as the page-table fragment allows.
struct Translation {
  std::byte* host = nullptr;          ///< host address of `va_begin`
  uint64_t va_begin = 0, va_end = 0;  ///< the translation holds for [va_begin, va_end)
  bool readable = false, writable = false, executable = false;
  bool valid = false;  ///< false: page fault
};

/// The address space of one VMID, as the shader's TLB sees it (stale entries included).
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  /// Looks up `va`. Does not raise anything: the executor reports the fault in its result. Thread: any.
  virtual Translation translate(uint64_t va, Access access) = 0;
  /// Cached translations must be dropped when this value changes (TLB invalidated). Thread: any; cheap.
  virtual uint64_t generation() const = 0;
};

/// One dispatch, as the compute registers describe it (COMPUTE_* of the GC version).
struct DispatchInfo {
  uint64_t code_va = 0;                      ///< COMPUTE_PGM << 8
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;  ///< COMPUTE_PGM_RSRC1..3, LDS size in rsrc2[23:15] (512-byte granules)
  std::array<uint32_t, 16> user_data{};      ///< COMPUTE_USER_DATA_0..15 -> s0..
  std::array<uint32_t, 3> groups{};          ///< workgroups in x, y, z
  std::array<uint32_t, 3> group_size{};      ///< work-items in x, y, z; product 1..1024
  bool wave32 = true;                        ///< CS_W32_EN
  uint32_t tmpring_size = 0;                 ///< COMPUTE_TMPRING_SIZE
  uint64_t scratch_base = 0;                 ///< COMPUTE_DISPATCH_SCRATCH_BASE << 8
  uint64_t shared_aperture = 0, private_aperture = 0;  ///< from SH_MEM_BASES, << 48
  bool unaligned_access = true;                        ///< SH_MEM_CONFIG.ALIGNMENT_MODE = 3
};

enum class FaultKind : uint8_t {
  kNone,
  kPageFault,           ///< no valid translation: VM fault, address = the page
  kPermission,          ///< translation without the right: VM fault with PERMISSION_FAULTS
  kIllegalInstruction,  ///< SQ interrupt ILLEGAL_INST
  kMemoryViolation,     ///< SQ interrupt MEMVIOL: misaligned, LDS/scratch aperture misuse
  kTrap,                ///< s_trap without a handler
};

/// Why a wave stopped. The first fault of a dispatch is the one kept.
struct WaveFault {
  FaultKind kind = FaultKind::kNone;
  Access access = Access::kRead;
  uint64_t pc = 0;       ///< address of the instruction
  uint64_t address = 0;  ///< faulting virtual address (memory faults)
  uint64_t lane_mask = 0;
  std::array<uint32_t, 3> group{};
  uint32_t wave = 0;                ///< wave index in its group
  std::array<uint32_t, 2> words{};  ///< instruction words at pc (illegal instruction)
  std::string text;                 ///< one line in words, with the disassembled instruction where there is one
};

struct DispatchResult {
  bool completed = false;  ///< every wave reached s_endpgm
  bool cancelled = false;  ///< `stop` was set before the end
  WaveFault fault;         ///< kind != kNone: the dispatch hangs, as on hardware
  uint64_t wave_instructions = 0;
};

/// Instruction sets that have decoder columns.
enum class Target : uint8_t { kGfx1100, kGfx1101, kGfx1102 };
std::optional<Target> find_target(const std::string& name);  ///< "gfx1100"

struct ExecutorOptions {
  unsigned threads = 0;  ///< workgroups in parallel; 0 = one a host core
};

/// Shader cores. Keeps decoded code by address and content until invalidate_code().
/// Thread: run() by one thread at a time for each Executor; invalidate_code() from the same thread.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs a dispatch to its end, its first fault, or until `stop` becomes true (a hanging kernel ends only so).
  virtual DispatchResult run(const DispatchInfo& dispatch, AddressSpace& memory, const std::atomic<bool>& stop) = 0;
  /// Drops decoded code: the instruction cache was invalidated (ACQUIRE_MEM with GLI_INV). Until then code that was
  /// overwritten in memory keeps running in its old form, as on hardware.
  virtual void invalidate_code() = 0;
};
/// @throws UnsupportedError if this host has no AVX2, FMA and F16C.
std::unique_ptr<Executor> make_executor(Target target, const ExecutorOptions& options = {});

}  // namespace baregpu::mock::isa
