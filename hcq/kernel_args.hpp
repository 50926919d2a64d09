// Kernel arguments: values, checks against the kernel's metadata, and the ring they are written to (public).
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "compiler/program_image.hpp"
#include "hcq/buffer.hpp"
#include "hcq/signal.hpp"

namespace baregpu::hcq {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  auto operator<=>(const Dim3&) const = default;
};

/// One explicit argument: a buffer's address or up to 16 bytes of plain data.
class Arg {
 public:
  Arg(const Buffer& b) : pointer_(true), size_(8) {
    uint64_t va = b.va().value;
    std::memcpy(bytes_.data(), &va, 8);
  }
  /// A device address with its own arithmetic.
  Arg(GpuVa va) : pointer_(true), size_(8) { std::memcpy(bytes_.data(), &va.value, 8); }
  template <class T>
  requires(std::is_arithmetic_v<T> && sizeof(T) <= 16) Arg(T v) : size_(sizeof(T)) {
    std::memcpy(bytes_.data(), &v, sizeof(T));
  }
  /// Dynamic LDS of this many bytes (a __local pointer argument).
  static Arg local(uint32_t bytes) {
    Arg a(uint32_t{0});
    a.local_ = bytes;
    return a;
  }
  bool is_pointer() const { return pointer_; }
  uint32_t local_bytes() const { return local_; }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, 16> bytes_{};
  bool pointer_ = false;
  uint32_t size_ = 0, local_ = 0;
};

/// Writes the kernarg segment: explicit arguments as given, hidden ones from the launch geometry.
/// @param out  kernel.kernarg_size bytes. @returns dynamic LDS bytes asked for by __local arguments.
/// @throws Error naming kernel and argument when number, kind or size do not match; UnsupportedError for hidden
/// arguments that need services this runtime does not have (printf, hostcall, device queues are given as null).
uint32_t write_kernel_args(const KernelInfo& kernel, std::span<const Arg> args, Dim3 groups, Dim3 block,
                           std::span<std::byte> out);

/// A bump ring for kernarg segments. A wrap waits for the oldest user. Thread: the device's.
class KernelArgsRing {
 public:
  KernelArgsRing(Buffer memory, const Timeline& timeline);
  struct Slot {
    GpuVa va;
    Mmio cpu;
  };
  /// 64-byte aligned. `wait` is called with the point that must be reached before the space is free (blocks).
  /// @throws Error if `size` is larger than the ring.
  template <class Wait>
  Slot allocate(uint64_t size, Wait&& wait) {
    const uint64_t need = align_up(size ? size : 1, kAlign);
    if (need > memory_.capacity()) too_large(size);
    uint64_t at = head_ % memory_.capacity();
    uint64_t start = at + need > memory_.capacity() ? head_ + memory_.capacity() - at : head_;
    while (start + need - tail_ > memory_.capacity()) {
      if (users_.empty()) {
        tail_ = start;
        break;
      }
      if (!timeline_.reached(users_.front().point)) wait(users_.front().point);
      tail_ = users_.front().end;
      users_.pop_front();
    }
    head_ = start + need;
    return {memory_.va() + start % memory_.capacity(), memory_.cpu().sub(start % memory_.capacity(), need)};
  }
  /// Everything allocated so far is in use until `point`.
  void retire_with(const TimelinePoint& point) {
    if (!users_.empty() && users_.back().end == head_) return;
    users_.push_back({head_, point});
  }
  static constexpr uint64_t kAlign = 64;

 private:
  struct User {
    uint64_t end;
    TimelinePoint point;
  };
  [[noreturn]] void too_large(uint64_t size) const;
  Buffer memory_;
  const Timeline& timeline_;
  uint64_t head_ = 0, tail_ = 0;  // monotonic byte counts
  std::deque<User> users_;
};

}  // namespace baregpu::hcq
