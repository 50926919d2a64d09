#include "hcq/amd/sdma.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

// Packets: Linux sdma_v6_0_0_pkt_open.h.
namespace baregpu::hcq::amd {
namespace {

enum Op : uint32_t { kNop = 0, kCopy = 1, kWrite = 2, kIndirect = 4, kFence = 5, kPollRegMem = 8, kTimestamp = 13 };
constexpr uint32_t kTimestampGetGlobal = 2 << 8;
constexpr uint32_t kFenceMtypeUncached = 3 << 16;  // MTYPE in 18:16, from SDMA 5.0 on
constexpr uint32_t kMemPoll = 1u << 31;
constexpr uint32_t kPollInterval = 4, kRetryForever = 0xfff << 16;

}  // namespace

PatchSlot SdmaList::poll(GpuVa va, Compare compare, uint32_t value) {
  if (va.value % 4) throw Error(fmt::format("wait on misaligned address {:#x}", va.value));
  words_.insert(words_.end(), {kPollRegMem | uint32_t(compare) << 28 | kMemPoll, lo32(va.value), hi32(va.value), value,
                               0xffffffff, kPollInterval | kRetryForever});
  return {uint32_t(words_.size() - 3), 1};
}

PatchSlot SdmaList::signal(GpuVa va, uint32_t value) {
  if (va.value % 4) throw Error(fmt::format("signal at misaligned address {:#x}", va.value));
  words_.insert(words_.end(), {kFence | (target_.version.major >= 5 ? kFenceMtypeUncached : 0), lo32(va.value),
                               hi32(va.value), value});
  return {uint32_t(words_.size() - 1), 1};
}

void SdmaList::timestamp(GpuVa va) {
  if (va.value % 8) throw Error(fmt::format("timestamp at misaligned address {:#x}", va.value));
  words_.insert(words_.end(), {kTimestamp | kTimestampGetGlobal, lo32(va.value), hi32(va.value)});
}

void SdmaList::copy(GpuVa dst, GpuVa src, uint64_t size) {
  if (size == 0) throw Error("copy of 0 bytes");
  while (size) {
    const uint64_t n = std::min(size, target_.max_copy());
    words_.insert(words_.end(),
                  {kCopy, uint32_t(n - 1), 0, lo32(src.value), hi32(src.value), lo32(dst.value), hi32(dst.value)});
    src = src + n;
    dst = dst + n;
    size -= n;
  }
}

PatchSlot SdmaList::write(GpuVa va, std::span<const uint32_t> values) {
  if (va.value % 4 || values.empty() || values.size() > 0xfffff)
    throw Error(fmt::format("write of {} dwords to {:#x}", values.size(), va.value));
  words_.insert(words_.end(), {kWrite, lo32(va.value), hi32(va.value), uint32_t(values.size() - 1)});
  PatchSlot slot{uint32_t(words_.size()), uint8_t(std::min<size_t>(values.size(), 2))};
  words_.insert(words_.end(), values.begin(), values.end());
  return slot;
}

void SdmaList::pad_for_indirect() {
  while (words_.size() % 8) words_.push_back(kNop);
}

std::vector<uint32_t> sdma_packet_lengths(std::span<const uint32_t> w) {
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i < w.size();) {
    uint32_t n = 0;
    switch (w[i] & 0xff) {
      case kNop: n = 1 + Bits<29, 16>::get(w[i]); break;
      case kCopy: n = 7; break;
      case kWrite: n = i + 3 < w.size() ? 4 + (w[i + 3] & 0xfffff) + 1 : 0; break;
      case kIndirect: n = 6; break;
      case kFence: n = 4; break;
      case kPollRegMem: n = 6; break;
      case kTimestamp: n = 3; break;
      default: break;
    }
    if (n == 0 || i + n > w.size())
      throw Error(fmt::format("SDMA list: packet {:#x} at dword {} is not one of ours", w[i], i));
    lengths.push_back(n);
    i += n;
  }
  return lengths;
}

}  // namespace baregpu::hcq::amd
