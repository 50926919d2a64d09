// hcq::Device over an AM-booted GPU (private to hcq; open_device() makes it).
#pragma once
#include <deque>
#include <set>

#include "am/am_device.hpp"
#include "hcq/amd/queues.hpp"
#include "hcq/device.hpp"

namespace baregpu::hcq::amd {

/// AmDevice's memory as an allocator's backend.
class AmMemory final : public MemoryBackend {
 public:
  explicit AmMemory(am::AmDevice& gpu) : gpu_(gpu) {}
  RawMemory allocate(uint64_t size, BufferKind kind, bool cpu_access, const std::string& label) override;
  void free(const RawMemory& memory) noexcept override { gpu_.free(static_cast<am::Memory*>(memory.backing)); }

 private:
  am::AmDevice& gpu_;
};

class AmHcqDevice final : public Device {
 public:
  AmHcqDevice(std::unique_ptr<am::AmDevice> gpu, const DeviceOptions& options);
  ~AmHcqDevice() override;

  const DeviceProperties& properties() const override { return properties_; }
  Allocator& allocator() override { return *allocator_; }
  Timeline& timeline() override { return *timeline_; }
  ComputeQueue& compute() override { return *compute_; }
  CopyQueue* copy_queue() override { return copy_.get(); }
  Program load(ProgramImage image) override;
  TimelinePoint launch(const Kernel& kernel, Dim3 groups, Dim3 block, std::span<const Arg> args) override;
  TimelinePoint copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                     uint64_t size) override;
  void copy_in(const Buffer& dst, uint64_t offset, std::span<const std::byte> bytes) override;
  void copy_out(std::span<std::byte> bytes, const Buffer& src, uint64_t offset) override;
  void wait(const TimelinePoint& point) override;
  void recover() override;
  std::vector<ProfileEvent> take_profile() override;

 private:
  enum class Side : uint8_t { kNone, kCompute, kCopy };
  struct InFlight {
    uint64_t count;
    const std::string* label;
    GpuVa code;  ///< entry point of a kernel, 0 for a copy
  };
  struct Timed {
    const std::string* name;
    QueueKind queue;
    uint64_t slot;
  };

  void make_queues(const DeviceOptions& options);
  void start_queues();
  /// Begins a list of `side`: orders it behind the other queue's work.
  void begin(CommandList& list, Side side);
  /// Ends it: signals the next timeline point, submits. @returns that point.
  TimelinePoint end(CommandList& list, AmdQueue& queue, Side side, const std::string* label, GpuVa code = {});
  std::optional<uint64_t> time_begin(CommandList& list);
  void time_end(CommandList& list, std::optional<uint64_t> slot, const std::string* name);
  void grow_scratch(uint32_t bytes_per_lane);
  void require_usable() const;
  [[noreturn]] void fail(const TimelinePoint& point, const am::FaultReport& report, bool timed_out);
  /// The oldest work that has not ended, in words: what a fault or a hang is put down to.
  std::string suspect() const;
  TimelinePoint submit_copy(GpuVa dst, GpuVa src, uint64_t size);
  const std::string* intern(const std::string& name) { return &*names_.insert(name).first; }

  std::unique_ptr<am::AmDevice> gpu_;
  DeviceProperties properties_;
  AmMemory memory_;
  uint32_t timeout_ms_;
  bool profile_;
  std::unique_ptr<Timeline> timeline_;
  RawMemory signals_;
  std::unique_ptr<Allocator> allocator_;
  Pm4Target pm4_target_;
  SdmaTarget sdma_target_;
  Buffer eop_, scratch_;
  std::array<Buffer, 2> staging_;
  std::array<TimelinePoint, 2> staging_use_{};
  unsigned next_staging_ = 0;
  std::unique_ptr<AmdQueue> compute_, copy_;
  std::unique_ptr<KernelArgsRing> kernargs_;
  std::unique_ptr<Pm4List> compute_list_;
  std::unique_ptr<SdmaList> copy_list_;
  std::vector<std::byte> argument_bytes_;
  Side last_side_ = Side::kNone;
  std::deque<InFlight> in_flight_;
  std::set<std::string> names_;
  const std::string* copy_label_;
  Buffer times_;
  uint64_t next_time_ = 0;
  std::vector<Timed> timed_;
  bool failed_ = false;
};

}  // namespace baregpu::hcq::amd
