#include "hcq/command_list.hpp"

#include "drivers/base/error.hpp"

namespace baregpu::hcq {

void CommandList::clear() {
  words_.clear();
  memory_ = Buffer();
}

void CommandList::set_word(uint32_t index, uint32_t value) {
  words_.at(index) = value;
  if (memory_) memory_.cpu().write32(uint64_t{index} * 4, value);
}

void CommandList::set(PatchSlot slot, uint64_t value) {
  set_word(slot.dword, lo32(value));
  if (slot.count >= 2) set_word(slot.dword + 1, hi32(value));
}

void CommandList::set(PatchSlot slot, Dim3 d) {
  if (slot.count != 3) throw Error("this slot does not hold dimensions");
  if (d.count() == 0) throw Error("a launch needs at least one workgroup in each dimension");
  set_word(slot.dword, d.x);
  set_word(slot.dword + 1, d.y);
  set_word(slot.dword + 2, d.z);
}

void CommandList::bind(Allocator& allocator) {
  if (words_.empty()) throw Error("an empty command list cannot be bound");
  pad_for_indirect();
  memory_ = allocator.allocate(words_.size() * 4, BufferKind::kHost, true, "command list");
  memory_.cpu().write_block(0, std::as_bytes(std::span(words_)));
}

void CommandList::unsupported(const char* command, const char* queue) {
  throw UnsupportedError({.device = {},
                          .what = std::string("a ") + queue + " queue has no '" + command + "' command",
                          .source = {},
                          .hint = {}});
}

}  // namespace baregpu::hcq
