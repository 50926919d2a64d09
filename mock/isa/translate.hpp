// Decoded code, kept by address until the instruction cache is invalidated.
#pragma once
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "mock/isa/decode.hpp"
#include "mock/isa/wave.hpp"

namespace baregpu::mock::isa {

/// Thread: any (a lock guards growth; micro-ops never change once they can be found).
class CodeCache final : public CodeSource {
 public:
  explicit CodeCache(Target target) : target_(target) {}
  /// Where code is read from during the current dispatch.
  void attach(AddressSpace& space) { space_ = &space; }
  /// The micro-op that starts the instruction at `pc`. Code that cannot be fetched or decoded gives one that faults.
  const Uop* code_at(uint64_t pc) override;
  /// No dispatch may be running: its waves hold on to micro-ops.
  void clear();

 private:
  struct Block {
    std::vector<Uop> uops;
  };
  const Uop* find_or_decode(uint64_t pc);
  void decode_block(uint64_t pc, std::vector<uint64_t>& targets);
  unsigned fetch(uint64_t pc, uint32_t (&words)[4], FaultKind& why) const;
  void emit(Block& b, const Inst& inst, uint64_t pc);
  void emit_vopd(Block& b, const Inst& inst, uint64_t pc);

  Target target_;
  AddressSpace* space_ = nullptr;
  std::mutex mutex_;
  std::deque<Block> blocks_;
  std::unordered_map<uint64_t, const Uop*> by_pc_;
  std::vector<std::pair<Uop*, uint64_t>> unresolved_;
  uint32_t next_seq_ = 1;
  size_t total_ = 0;
};

}  // namespace baregpu::mock::isa
