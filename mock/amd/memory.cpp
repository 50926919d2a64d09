#include "mock/amd/memory.hpp"

#include <bit>

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"
#include "mock/amd/host_access.hpp"

namespace baregpu::mock {

Memory::Memory(uint64_t vram_size, Rules& rules, std::mt19937_64& random)
    : size_(vram_size), rules_(rules), random_(random) {
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw OutOfMemoryError({.device = {},
                            .what = fmt::format("no address space for {} MiB of mock VRAM", size_ / MiB),
                            .source = {},
                            .hint = "raise the limit (ulimit -v) or use a smaller mock"});
  vram_ = static_cast<std::byte*>(p);
}

Memory::~Memory() { munmap(vram_, size_); }

void Memory::lose_content() {
  lines_.clear();
  order_.clear();
  tmr_begin_ = tmr_end_ = 0;
  madvise(vram_, size_, MADV_DONTNEED);
  // Boot objects of drivers live low in VRAM: 2 MiB of junk there shows who forgets to clear, and costs little.
  fill_bytes(vram_, 0xa5, std::min<uint64_t>(2 * MiB, size_));
}

void Memory::place(uint64_t offset, std::span<const std::byte> bytes) {
  copy_bytes(vram_ + offset, bytes.data(), bytes.size());
}

void Memory::cpu_read(uint64_t offset, std::span<std::byte> out) {
  if (in_tmr(offset, out.size()) && rules_.broken("tmr-access", fmt::format("CPU read of VRAM {:#x}", offset))) {
    std::ranges::fill(out, std::byte{0xff});
    return;
  }
  copy_bytes(out.data(), vram_ + offset, out.size());
  if (lines_.empty()) return;
  // The CPU sees its own writes: the buffer answers first.
  auto overlay = [&](uint64_t key, const Line& line) {
    uint64_t base = key * kLine, begin = std::max(base, offset), end = std::min(base + kLine, offset + out.size());
    for (uint64_t a = begin; a < end; ++a)
      if (line.mask >> (a - base) & 1) out[a - offset] = line.bytes[a - base];
  };
  uint64_t first = offset / kLine, last = (offset + out.size() - 1) / kLine;
  if (last - first < lines_.size()) {
    for (uint64_t k = first; k <= last; ++k)
      if (auto it = lines_.find(k); it != lines_.end()) overlay(k, it->second);
  } else {
    for (auto& [key, line] : lines_)
      if (key >= first && key <= last) overlay(key, line);
  }
}

void Memory::cpu_write(uint64_t offset, std::span<const std::byte> in) {
  if (in.empty()) return;
  if (in_tmr(offset, in.size()) && rules_.broken("tmr-access", fmt::format("CPU write of VRAM {:#x}", offset))) return;
  if (rules_.lenient("hdp-stale-read")) {
    copy_bytes(vram_ + offset, in.data(), in.size());
    return;
  }
  // A long write pushes everything older out of the buffer, its own beginning too.
  if (in.size() > kMaxLines * kLine) {
    hdp_flush();
    size_t direct = in.size() - kMaxLines * kLine;
    copy_bytes(vram_ + offset, in.data(), direct);
    offset += direct;
    in = in.subspan(direct);
  }
  buffer_write(offset, in);
}

void Memory::buffer_write(uint64_t offset, std::span<const std::byte> in) {
  for (size_t done = 0; done < in.size();) {
    uint64_t at = offset + done, key = at / kLine, start = at % kLine;
    size_t n = size_t(std::min<uint64_t>(kLine - start, in.size() - done));
    auto [it, fresh] = lines_.try_emplace(key);
    if (fresh) order_.push_back(key);
    std::copy_n(in.data() + done, n, it->second.bytes.data() + start);
    it->second.mask |= (n == kLine ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << start;
    done += n;
    if (lines_.size() > kMaxLines) drain_one_of_many();
  }
}

void Memory::drain(uint64_t key) {
  auto it = lines_.find(key);
  const Line& line = it->second;
  std::byte* to = vram_ + key * kLine;
  for (uint64_t mask = line.mask; mask;) {  // runs of written bytes
    const unsigned start = unsigned(std::countr_zero(mask)), length = unsigned(std::countr_one(mask >> start));
    copy_bytes(to + start, &line.bytes[start], length);
    if (start + length == kLine) break;
    mask &= ~uint64_t{0} << (start + length);
  }
  lines_.erase(it);
}

void Memory::drain_one_of_many() {
  size_t victim = size_t(random_() % order_.size());
  drain(order_[victim]);
  order_[victim] = order_.back();
  order_.pop_back();
}

void Memory::hdp_flush() {
  for (uint64_t key : order_) drain(key);
  order_.clear();
}

bool Memory::hdp_pending(uint64_t offset, uint64_t size) const {
  if (lines_.empty() || size == 0) return false;
  auto overlaps = [&](uint64_t key, const Line& line) {
    uint64_t base = key * kLine, begin = std::max(base, offset) - base,
             end = std::min(base + kLine, offset + size) - base;
    uint64_t n = end - begin, bits = (n == kLine ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << begin;
    return (line.mask & bits) != 0;
  };
  uint64_t first = offset / kLine, last = (offset + size - 1) / kLine;
  if (last - first < lines_.size()) {
    for (uint64_t k = first; k <= last; ++k)
      if (auto it = lines_.find(k); it != lines_.end() && overlaps(k, it->second)) return true;
    return false;
  }
  for (auto& [key, line] : lines_)
    if (key >= first && key <= last && overlaps(key, line)) return true;
  return false;
}

void Memory::check_hdp(uint64_t offset, uint64_t size, const char* who) {
  if (hdp_pending(offset, size))
    rules_.broken("hdp-stale-read",
                  fmt::format("{} reads VRAM {:#x}..{:#x} before an HDP flush", who, offset, offset + size));
}

void Memory::vram_read(uint64_t offset, std::span<std::byte> out, const char* who) {
  if (offset >= size_ || out.size() > size_ - offset) {
    std::ranges::fill(out, std::byte{0xff});
    return;
  }
  if (in_tmr(offset, out.size()) && rules_.broken("tmr-access", fmt::format("{} reads VRAM {:#x}", who, offset))) {
    std::ranges::fill(out, std::byte{0xff});
    return;
  }
  check_hdp(offset, out.size(), who);
  copy_bytes(out.data(), vram_ + offset, out.size());
}

void Memory::vram_write(uint64_t offset, std::span<const std::byte> in, const char* who) {
  if (offset >= size_ || in.size() > size_ - offset) return;
  if (in_tmr(offset, in.size()) && rules_.broken("tmr-access", fmt::format("{} writes VRAM {:#x}", who, offset)))
    return;
  copy_bytes(vram_ + offset, in.data(), in.size());
}

uint32_t Memory::indirect_read(uint64_t offset) {
  if (offset > size_ - 4 || in_tmr(offset, 4)) return ~0u;
  return load32(vram_ + offset);
}

void Memory::indirect_write(uint64_t offset, uint32_t value) {
  if (offset <= size_ - 4 && !in_tmr(offset, 4)) store32(vram_ + offset, value);
}

}  // namespace baregpu::mock
