// Buffers and their allocator (public).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/base/bits.hpp"
#include "drivers/mmio.hpp"
#include "hcq/signal.hpp"

namespace baregpu::hcq {

enum class BufferKind : uint8_t {
  kDevice,          ///< local memory of the device
  kDeviceUncached,  ///< local memory the CPU and GPU share (rings, arguments); host memory when the BAR is small
  kHost,            ///< host memory the device can reach
};

/// Memory from a device; `backing` is the device's own record.
struct RawMemory {
  GpuVa va{};
  uint64_t size = 0;
  BufferKind kind = BufferKind::kDevice;
  Mmio cpu;  ///< empty when the CPU cannot reach it
  void* backing = nullptr;
};

/// What a device gives an allocator.
class MemoryBackend {
 public:
  virtual ~MemoryBackend() = default;
  virtual RawMemory allocate(uint64_t size, BufferKind kind, bool cpu_access, const std::string& label) = 0;
  virtual void free(const RawMemory& memory) noexcept = 0;
};

class Allocator;

/// A piece of device-visible memory; returned to its allocator in the destructor. Must not outlive the device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& o) noexcept { *this = std::move(o); }
  Buffer& operator=(Buffer&& o) noexcept;
  ~Buffer();
  GpuVa va() const { return memory_.va; }
  uint64_t size() const { return size_; }  ///< as asked for
  uint64_t capacity() const { return memory_.size; }
  BufferKind kind() const { return memory_.kind; }
  /// The CPU's view, or an empty Mmio.
  const Mmio& cpu() const { return memory_.cpu; }
  explicit operator bool() const { return owner_ != nullptr; }

 private:
  friend class Allocator;
  Allocator* owner_ = nullptr;
  RawMemory memory_;
  uint64_t size_ = 0;
  bool cpu_access_ = false;
};

/// Hands out buffers and keeps freed ones for the next request of the same size class. A freed buffer is reused only
/// after all work that was submitted before its release is done. Thread: the device's.
class Allocator {
 public:
  Allocator(MemoryBackend& backend, const Timeline& timeline) : backend_(backend), timeline_(timeline) {}
  ~Allocator();
  /// `size` bytes (at least 1). On lack of memory the cache is emptied first. @throws OutOfMemoryError.
  Buffer allocate(uint64_t size, BufferKind kind = BufferKind::kDevice, bool cpu_access = false,
                  const std::string& label = "buffer");
  /// Gives cached buffers whose last use is over back to the device; returns bytes given back.
  uint64_t trim();
  uint64_t live_bytes() const { return live_; }
  uint64_t cached_bytes() const { return cached_; }

 private:
  friend class Buffer;
  struct Key {
    uint64_t size;
    BufferKind kind;
    bool cpu_access;
    auto operator<=>(const Key&) const = default;
  };
  struct Cached {
    RawMemory memory;
    TimelinePoint last_use;
  };
  void release(Buffer& b) noexcept;
  MemoryBackend& backend_;
  const Timeline& timeline_;
  std::map<Key, std::vector<Cached>> cache_;
  uint64_t live_ = 0, cached_ = 0;
};

}  // namespace baregpu::hcq
