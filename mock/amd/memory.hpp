// VRAM with the HDP write buffer in front of it, and the host pages that the card can reach.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "mock/amd/rules.hpp"

namespace baregpu::mock {

/// The card's view of memory. Thread: the card's lock, except host() of pages that stay mapped.
class Memory {
 public:
  Memory(uint64_t vram_size, Rules& rules, std::mt19937_64& random);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint64_t vram_size() const { return size_; }
  std::byte* vram() { return vram_; }

  // ---- the CPU's side: BAR0 through the HDP
  void cpu_read(uint64_t offset, std::span<std::byte> out);
  void cpu_write(uint64_t offset, std::span<const std::byte> in);
  /// Drains the write buffer.
  void hdp_flush();
  /// Whether engines would read old bytes somewhere in this range.
  bool hdp_pending(uint64_t offset, uint64_t size) const;

  // ---- the engines' side
  /// Reads memory as engines see it; notes bytes that wait in the HDP buffer. `who` goes into the note.
  void vram_read(uint64_t offset, std::span<std::byte> out, const char* who);
  void vram_write(uint64_t offset, std::span<const std::byte> in, const char* who);
  /// Notes an engine's read of pending bytes, for reads that go through a host pointer.
  void check_hdp(uint64_t offset, uint64_t size, const char* who);
  /// MM_INDEX/MM_DATA: bypasses the HDP.
  uint32_t indirect_read(uint64_t offset);
  void indirect_write(uint64_t offset, uint32_t value);

  /// Closes a range to everybody (trusted memory region); size 0 opens it again.
  void set_tmr(uint64_t begin, uint64_t size) { tmr_begin_ = begin, tmr_end_ = begin + size; }
  bool in_tmr(uint64_t offset, uint64_t size) const { return offset < tmr_end_ && offset + size > tmr_begin_; }

  // ---- host pages
  static constexpr uint64_t kPage = 4096;
  void add_page(uint64_t bus, std::byte* host) { pages_[bus / kPage] = host; }
  void remove_page(uint64_t bus) { pages_.erase(bus / kPage); }
  bool has_page(uint64_t bus) const { return pages_.contains(bus / kPage); }
  /// Host address of a bus address, or nullptr if no pinned page is there.
  std::byte* host(uint64_t bus) const {
    auto it = pages_.find(bus / kPage);
    return it == pages_.end() ? nullptr : it->second + bus % kPage;
  }

  /// Loses all content, as in a mode1 reset or at power-on: the low part is junk, so that nothing looks zeroed by luck.
  void lose_content();
  /// Bytes of VRAM that exist from the start: the discovery blob.
  void place(uint64_t offset, std::span<const std::byte> bytes);

 private:
  static constexpr uint64_t kLine = 64;
  static constexpr size_t kMaxLines = 128;  // ours; the buffer's size on silicon is not documented
  struct Line {
    std::array<std::byte, kLine> bytes;
    uint64_t mask = 0;  // one bit a byte
  };
  void drain(uint64_t line);
  void drain_one_of_many();
  void buffer_write(uint64_t offset, std::span<const std::byte> in);

  uint64_t size_;
  Rules& rules_;
  std::mt19937_64& random_;
  std::byte* vram_ = nullptr;
  std::unordered_map<uint64_t, Line> lines_;
  std::vector<uint64_t> order_;  // keys of lines_, in no order: the victim is chosen at random
  std::unordered_map<uint64_t, std::byte*> pages_;
  uint64_t tmr_begin_ = 0, tmr_end_ = 0;
};

}  // namespace baregpu::mock
