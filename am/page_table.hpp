// GPU page tables: formats as data, one writer for all of them.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "am/regs/tables.hpp"
#include "am/vram.hpp"
#include "drivers/base/bits.hpp"

namespace baregpu::am {

/// What a page is and how it may be used.
struct PageFlags {
  bool system = false;    ///< host memory or a peer's BAR (bus address), not local VRAM
  bool snooped = false;   ///< the CPU's caches are asked
  bool uncached = false;  ///< MTYPE UC: not kept in the GPU's caches
  bool readable = true, writable = true, executable = true;
};

/// Encodes entries of one hardware format. `level`: 0 PDB2 (an entry covers 512 GiB), 1 PDB1 (1 GiB), 2 PDB0 (2 MiB), 3
/// PTB.
class PageTableFormat {
 public:
  virtual ~PageTableFormat() = default;
  virtual uint64_t leaf(unsigned level, uint64_t address, PageFlags flags, unsigned fragment) const = 0;
  virtual uint64_t table(unsigned level, uint64_t table_address) const = 0;
  virtual unsigned address_bits() const = 0;
  /// CONTEXTn_CNTL fields: levels below the root, and log2 of the PDB0 block size in "translate further" formats.
  virtual unsigned depth() const = 0;
  virtual unsigned block_size() const = 0;
};

/// The format of a GC version. @throws UnsupportedError.
const PageTableFormat& page_table_format(IpVersion gc);

/// One run of physically contiguous memory; `address` is a VRAM address (paddr_base added) or a bus address.
struct PhysRun {
  uint64_t address;
  uint64_t size;
};

/// The 4-level page table of VMID 0. Keeps a host copy, so nothing is read back from VRAM; writes go out in runs.
/// The caller flushes HDP and TLBs. Thread: one at a time.
class PageTables {
 public:
  static constexpr uint64_t kPage = 4096;
  /// Gives a zero-filled 4 KiB VRAM page for a table / takes it back.
  struct TableMemory {
    std::function<VramOffset()> allocate;
    std::function<void(VramOffset)> free;
  };
  /// @param va_base  VA that page-table index 0 stands for. @param paddr_base  added to VRAM offsets in entries (XGMI).
  PageTables(const Vram& vram, const PageTableFormat& format, VramOffset root, GpuVa va_base, uint64_t paddr_base,
             TableMemory memory);
  ~PageTables();

  /// Maps `runs` one after another from `va`; all 4 KiB-aligned. @throws Error if any page is mapped already or a run
  /// is misaligned (nothing is changed then), OutOfMemoryError if no table page is left.
  void map(GpuVa va, std::span<const PhysRun> runs, PageFlags flags);
  /// @throws Error if part of the range is not mapped.
  void unmap(GpuVa va, uint64_t size);
  uint64_t table_count() const { return tables_; }

 private:
  struct Table;
  static uint64_t coverage(unsigned level) { return kPage << (9 * (3 - level)); }
  Table& child(Table& t, unsigned index);
  void write_entries(Table& t, unsigned first, unsigned count);
  void map_block(uint64_t offset, uint64_t address, unsigned level, uint64_t count, PageFlags flags, unsigned fragment);
  void map_run(uint64_t& at, const PhysRun& run, PageFlags flags);
  bool any_mapped(const Table& t, uint64_t offset, uint64_t begin, uint64_t end) const;
  void unmap_in(Table& t, uint64_t offset, uint64_t begin, uint64_t end);

  const Vram& vram_;
  const PageTableFormat& format_;
  uint64_t va_base_, paddr_base_;
  TableMemory memory_;
  uint64_t tables_ = 0;
  std::unique_ptr<Table> root_;
};

/// Merges page lists into runs.
std::vector<PhysRun> to_runs(std::span<const BusAddress> pages);

}  // namespace baregpu::am
