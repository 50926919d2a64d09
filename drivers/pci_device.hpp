// The front door of drivers/: one PCI function, whatever the way to it (public).
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drivers/base/bits.hpp"
#include "drivers/mmio.hpp"

namespace baregpu {

struct PciId {
  uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  uint32_t class_code = 0;  ///< 0xCCSSPP
  uint8_t revision = 0;
};

struct BarInfo {
  BusAddress bus{};   ///< where a peer on the same fabric reaches it
  uint64_t size = 0;  ///< bytes; 0 = the BAR does not exist or is unassigned
  bool prefetchable = false;
  bool is_64bit = false;
};

/// How the CPU caches a mapping. kUncached for registers and doorbells; kWriteCombined only for VRAM.
enum class BarCaching { kUncached, kWriteCombined };

/// A mapping of one BAR; unmapped in the destructor. Must not outlive its PciDevice.
class BarMapping {
 public:
  struct Owner {
    virtual ~Owner() = default;
  };
  BarMapping() = default;
  BarMapping(Mmio mmio, std::unique_ptr<Owner> owner) : mmio_(mmio), owner_(std::move(owner)) {}
  const Mmio& mmio() const { return mmio_; }
  uint64_t size() const { return mmio_.size(); }

 private:
  Mmio mmio_;
  std::unique_ptr<Owner> owner_;
};

/// Host memory that the device can reach. Pinned; freed in the destructor. The GPU is a reader too: keep it until the
/// last signal that covers it. Must not outlive its PciDevice.
class DmaBuffer {
 public:
  struct Owner {
    virtual ~Owner() = default;
  };
  DmaBuffer() = default;
  DmaBuffer(Mmio view, std::vector<BusAddress> pages, std::unique_ptr<Owner> owner)
      : view_(view), pages_(std::move(pages)), owner_(std::move(owner)) {}
  DmaBuffer(DmaBuffer&&) noexcept = default;
  DmaBuffer& operator=(DmaBuffer&&) noexcept = default;

  uint64_t size() const { return view_.size(); }
  explicit operator bool() const { return size() != 0; }
  /// Host address, or nullptr on a transport where the memory is on another machine.
  std::byte* cpu() const { return const_cast<std::byte*>(view_.mapped()); }
  const Mmio& view() const { return view_; }
  /// One bus address for each 4 KiB page.
  std::span<const BusAddress> pages() const { return pages_; }

 private:
  Mmio view_;
  std::vector<BusAddress> pages_;
  std::unique_ptr<Owner> owner_;
};

/// One PCI function that we own exclusively. Implementations: sysfs, VFIO, USB bridge, remote, mock.
/// Errors are TransportError unless said otherwise. Thread: one thread at a time, except where a method says "any".
class PciDevice {
 public:
  PciDevice() = default;
  PciDevice(const PciDevice&) = delete;
  PciDevice& operator=(const PciDevice&) = delete;
  virtual ~PciDevice() = default;

  /// For messages: "0000:03:00.0", "MOCKPCI+AMD:0".
  virtual const std::string& name() const = 0;
  virtual PciId id() const = 0;

  /// Config space, `width` 1, 2 or 4 bytes, naturally aligned. All ones = the device is gone.
  virtual uint32_t config_read(unsigned offset, unsigned width) = 0;
  virtual void config_write(unsigned offset, unsigned width, uint32_t value) = 0;

  virtual BarInfo bar_info(unsigned bar) = 0;
  /// Maps the whole BAR. @throws TransportError if it is absent or unassigned.
  virtual BarMapping map_bar(unsigned bar, BarCaching caching) = 0;
  /// Grows the BAR to the largest size that the device and the bridge windows allow; returns the size afterwards (which
  /// may be the old one). No mapping of any BAR may exist. @throws TransportError if the BAR was left unassigned.
  virtual uint64_t resize_bar_to_largest(unsigned bar) = 0;

  /// `size` is rounded up to 4 KiB. With `contiguous` the bus addresses form one run (at most 2 MiB).
  virtual DmaBuffer alloc_dma(uint64_t size, bool contiguous) = 0;
  /// Largest bus address that alloc_dma may return must fit in this many bits (default 44: gfx11 PTEs).
  virtual void set_dma_bits(unsigned) {}

  /// Function-level or bus reset by the transport, config space restored. @throws UnsupportedError where none exists.
  virtual void reset() = 0;

  /// Whether wait_interrupt() works; without it callers poll.
  virtual bool has_interrupt() const { return false; }
  /// Waits for one MSI; true if one came. Thread: any. @throws UnsupportedError without interrupts.
  virtual bool wait_interrupt(std::chrono::milliseconds timeout);

  /// Folders with firmware that belongs to just this device, searched before all others (mocks: their signed synthetic
  /// files). Empty for real hardware.
  virtual std::vector<std::string> firmware_folders() const { return {}; }

  /// Memory decode (bit 1) and bus master (bit 2) of PCI_COMMAND; read back and checked.
  void set_bus_master(bool on);
  bool bus_master();
};

constexpr unsigned kPciCommand = 0x04;
constexpr uint16_t kPciCommandMemory = 1u << 1, kPciCommandBusMaster = 1u << 2, kPciCommandIntxDisable = 1u << 10;

}  // namespace baregpu
