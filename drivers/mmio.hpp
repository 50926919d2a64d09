// The seam to device memory: a mapped BAR, or a call on every other transport (public).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace baregpu {

/// Device memory that is reached by calls: USB, remote, mock, tracing. Offsets are bytes from the start of the window;
/// Mmio has already checked them. Widths and order must be kept. Errors are TransportError.
class MmioBackend {
 public:
  virtual ~MmioBackend() = default;
  virtual uint32_t read32(uint64_t offset) = 0;
  virtual void write32(uint64_t offset, uint32_t value) = 0;
  virtual uint64_t read64(uint64_t offset) = 0;
  virtual void write64(uint64_t offset, uint64_t value) = 0;
  /// Any length and alignment; only for memory-like BARs (VRAM).
  virtual void read_block(uint64_t offset, std::span<std::byte> out) = 0;
  virtual void write_block(uint64_t offset, std::span<const std::byte> in) = 0;
};

/// A view of device memory; copyable, does not own. An access is one range check and one predictable test before a
/// volatile load or store (acquire and release: plain moves on x86, and what a checker needs to see the order that a polled
/// signal gives). Out-of-range and misaligned accesses throw Error. Thread: as the device's.
class Mmio {
 public:
  Mmio() = default;
  Mmio(volatile void* base, uint64_t size) : base_(static_cast<volatile std::byte*>(base)), size_(size) {}
  Mmio(MmioBackend& backend, uint64_t size) : backend_(&backend), size_(size) {}

  uint64_t size() const { return size_; }
  explicit operator bool() const { return size_ != 0; }
  /// The mapped address of `offset`, or nullptr when this view is reached by calls.
  volatile std::byte* mapped(uint64_t offset = 0) const { return base_ ? base_ + offset : nullptr; }
  MmioBackend* backend() const { return backend_; }

  uint32_t read32(uint64_t offset) const {
    check(offset, 4);
    return base_ ? __atomic_load_n(reinterpret_cast<volatile uint32_t*>(base_ + offset), __ATOMIC_ACQUIRE) : backend_->read32(start_ + offset);
  }
  void write32(uint64_t offset, uint32_t value) const {
    check(offset, 4);
    if (base_)
      __atomic_store_n(reinterpret_cast<volatile uint32_t*>(base_ + offset), value, __ATOMIC_RELEASE);
    else
      backend_->write32(start_ + offset, value);
  }
  uint64_t read64(uint64_t offset) const {
    check(offset, 8);
    return base_ ? __atomic_load_n(reinterpret_cast<volatile uint64_t*>(base_ + offset), __ATOMIC_ACQUIRE) : backend_->read64(start_ + offset);
  }
  void write64(uint64_t offset, uint64_t value) const {
    check(offset, 8);
    if (base_)
      __atomic_store_n(reinterpret_cast<volatile uint64_t*>(base_ + offset), value, __ATOMIC_RELEASE);
    else
      backend_->write64(start_ + offset, value);
  }
  /// Block copies with aligned 8- and 4-byte accesses where alignment allows, bytes at ragged ends (VRAM only).
  void read_block(uint64_t offset, std::span<std::byte> out) const;
  void write_block(uint64_t offset, std::span<const std::byte> in) const;
  void fill_zero(uint64_t offset, uint64_t size) const;

  /// A view of `size` bytes from `offset`. @throws Error outside this view.
  Mmio sub(uint64_t offset, uint64_t size) const;

 private:
  void check(uint64_t offset, unsigned width) const {
    if (offset > size_ || size_ - offset < width || offset % width) [[unlikely]]
      fail(offset, width);
  }
  [[noreturn]] void fail(uint64_t offset, uint64_t width) const;
  void check_range(uint64_t offset, uint64_t size) const {
    if (offset > size_ || size_ - offset < size) [[unlikely]]
      fail(offset, size);
  }

  volatile std::byte* base_ = nullptr;
  MmioBackend* backend_ = nullptr;
  uint64_t start_ = 0;  // offset of this view in the backend's window
  uint64_t size_ = 0;
};

/// All earlier stores of this thread, also those to write-combined memory, are visible before any later one.
inline void write_barrier() noexcept { __builtin_ia32_sfence(); }
/// Full fence: loads and stores. Needed before an HDP flush and after a polled signal.
inline void full_barrier() noexcept { __builtin_ia32_mfence(); }

}  // namespace baregpu
