// SDMA command lists for copy queues.
#pragma once
#include "am/register_block.hpp"
#include "hcq/command_list.hpp"

namespace baregpu::hcq::amd {

/// Limits that differ between SDMA versions.
struct SdmaTarget {
  am::IpVersion version;
  /// Largest COPY_LINEAR: 22 bits of count before SDMA 5, 30 bits since.
  uint64_t max_copy() const { return version.major >= 5 ? uint64_t{1} << 30 : uint64_t{1} << 22; }
};

class SdmaList final : public CommandList {
 public:
  explicit SdmaList(const SdmaTarget& target) : CommandList(QueueKind::kCopy), target_(target) {}
  PatchSlot poll(GpuVa va, Compare compare, uint32_t value) override;
  PatchSlot signal(GpuVa va, uint32_t value) override;
  void timestamp(GpuVa va) override;
  void memory_barrier() override {}  // the engine reads memory, not caches; HDP is flushed at submission
  ExecSlots exec(const Kernel&, GpuVa, Dim3, Dim3, uint32_t) override { unsupported("exec", "copy"); }
  void copy(GpuVa dst, GpuVa src, uint64_t size) override;
  PatchSlot write(GpuVa va, std::span<const uint32_t> values) override;

 private:
  void pad_for_indirect() override;  // indirect buffers are multiples of 8 dwords
  const SdmaTarget& target_;
};

/// Lengths of the packets of a list, so that none is split at the ring's end.
std::vector<uint32_t> sdma_packet_lengths(std::span<const uint32_t> words);

}  // namespace baregpu::hcq::amd
