// PM4 command lists for compute queues.
#pragma once
#include "am/register_block.hpp"
#include "hcq/command_list.hpp"

namespace baregpu::hcq::amd {

/// Scratch memory of a device, as the packets need it.
struct ScratchSetup {
  GpuVa base{};
  uint32_t tmpring_size = 0;
  uint64_t size = 0;
  uint32_t bytes_per_lane = 0;  ///< what the current scratch is large enough for
};

/// Register addresses and limits of one device, shared by all its lists.
struct Pm4Target {
  am::IpVersion gc;
  uint32_t hdp_flush_req = 0, hdp_flush_done = 0;  ///< absolute dwords; 0 = no HDP (not needed on this transport)
  uint32_t lds_bytes = 64 * 1024;
  ScratchSetup scratch;
  bool code_changed = false;  ///< a program was loaded since the last instruction-cache invalidate
};

/// The packet set of a GC generation, where it differs.
class Pm4Dialect {
 public:
  virtual ~Pm4Dialect() = default;
  /// Invalidates caches; `full` includes L2 and the instruction cache.
  virtual void acquire_mem(std::vector<uint32_t>& out, bool full) const = 0;
  /// End-of-pipe write. data_sel: 1 = 32 bits, 2 = 64 bits, 3 = GPU clock. `flush`: write back and invalidate caches
  /// first.
  virtual void release_mem(std::vector<uint32_t>& out, GpuVa va, uint64_t value, unsigned data_sel,
                           bool flush) const = 0;
  /// DISPATCH_DIRECT's initiator word.
  virtual uint32_t dispatch_initiator(bool wave32) const = 0;
  virtual uint32_t rsrc1_extra() const = 0;
  /// SET_SH_REG offset of COMPUTE_PGM_RSRC3 (absolute dword).
  virtual uint32_t rsrc3_register() const = 0;
  /// TMPRING_SIZE and scratch bytes for `bytes_per_lane`.
  virtual ScratchSetup scratch_for(uint32_t bytes_per_lane, uint32_t cus, uint32_t slots_per_cu,
                                   uint32_t shader_engines) const = 0;
};
/// @throws UnsupportedError.
const Pm4Dialect& pm4_dialect(am::IpVersion gc);

class Pm4List final : public CommandList {
 public:
  Pm4List(const Pm4Target& target)
      : CommandList(QueueKind::kCompute), target_(target), dialect_(pm4_dialect(target.gc)) {}
  PatchSlot poll(GpuVa va, Compare compare, uint32_t value) override;
  PatchSlot signal(GpuVa va, uint32_t value) override;
  void timestamp(GpuVa va) override;
  void memory_barrier() override;
  ExecSlots exec(const Kernel& kernel, GpuVa kernargs, Dim3 groups, Dim3 block, uint32_t dynamic_lds) override;
  void copy(GpuVa, GpuVa, uint64_t) override { unsupported("copy", "compute"); }
  PatchSlot write(GpuVa va, std::span<const uint32_t> values) override;
  /// Invalidates everything, the instruction cache too.
  void invalidate_all() { dialect_.acquire_mem(words_, true); }

 private:
  const Pm4Target& target_;
  const Pm4Dialect& dialect_;
};

/// INDIRECT_BUFFER: 4 dwords.
std::array<uint32_t, 4> indirect_buffer(GpuVa va, uint32_t size_dw);
/// A type-3 header: `count` dwords follow it.
constexpr uint32_t pm4_header(uint32_t op, uint32_t count) { return 3u << 30 | ((count - 1) & 0x3fff) << 16 | op << 8; }

}  // namespace baregpu::hcq::amd
