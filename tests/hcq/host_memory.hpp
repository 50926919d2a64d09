// Host memory that stands for a device's: addresses are made up, the CPU reaches all of it.
#pragma once
#include <list>
#include <memory>
#include <vector>

#include "drivers/base/error.hpp"
#include "hcq/buffer.hpp"

namespace baregpu::test {

class HostMemory final : public hcq::MemoryBackend {
 public:
  hcq::RawMemory allocate(uint64_t size, hcq::BufferKind kind, bool, const std::string&) override {
    if (used + size > limit) throw OutOfMemoryError({.device = {}, .what = "no memory", .source = {}, .hint = {}});
    auto& block = blocks.emplace_back(std::make_unique<uint64_t[]>(size / 8 + 1));
    used += size;
    next_va += 0x1'0000'0000;
    ++allocations;
    return {GpuVa(next_va), size, kind, Mmio(block.get(), size), block.get()};
  }
  void free(const hcq::RawMemory& m) noexcept override {
    used -= m.size;
    ++frees;
    blocks.remove_if([&](const auto& b) { return b.get() == m.backing; });
  }
  std::list<std::unique_ptr<uint64_t[]>> blocks;
  uint64_t used = 0, limit = ~uint64_t{0}, next_va = 0x2000'0000'0000;
  int allocations = 0, frees = 0;
};

/// Four signals in host memory and the timeline over them.
struct HostTimeline {
  explicit HostTimeline(uint64_t start = 0) : timeline(make(memory.data()), start) {}
  static std::array<hcq::Signal, hcq::Timeline::kEpochs> make(uint64_t* memory) {
    std::array<hcq::Signal, hcq::Timeline::kEpochs> s;
    for (unsigned i = 0; i < s.size(); ++i) s[i] = {GpuVa(0x1000 + 16 * i), Mmio(memory + 2 * i, 16)};
    return s;
  }
  /// What a queue's signal packet does: 32 bits to the point's address.
  void signal(const hcq::TimelinePoint& p) { memory[(p.signal.value - 0x1000) / 8] = p.value; }
  /// What a queue's wait packet tests.
  bool packet_wait(const hcq::TimelinePoint& p) const {
    return uint32_t(memory[(p.signal.value - 0x1000) / 8]) >= p.value;
  }
  std::array<uint64_t, 8> memory{};
  hcq::Timeline timeline;
};

}  // namespace baregpu::test
