#include "am/tlsf.hpp"

#include <fmt/format.h>

#include <bit>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"

namespace baregpu::am {

Tlsf::Tlsf(std::string name, uint64_t base, uint64_t size, uint64_t granularity)
    : name_(std::move(name)), base_(base), size_(align_down(size, granularity)), granularity_(granularity) {
  for (auto& h : heads_) h.fill(kNone);
  if (size_) {
    uint32_t b = new_block();
    blocks_[b] = {.start = base_, .size = size_};
    insert_free(b);
  }
}

// Sizes are counted in granules, so that the first levels are not wasted on impossible sizes.
Tlsf::Bin Tlsf::bin_of(uint64_t size) const {
  uint64_t n = size / granularity_;
  unsigned fl = log2_floor(n);
  if (fl < kSlBits) return {0, unsigned(n)};
  return {fl - kSlBits + 1, unsigned(n >> (fl - kSlBits)) & (kSl - 1)};
}

uint32_t Tlsf::find(uint64_t size) const {
  // Round up to the next bin boundary so that any block of the found bin is large enough.
  uint64_t n = size / granularity_;
  unsigned fl = log2_floor(n);
  if (fl >= kSlBits) {
    uint64_t step = uint64_t{1} << (fl - kSlBits);
    if (n > ~uint64_t{0} / granularity_ - step) return kNone;
    n = (n + step - 1) & ~(step - 1);
  }
  Bin b = bin_of(n * granularity_);
  uint32_t sl = sl_map_[b.fl] & (~uint32_t{0} << b.sl);
  if (!sl) {
    uint64_t higher = b.fl + 1 < 64 ? fl_map_ & (~uint64_t{0} << (b.fl + 1)) : 0;
    if (!higher) return kNone;
    b.fl = unsigned(std::countr_zero(higher));
    sl = sl_map_[b.fl];
  }
  return heads_[b.fl][unsigned(std::countr_zero(sl))];
}

uint32_t Tlsf::scan(uint64_t size, uint64_t align) const {
  for (Bin bin = bin_of(size); bin.fl < kFl; ++bin.fl, bin.sl = 0)
    for (; bin.sl < kSl; ++bin.sl)
      for (uint32_t b = heads_[bin.fl][bin.sl]; b != kNone; b = blocks_[b].free_next)
        if (align_up(blocks_[b].start, align) - blocks_[b].start + size <= blocks_[b].size) return b;
  return kNone;
}

void Tlsf::insert_free(uint32_t i) {
  Bin b = bin_of(blocks_[i].size);
  uint32_t& head = heads_[b.fl][b.sl];
  blocks_[i].free = true;
  blocks_[i].free_prev = kNone;
  blocks_[i].free_next = head;
  if (head != kNone) blocks_[head].free_prev = i;
  head = i;
  fl_map_ |= uint64_t{1} << b.fl;
  sl_map_[b.fl] |= 1u << b.sl;
}

void Tlsf::remove_free(uint32_t i) {
  Block& k = blocks_[i];
  Bin b = bin_of(k.size);
  if (k.free_prev != kNone)
    blocks_[k.free_prev].free_next = k.free_next;
  else
    heads_[b.fl][b.sl] = k.free_next;
  if (k.free_next != kNone) blocks_[k.free_next].free_prev = k.free_prev;
  if (heads_[b.fl][b.sl] == kNone) {
    sl_map_[b.fl] &= ~(1u << b.sl);
    if (!sl_map_[b.fl]) fl_map_ &= ~(uint64_t{1} << b.fl);
  }
  k.free = false;
}

uint32_t Tlsf::new_block() {
  if (!spare_.empty()) {
    uint32_t i = spare_.back();
    spare_.pop_back();
    return i;
  }
  blocks_.emplace_back();
  return uint32_t(blocks_.size() - 1);
}

uint32_t Tlsf::split(uint32_t b, uint64_t size) {
  uint32_t rest = new_block();
  Block& k = blocks_[b];
  blocks_[rest] = {.start = k.start + size, .size = k.size - size, .prev = b, .next = k.next};
  if (k.next != kNone) blocks_[k.next].prev = rest;
  k.next = rest;
  k.size = size;
  return rest;
}

void Tlsf::merge_with_next(uint32_t b) {
  uint32_t n = blocks_[b].next;
  blocks_[b].size += blocks_[n].size;
  blocks_[b].next = blocks_[n].next;
  if (blocks_[n].next != kNone) blocks_[blocks_[n].next].prev = b;
  spare_.push_back(n);
}

std::optional<uint64_t> Tlsf::try_allocate(uint64_t size, uint64_t align) {
  if (size == 0 || size > size_ || align > size_) return std::nullopt;
  size = align_up(size, granularity_);
  if (align < granularity_) align = granularity_;
  // First without room for alignment: large free blocks are usually aligned already.
  uint32_t b = find(size);
  if (b != kNone && align_up(blocks_[b].start, align) - blocks_[b].start + size > blocks_[b].size) b = kNone;
  if (b == kNone && align > granularity_) b = find(size + align - granularity_);
  // The bins round up; near the end of the memory an exact fit may still be in one of the blocks that were passed over.
  if (b == kNone) b = scan(size, align);
  if (b == kNone) return std::nullopt;
  remove_free(b);
  if (uint64_t lead = align_up(blocks_[b].start, align) - blocks_[b].start) {
    uint32_t rest = split(b, lead);
    insert_free(b);
    b = rest;
  }
  if (blocks_[b].size > size) insert_free(split(b, size));
  used_ += size;
  live_.emplace(blocks_[b].start, b);
  return blocks_[b].start;
}

uint64_t Tlsf::allocate(uint64_t size, uint64_t align) {
  if (auto a = try_allocate(size, align)) return *a;
  throw OutOfMemoryError(
      {.device = {},
       .what = fmt::format("{}: no room for {} bytes aligned to {:#x}", name_, size, align),
       .source = fmt::format("used {}, free {}, largest free block {}", used_, size_ - used_, largest_free()),
       .hint = {}});
}

void Tlsf::free(uint64_t address) {
  auto it = live_.find(address);
  if (it == live_.end())
    throw Error(fmt::format("{}: free of {:#x}, which is not allocated (double free?)", name_, address));
  uint32_t b = it->second;
  live_.erase(it);
  used_ -= blocks_[b].size;
  if (uint32_t n = blocks_[b].next; n != kNone && blocks_[n].free) {
    remove_free(n);
    merge_with_next(b);
  }
  if (uint32_t p = blocks_[b].prev; p != kNone && blocks_[p].free) {
    remove_free(p);
    merge_with_next(p);
    b = p;
  }
  insert_free(b);
}

uint64_t Tlsf::size_of(uint64_t address) const {
  auto it = live_.find(address);
  if (it == live_.end()) throw Error(fmt::format("{}: {:#x} is not allocated", name_, address));
  return blocks_[it->second].size;
}

uint64_t Tlsf::largest_free() const {
  uint64_t best = 0;
  if (!fl_map_) return 0;
  unsigned fl = log2_floor(fl_map_), sl = log2_floor(sl_map_[fl]);
  for (uint32_t b = heads_[fl][sl]; b != kNone; b = blocks_[b].free_next) best = std::max(best, blocks_[b].size);
  return best;
}

}  // namespace baregpu::am
