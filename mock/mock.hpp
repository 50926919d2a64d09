// The front door of mock/: GPUs made of software that keep the hardware's rules (public).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/pci_device.hpp"

namespace baregpu::mock {

/// How the card is found at the first open.
enum class CardState { kCold, kAmdgpu, kAm, kAmDirty, kStalled, kVf };

struct MockOptions {
  std::string arch = "gfx1100";  ///< gfx1100 (Navi31), gfx1101 (Navi32), gfx1102 (Navi33)
  CardState card = CardState::kCold;
  std::string fault;                  ///< MOCK_FAULT syntax: "psp-timeout@2,page-fault@17"
  uint64_t seed = 1;                  ///< poll counts, HDP drain order, TLB eviction
  std::string state_dir;              ///< non-volatile state; empty = none
  uint64_t vram_size = 0;             ///< 0 = the chip's (Navi31: 24 GiB); sparse
  uint64_t bar0_size = 256ull << 20;  ///< at power-on
  bool bar0_resizable = true;
  bool interrupts = true;         ///< MSI delivered through wait_interrupt()
  unsigned executor_threads = 0;  ///< 0 = one a host core
  static MockOptions from_env();  ///< MOCK_CARD, MOCK_FAULT, MOCK_STATE, MOCK_SEED. @throws UsageError
};

/// One broken rule: the mock behaved as hardware would and took a note.
struct Violation {
  std::string rule;    ///< stable name: "hdp-stale-read", "stale-translation", "psp-order", ...
  std::string detail;  ///< register or address, values, last accesses
};

/// Register access counters since the last reset_counters(), for `bench boot`.
struct AccessCounters {
  uint64_t mmio_reads = 0, mmio_writes = 0, bar0_reads = 0, bar0_writes = 0, config = 0, doorbells = 0;
};

/// A card that outlives its openings: VRAM, firmware and register state stay between open() calls, as on a real card
/// between processes. Thread: one, except where PciDevice says otherwise; engines run on threads of their own.
class MockGpu {
 public:
  virtual ~MockGpu() = default;
  /// Opens the card exclusively. @throws Error if it is open already.
  virtual std::unique_ptr<PciDevice> open(std::string name) = 0;
  virtual std::vector<Violation> violations() const = 0;
  virtual void clear_violations() = 0;
  virtual AccessCounters counters() const = 0;
  virtual void reset_counters() = 0;
  /// Records every BAR5 access as text "R|W NAME dword = value" while set (golden traces); nullptr stops.
  virtual void set_trace(std::vector<std::string>* out) = 0;
  /// Switches one rule of the strictness list off (test of the rule itself). @throws Error for an unknown name.
  virtual void set_lenient(const std::string& rule, bool lenient) = 0;
  /// Folder with this card's signed synthetic firmware files.
  virtual const std::string& firmware_folder() const = 0;
};

std::shared_ptr<MockGpu> make_mock_gpu(const MockOptions& options);

/// Writes the chip's synthetic firmware files (right containers, signed for the mock) into `folder`.
void write_firmware(const std::string& arch, const std::string& folder);

/// Adds MOCKPCI to the interface table. The card lives as long as the process.
void register_interfaces();

}  // namespace baregpu::mock
