// A memory hub (GC or MM): system aperture, page tables of VMID 0, TLBs, invalidation engine, fault registers.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "mock/isa/executor.hpp"

namespace baregpu::mock {

class Machine;

/// Where a GPU address leads.
struct Mapping {
  enum class Status : uint8_t { kOk, kRange, kInvalid, kWalkerError };
  Status status = Status::kInvalid;
  uint64_t va_begin = 0, va_end = 0;  ///< the mapping holds for this range
  bool system = false;                ///< bus address, else VRAM offset
  bool prt = false;                   ///< partially resident: reads 0, writes are dropped, no fault
  bool readable = false, writable = false, executable = false;
  uint64_t target = 0;           ///< of va_begin
  uint64_t pte = 0, pte_va = 0;  ///< the entry that it was made from, and the page that was looked up
};

/// Names of engines in fault status registers; values are ours (the CID list of the chips is not public).
enum class Client : uint8_t { kCpFetch = 0x04, kCpData = 0x05, kShader = 0x08, kSdma = 0x10, kPsp = 0x20 };

/// Thread: the card's lock, except generation().
class Hub {
 public:
  /// `prefix` is "GC" or "MM".
  Hub(Machine& machine, std::string prefix);

  /// Looks an address up as the TLB does, stale entries included.
  Mapping lookup(uint64_t va, const char* who);
  /// Reads or writes virtual memory. A fault is raised and completes against the default page where the driver enabled
  /// that; false = the engine hangs.
  bool read(uint64_t va, std::span<std::byte> out, Client client, const char* who);
  bool write(uint64_t va, std::span<const std::byte> in, Client client, const char* who);
  bool read32(uint64_t va, uint32_t& v, Client c, const char* who) {
    return read(va, std::as_writable_bytes(std::span(&v, 1)), c, who);
  }
  bool write32(uint64_t va, uint32_t v, Client c, const char* who) {
    return write(va, std::as_bytes(std::span(&v, 1)), c, who);
  }
  bool write64(uint64_t va, uint64_t v, Client c, const char* who) {
    return write(va, std::as_bytes(std::span(&v, 1)), c, who);
  }
  /// Latches the fault registers and sends the interrupt. Returns whether the default page takes the access.
  bool raise_fault(uint64_t va, bool write, Mapping::Status why, unsigned permission, Client client);

  /// Whether the page tables' range covers `va` (it may be unmapped all the same).
  bool in_tables(uint64_t va) const { return va >> 12 >= table_start_.get() && va >> 12 <= table_end_.get(); }
  /// VRAM offset of the page that takes faulting accesses.
  uint64_t default_page_offset() const { return default_addr_.get() << 12; }
  /// Drops every cached translation.
  void invalidate();
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  void bump_generation() { generation_.fetch_add(1, std::memory_order_acq_rel); }
  /// Power-on state of caches and engine (registers are reset by the register file).
  void reset();

 private:
  Mapping walk(uint64_t va, bool cached, const char* who);
  bool entry_at(uint64_t address, bool system, bool cached, const char* who, uint64_t& entry);
  Mapping aperture(uint64_t va) const;
  std::string name(const char* suffix) const { return prefix_ + suffix; }
  void on_request(uint32_t value);
  void default_page(uint64_t va, std::byte* data, size_t n, bool write);
  void check_format(uint64_t pte, uint64_t va);

  Machine& m_;
  std::string prefix_;
  bool is_mm_;
  // Registers that every translation looks at.
  struct Pair {
    const uint32_t *lo, *hi;
    uint64_t get() const { return uint64_t{*hi} << 32 | *lo; }
  };
  const uint32_t *aperture_low_, *aperture_high_, *l1_cntl_, *l2_cntl_, *context_cntl_;
  Pair table_start_, table_end_, table_base_, default_addr_, invalidate_range_;
  std::map<uint64_t, Mapping> tlb_;                              // by va_begin
  std::unordered_map<uint64_t, std::array<uint64_t, 8>> lines_;  // walker cache: 64-byte lines of tables
  std::atomic<uint64_t> generation_{1};
  uint32_t ack_ = 0;
  bool semaphore_held_ = false;
  bool fault_latched_ = false;
};

/// The shader cores' view of a hub. Thread: any (takes the card's lock).
class ShaderSpace final : public isa::AddressSpace {
 public:
  ShaderSpace(Machine& machine, Hub& hub) : m_(machine), hub_(hub) {}
  isa::Translation translate(uint64_t va, isa::Access access) override;
  uint64_t generation() const override { return hub_.generation(); }

 private:
  Machine& m_;
  Hub& hub_;
};

}  // namespace baregpu::mock
