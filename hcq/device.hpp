// The front door of hcq/: a GPU (or the CPU) as queues, memory and programs, whoever made it (public).
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/device_spec.hpp"
#include "hcq/buffer.hpp"
#include "hcq/command_list.hpp"
#include "hcq/kernel_args.hpp"
#include "hcq/program.hpp"
#include "hcq/signal.hpp"

namespace baregpu::hcq {

struct DeviceOptions {
  std::optional<uint32_t> timeout_ms;         ///< default HCQDEV_WAIT_TIMEOUT_MS
  bool force_reset = false;                   ///< AM_RESET
  bool profile = false;                       ///< PROFILE: time every launch and copy
  std::vector<std::string> firmware_folders;  ///< searched first
  uint64_t timeline_start = 0;                ///< tests: start near a wrap
  std::function<void(const std::string&)> progress;
};

/// One timed command, in seconds of the device's 100 MHz counter.
struct ProfileEvent {
  std::string name;
  QueueKind queue = QueueKind::kCompute;
  uint64_t begin_ticks = 0, end_ticks = 0;
  double microseconds() const { return double(end_ticks - begin_ticks) / 100.0; }
};

/// What a device is, for messages and `baregpu info`.
struct DeviceProperties {
  std::string name, arch, chip;
  uint64_t memory_bytes = 0;
  uint32_t compute_units = 0, lds_bytes = 0, max_workgroup = 1024;
  double boot_ms = 0;
  uint64_t boot_register_accesses = 0;
  std::string boot_path;
  std::vector<std::pair<std::string, uint64_t>> boot_accesses_by_step;
};

/// Thread: one at a time for everything here. Buffers, programs and lists must go before their device.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceProperties& properties() const = 0;
  virtual Allocator& allocator() = 0;
  virtual Timeline& timeline() = 0;
  virtual ComputeQueue& compute() = 0;
  /// The copy queue, or nullptr (AMD_DISABLE_SDMA=1).
  virtual CopyQueue* copy_queue() = 0;

  /// Places a code object in device memory. @throws Error if it is for another architecture.
  virtual Program load(ProgramImage image) = 0;
  /// Queues one kernel. @throws Error for arguments or geometry that do not match; nothing is queued then.
  virtual TimelinePoint launch(const Kernel& kernel, Dim3 groups, Dim3 block, std::span<const Arg> args) = 0;
  /// Queues a copy between device-visible buffers. Ranges are checked; they must not overlap.
  virtual TimelinePoint copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                             uint64_t size) = 0;
  /// Host to device; the bytes may be reused at return. Through the copy queue and staging memory.
  virtual void copy_in(const Buffer& dst, uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Device to host; waits for all earlier work.
  virtual void copy_out(std::span<std::byte> bytes, const Buffer& src, uint64_t offset) = 0;
  /// Waits. @throws FaultError (first cause, kernel, address) or TimeoutError; the device needs recover() then.
  virtual void wait(const TimelinePoint& point) = 0;
  void synchronize() { wait(timeline().last()); }
  /// After a FaultError or TimeoutError: resets queues; memory and programs stay. @throws Error if that fails.
  virtual void recover() = 0;
  virtual std::vector<ProfileEvent> take_profile() = 0;
};

/// Opens what a spec names: an interface of the table, or the first usable real GPU when none is named.
/// @throws Error that says what was looked for and why it cannot be used.
std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options = {});

}  // namespace baregpu::hcq
