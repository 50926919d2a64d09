#include "am/page_table.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "drivers/base/error.hpp"

namespace baregpu::am {
namespace {

// GFX11 entries: Linux amdgpu_vm.h (AMDGPU_PTE_*) and gmc_v11_0.c (gmc_v11_0_get_vm_pde/pte).
class Gfx11Format final : public PageTableFormat {
 public:
  using Valid = Bits64<0>;
  using System = Bits64<1>;
  using Snooped = Bits64<2>;
  using Executable = Bits64<4>;
  using Readable = Bits64<5>;
  using Writeable = Bits64<6>;
  using Fragment = Bits64<11, 7>;
  using PageAddress = Bits64<47, 12>;
  using Mtype = Bits64<50, 48>;
  using PdePte = Bits64<54>;  // this directory entry is a huge page
  static constexpr uint64_t kMtypeCached = 0, kMtypeUncached = 3;

  uint64_t leaf(unsigned level, uint64_t address, PageFlags f, unsigned fragment) const override {
    return Valid::set(1) | System::set(f.system) | Snooped::set(f.snooped) | Executable::set(f.executable) |
           Readable::set(f.readable) | Writeable::set(f.writable) | Fragment::set(fragment) |
           (address & PageAddress::mask) | Mtype::set(f.uncached ? kMtypeUncached : kMtypeCached) |
           PdePte::set(level != 3);
  }
  uint64_t table(unsigned, uint64_t address) const override { return Valid::set(1) | (address & PageAddress::mask); }
  unsigned address_bits() const override { return 44; }
  unsigned depth() const override { return 3; }
  unsigned block_size() const override { return 0; }
};

constexpr unsigned kMaxFragment = 26;  // 256 GiB: stays inside one PDB1 table; the field would hold 31

}  // namespace

const PageTableFormat& page_table_format(IpVersion gc) {
  static const Gfx11Format gfx11;
  if (gc.major == 11) return gfx11;
  throw UnsupportedError(
      {.device = {}, .what = fmt::format("no page-table format for GC {}", gc.str()), .source = {}, .hint = {}});
}

struct PageTables::Table {
  VramOffset memory;
  unsigned level = 0;
  unsigned used = 0;  // entries that are valid
  std::array<uint64_t, 512> entries{};
  std::array<std::unique_ptr<Table>, 512> children;  // set where an entry points to a table
};

PageTables::PageTables(const Vram& vram, const PageTableFormat& format, VramOffset root, GpuVa va_base,
                       uint64_t paddr_base, TableMemory memory)
    : vram_(vram),
      format_(format),
      va_base_(va_base.value),
      paddr_base_(paddr_base),
      memory_(std::move(memory)),
      root_(std::make_unique<Table>()) {
  root_->memory = root;
  vram_.zero(root, kPage);
}

PageTables::~PageTables() = default;

PageTables::Table& PageTables::child(Table& t, unsigned index) {
  if (!t.children[index]) {
    auto c = std::make_unique<Table>();
    c->memory = memory_.allocate();
    c->level = t.level + 1;
    vram_.zero(c->memory, kPage);
    t.entries[index] = format_.table(t.level, paddr_base_ + c->memory.value);
    t.children[index] = std::move(c);
    ++t.used;
    ++tables_;
    write_entries(t, index, 1);
  }
  return *t.children[index];
}

void PageTables::write_entries(Table& t, unsigned first, unsigned count) {
  vram_.write(t.memory + first * 8ull, std::as_bytes(std::span(t.entries).subspan(first, count)));
}

void PageTables::map_block(uint64_t offset, uint64_t address, unsigned level, uint64_t count, PageFlags flags,
                           unsigned fragment) {
  Table* t = root_.get();
  for (unsigned l = 0; l < level; ++l) t = &child(*t, unsigned(offset / coverage(l)) & 511);
  unsigned first = unsigned(offset / coverage(level)) & 511;
  for (unsigned i = 0; i < count; ++i)
    t->entries[first + i] = format_.leaf(level, address + i * coverage(level), flags, fragment);
  t->used += unsigned(count);
  write_entries(*t, first, unsigned(count));
}

bool PageTables::any_mapped(const Table& t, uint64_t offset, uint64_t begin, uint64_t end) const {
  if (t.used == 0) return false;
  uint64_t step = coverage(t.level);
  for (uint64_t at = align_down(std::max(begin, offset), step); at < end && at - offset < 512 * step; at += step) {
    unsigned i = unsigned((at - offset) / step);
    if (t.children[i] ? any_mapped(*t.children[i], at, std::max(begin, at), std::min(end, at + step))
                      : t.entries[i] != 0)
      return true;
  }
  return false;
}

void PageTables::map(GpuVa va, std::span<const PhysRun> runs, PageFlags flags) {
  uint64_t total = 0;
  for (const PhysRun& r : runs) {
    if (r.address % kPage || r.size % kPage || r.size == 0 || (r.address + r.size - 1) >> format_.address_bits())
      throw Error(fmt::format("cannot map {} bytes of physical address {:#x}: must be 4 KiB-aligned and below 2^{}",
                              r.size, r.address, format_.address_bits()));
    total += r.size;
  }
  if (va.value < va_base_ || va.value % kPage || total == 0 || (va.value - va_base_ + total - 1) >> 48)
    throw Error(
        fmt::format("cannot map {} bytes at VA {:#x}: outside the address space or misaligned", total, va.value));
  uint64_t offset = va.value - va_base_;
  if (any_mapped(*root_, 0, offset, offset + total))
    throw Error(fmt::format("VA range {:#x}..{:#x} is mapped already", va.value, va.value + total));

  uint64_t begin = offset, at = offset;
  try {
    for (const PhysRun& r : runs) map_run(at, r, flags);
  } catch (const Error&) {
    if (at > begin) unmap_in(*root_, 0, begin, at);
    throw;
  }
}

void PageTables::map_run(uint64_t& at, const PhysRun& r, PageFlags flags) {
  uint64_t address = r.address, left = r.size;
  while (left) {
    // The largest naturally aligned block that starts here: the TLB may cache it as one entry. Both addresses must be
    // aligned, since hardware may build the physical address from the block's base.
    unsigned fragment = std::min(log2_floor(left), 12 + kMaxFragment);
    if (at | address) fragment = std::min(fragment, unsigned(std::countr_zero(at | address)));
    fragment -= 12;
    unsigned level = fragment >= 18 ? 1 : fragment >= 9 ? 2 : 3;
    uint64_t block = kPage << fragment;
    map_block(at, address, level, block / coverage(level), flags, fragment);
    at += block;
    address += block;
    left -= block;
  }
}

void PageTables::unmap_in(Table& t, uint64_t offset, uint64_t begin, uint64_t end) {
  const uint64_t step = coverage(t.level);
  unsigned first = unsigned((align_down(begin, step) - offset) / step), dirty = 0;
  for (unsigned i = first; i < 512 && offset + i * step < end; ++i, ++dirty) {
    uint64_t at = offset + i * step, b = std::max(begin, at), e = std::min(end, at + step);
    if (t.children[i]) {
      unmap_in(*t.children[i], at, b, e);
      if (t.children[i]->used) continue;
      memory_.free(t.children[i]->memory);
      t.children[i].reset();
      --tables_;
    } else if (t.entries[i] == 0) {
      throw Error(fmt::format("unmap of VA {:#x}, which is not mapped", va_base_ + b));
    } else if (b != at || e != at + step) {
      throw Error(fmt::format("unmap of a part of the {} KiB page at VA {:#x}", step / 1024, va_base_ + at));
    }
    t.entries[i] = 0;
    --t.used;
  }
  if (dirty) write_entries(t, first, dirty);
}

void PageTables::unmap(GpuVa va, uint64_t size) {
  if (va.value < va_base_ || (va.value | size) % kPage || size == 0)
    throw Error(fmt::format("unmap of {} bytes at VA {:#x}: misaligned", size, va.value));
  unmap_in(*root_, 0, va.value - va_base_, va.value - va_base_ + size);
}

std::vector<PhysRun> to_runs(std::span<const BusAddress> pages) {
  std::vector<PhysRun> runs;
  for (BusAddress p : pages) {
    if (!runs.empty() && runs.back().address + runs.back().size == p.value)
      runs.back().size += PageTables::kPage;
    else
      runs.push_back({p.value, PageTables::kPage});
  }
  return runs;
}

}  // namespace baregpu::am
