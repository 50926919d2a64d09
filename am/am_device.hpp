// The front door of am/: an AMD GPU that no kernel driver owns, booted and ready for queues (public).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "am/chips.hpp"
#include "am/context.hpp"
#include "am/firmware.hpp"
#include "am/gfx.hpp"
#include "am/gmc.hpp"
#include "am/ih.hpp"
#include "am/page_table.hpp"
#include "am/psp.hpp"
#include "am/sdma.hpp"
#include "am/smu.hpp"
#include "am/soc.hpp"
#include "am/tlsf.hpp"

namespace baregpu::am {

struct BootOptions {
  bool force_reset = false;  ///< mode1 reset and full boot whatever the state (AM_RESET)
  std::optional<FirmwareFolders>
      firmware;  ///< default: the device's own folders, AM_FIRMWARE_PATH, /lib/firmware/amdgpu
  std::function<void(const std::string&)> progress;  ///< called with each step's name
  RegisterIo::TraceHook trace;                       ///< sees every register access, until the device is gone
};

enum class BootPath { kCold, kReset, kPartial };
const char* boot_path_name(BootPath path);

struct BootReport {
  BootPath path = BootPath::kCold;
  double milliseconds = 0;
  uint64_t register_accesses = 0;
  std::vector<std::pair<std::string, uint64_t>> accesses_by_step;
};

/// What a piece of GPU-visible memory is.
enum class MemoryKind {
  kVram,          ///< local memory, cached by the GPU
  kVramUncached,  ///< local memory for rings, signals, arguments
  kHost,          ///< host memory, snooped and uncached by the GPU
};

/// A mapped piece of memory; owned by AmDevice, see allocate().
struct Memory {
  GpuVa va{};
  uint64_t size = 0;  ///< bytes, multiple of 4 KiB
  MemoryKind kind = MemoryKind::kVram;
  Mmio cpu;  ///< empty when the CPU cannot reach it (VRAM beyond the BAR window)
  std::string label;

 private:
  friend class AmDevice;
  VramOffset vram_{};
  DmaBuffer host_;
  uint64_t va_block_ = 0;
};

/// What went wrong on the GPU since the last look, first cause first.
struct FaultReport {
  bool faulted = false;
  std::string code;  ///< "page_fault", "illegal_instruction", "memory_violation", "bad_packet", "sdma_hang", ...
  std::string text;  ///< all of it in words
  std::optional<VmFault> vm;
};

/// Owns the PCI function from construction to destruction. A constructor that throws leaves nothing behind but a GPU
/// that needs a reset (SCRATCH_REG6 stays 1, so the next open resets it). Thread: one at a time.
class AmDevice {
 public:
  AmDevice(std::unique_ptr<PciDevice> pci, BootOptions options);
  ~AmDevice();
  AmDevice(const AmDevice&) = delete;

  const std::string& name() const { return pci_->name(); }
  const char* arch() const { return gc_row_->arch; }
  const char* chip() const { return gc_row_->chip; }
  const GcInfo& gc_info() const { return *c_.discovery.gc; }
  const BootReport& boot_report() const { return report_; }
  const Discovery& discovery() const { return c_.discovery; }
  uint64_t vram_size() const { return c_.vram->size(); }
  uint64_t vram_used() const { return vram_heap_->used(); }
  bool large_bar() const { return c_.vram->large_bar(); }
  const RegisterBlock& gc() const { return *c_.gc; }
  const RegisterBlock& nbio() const { return *c_.nbio; }

  /// Allocates, maps and makes visible to the GPU. VRAM is not cleared. A `cpu_access` request for VRAM that BAR0 does
  /// not reach gives host memory instead. @throws OutOfMemoryError.
  Memory* allocate(uint64_t size, MemoryKind kind, bool cpu_access, std::string label);
  /// Unmaps, invalidates TLBs, gives the memory back. No queue may still use it.
  void free(Memory* memory) noexcept;
  /// The live allocation that contains `va`, or the nearest one.
  const Memory* nearest(GpuVa va) const;

  void setup_compute_queue(const ComputeQueueSetup& q) { gfx_->setup_compute_queue(q); }
  void setup_sdma_queue(const SdmaQueueSetup& q) { sdma_->setup_queue(q); }
  void flush_hdp() { soc_->flush_hdp(); }
  /// A mapped view of doorbell `index` (8 bytes).
  Mmio doorbell(unsigned index) const { return doorbells_.mmio().sub(uint64_t{index} * 8, 8); }

  bool has_interrupt() const { return pci_->has_interrupt(); }
  bool wait_interrupt(Milliseconds timeout) { return pci_->wait_interrupt(timeout); }
  /// Drains the interrupt rings and fault registers.
  FaultReport collect_faults();
  /// Queue, MEC reset after a fault; queues must be set up again. @throws Error if the MEC does not come back.
  void recover();
  bool in_error() const { return error_state_; }
  /// A queue stopped making progress without a fault report: shutdown then does not wait for it, and the next open
  /// resets.
  void note_hang() { error_state_ = true; }
  /// Stops queues and engines and leaves the GPU as the next open wants it. Memory may be freed after it, nothing else
  /// done. The destructor calls it. Each wait in it is bounded.
  void shutdown() noexcept;

 private:
  void step(const std::string& name);
  void boot(const BootOptions& options);
  void read_discovery();
  BootPath choose_path(const BootOptions& options);
  void mode1_reset();
  void wait_vbios();
  void make_blocks();

  std::unique_ptr<PciDevice> pci_;
  BarMapping registers_, vram_bar_, doorbells_;
  AmContext c_;
  const GcRow* gc_row_ = nullptr;
  std::function<void(const std::string&)> progress_;
  BootReport report_;
  uint64_t step_start_ = 0;
  std::unique_ptr<Soc> soc_;
  std::unique_ptr<Gmc> gmc_;
  std::unique_ptr<Ih> ih_;
  std::unique_ptr<Psp> psp_;
  std::unique_ptr<Smu> smu_;
  std::unique_ptr<Gfx> gfx_;
  std::unique_ptr<Sdma> sdma_;
  std::unique_ptr<Tlsf> table_pool_, vram_heap_;
  std::unique_ptr<PageTables> tables_;
  std::map<uint64_t, std::unique_ptr<Memory>> memory_;
  uint64_t mec_start_ = 0;
  bool booted_ = false, error_state_ = false;
};

}  // namespace baregpu::am
