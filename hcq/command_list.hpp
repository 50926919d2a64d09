// Commands, encoded once, submitted as often as wanted (public).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "hcq/buffer.hpp"
#include "hcq/kernel_args.hpp"
#include "hcq/program.hpp"
#include "hcq/signal.hpp"

namespace baregpu::hcq {

/// A place in an encoded list that may be changed between submissions.
struct PatchSlot {
  uint32_t dword = 0;
  uint8_t count = 0;  ///< 1: 32-bit value, 2: 64-bit address or value, 3: three dimensions
};

struct ExecSlots {
  PatchSlot kernargs;  ///< address of the kernarg segment
  PatchSlot groups;    ///< workgroups in x, y, z
};

enum class QueueKind : uint8_t { kCompute, kCopy };
enum class Compare : uint8_t {
  kAlways = 0,
  kLess = 1,
  kLessEqual = 2,
  kEqual = 3,
  kNotEqual = 4,
  kGreaterEqual = 5,
  kGreater = 6
};

/// A sequence of commands for one kind of queue. Commands are checked when they are encoded, not when they are
/// submitted. bind() puts the words into memory that the GPU reads in place: submitting then costs a few stores and one
/// doorbell. A bound list must not be patched while a submission of it is in flight. Thread: one at a time.
class CommandList {
 public:
  explicit CommandList(QueueKind kind) : kind_(kind) {}
  virtual ~CommandList() = default;
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  QueueKind kind() const { return kind_; }
  std::span<const uint32_t> words() const { return words_; }
  bool bound() const { return bool(memory_); }
  GpuVa bound_va() const { return memory_.va(); }
  void clear();

  /// Waits until the low 32 bits at `signal` are >= `value` (unsigned). The slot is the value.
  PatchSlot wait(const TimelinePoint& p) { return poll(p.signal, Compare::kGreaterEqual, p.value); }
  /// Waits until the 32-bit word at `va` (4-byte aligned) compares true with `value`. The slot is the value.
  virtual PatchSlot poll(GpuVa va, Compare compare, uint32_t value) = 0;
  /// Writes `value` to `va` when all earlier commands are done and visible. The slot is the value.
  virtual PatchSlot signal(GpuVa va, uint32_t value) = 0;
  /// Writes the 64-bit 100 MHz counter to `va` (8-byte aligned) when all earlier commands are done.
  virtual void timestamp(GpuVa va) = 0;
  /// Host writes before the submission become visible to the commands that follow (HDP flush, caches invalidated).
  virtual void memory_barrier() = 0;
  /// Runs a kernel. `kernargs` is 16-byte aligned. @throws Error for geometry that the kernel or the hardware forbids.
  virtual ExecSlots exec(const Kernel& kernel, GpuVa kernargs, Dim3 groups, Dim3 block, uint32_t dynamic_lds) = 0;
  virtual void copy(GpuVa dst, GpuVa src, uint64_t size) = 0;
  /// Writes dwords to `va` (4-byte aligned).
  virtual PatchSlot write(GpuVa va, std::span<const uint32_t> values) = 0;

  /// Changes slot contents, also in bound memory.
  void set(PatchSlot slot, uint64_t value);
  void set(PatchSlot slot, Dim3 dims);
  /// Moves the words into device-visible memory. @throws Error if the list is empty.
  void bind(Allocator& allocator);

 protected:
  [[noreturn]] static void unsupported(const char* command, const char* queue);
  /// Words that must follow the commands for the list to be used as an indirect buffer.
  virtual void pad_for_indirect() {}
  std::vector<uint32_t> words_;

 private:
  void set_word(uint32_t index, uint32_t value);
  QueueKind kind_;
  Buffer memory_;
};

/// A hardware queue. Thread: the device's.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual std::unique_ptr<CommandList> make_list() const = 0;
  /// Queues the list. Nothing orders it behind other queues but its own wait() commands; all points of a timeline must be
  /// signalled in order, so a list waits for, or is submitted after, whatever other queues still have in flight. `done` is the timeline point that its own signal command sets, used for ring space. Blocks when
  /// the ring is full until the consumer has moved on. @throws Error if an unbound list is larger than a quarter of the
  /// ring.
  virtual void submit(const CommandList& list, const TimelinePoint& done) = 0;
};
using ComputeQueue = Queue;
using CopyQueue = Queue;

}  // namespace baregpu::hcq
