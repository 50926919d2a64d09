#include "hcq/amd/am_device.hpp"

#include <fmt/format.h>

#include <thread>

#include "drivers/base/log.hpp"
#include "drivers/env.hpp"
#include "hcq/amd/dispatch_packet.hpp"

// Construction, programs and launches; waits and faults are in am_wait.cpp, copies in am_copy.cpp.
namespace baregpu::hcq::amd {
namespace {

constexpr uint64_t kRingBytes = 1 * MiB, kEopBytes = 4096, kKernargBytes = 2 * MiB;
constexpr uint64_t kStagingBytes = 2 * MiB;
constexpr uint32_t kDispatchPacketBytes = 64;
constexpr uint64_t kTimeSlot = 64,
                   kTimeSlots = 4096;             // two stamps, 32 bytes apart: SDMA's alignment rule is not documented
constexpr uint32_t kMaxWorkgroupLds = 64 * 1024;  // a WGP has 128 KiB, one workgroup may have half (RDNA3 ISA, "LDS")
constexpr uint16_t kPropertyDispatchPtr = 1 << 1;

}  // namespace

RawMemory AmMemory::allocate(uint64_t size, BufferKind kind, bool cpu_access, const std::string& label) {
  const am::MemoryKind k = kind == BufferKind::kHost     ? am::MemoryKind::kHost
                           : kind == BufferKind::kDevice ? am::MemoryKind::kVram
                                                         : am::MemoryKind::kVramUncached;
  am::Memory* m = gpu_.allocate(size, k, cpu_access, label);
  return {m->va, m->size, kind, m->cpu, m};
}

AmHcqDevice::AmHcqDevice(std::unique_ptr<am::AmDevice> gpu, const DeviceOptions& options)
    : gpu_(std::move(gpu)),
      memory_(*gpu_),
      timeout_ms_(options.timeout_ms.value_or(env().wait_timeout_ms)),
      profile_(options.profile || env().profile > 0) {
  const am::GcInfo& gc = gpu_->gc_info();
  const am::BootReport& boot = gpu_->boot_report();
  properties_ = {.name = gpu_->name(),
                 .arch = gpu_->arch(),
                 .chip = gpu_->chip(),
                 .memory_bytes = gpu_->vram_size(),
                 .compute_units = gc.cu_count(),
                 .lds_bytes = std::min<uint32_t>(gc.lds_size_kib * 1024, kMaxWorkgroupLds),
                 .max_workgroup = 1024,
                 .boot_ms = boot.milliseconds,
                 .boot_register_accesses = boot.register_accesses,
                 .boot_path = am::boot_path_name(boot.path),
                 .boot_accesses_by_step = boot.accesses_by_step};
  copy_label_ = intern("copy");
  make_queues(options);
}

void AmHcqDevice::make_queues(const DeviceOptions& options) {
  signals_ = memory_.allocate(4096, BufferKind::kHost, true, "timeline signals");
  std::array<Signal, Timeline::kEpochs> epochs;
  for (unsigned i = 0; i < epochs.size(); ++i)
    epochs[i] = {signals_.va + i * Signal::kSize, signals_.cpu.sub(i * Signal::kSize, Signal::kSize)};
  timeline_ = std::make_unique<Timeline>(epochs, options.timeline_start);
  allocator_ = std::make_unique<Allocator>(memory_, *timeline_);

  pm4_target_.gc = gpu_->gc().version();
  pm4_target_.lds_bytes = properties_.lds_bytes;
  pm4_target_.hdp_flush_req = gpu_->nbio().address<am::BIF_BX_PF0_GPU_HDP_FLUSH_REQ>();
  pm4_target_.hdp_flush_done = gpu_->nbio().address<am::BIF_BX_PF0_GPU_HDP_FLUSH_DONE>();
  sdma_target_.version = gpu_->discovery().require(am::HwIp::Sdma0).version;

  auto queue_memory = [&](const char* name) {
    return QueueMemory{allocator_->allocate(kRingBytes, BufferKind::kHost, true, std::string(name) + " ring"),
                       allocator_->allocate(4096, BufferKind::kHost, true, std::string(name) + " pointers")};
  };
  const QueueHooks hooks{[this](const TimelinePoint& p) { wait(p); }, [this] { gpu_->flush_hdp(); }};
  eop_ = allocator_->allocate(kEopBytes, BufferKind::kDeviceUncached, false, "end-of-pipe buffer");
  compute_ = make_pm4_queue(queue_memory("compute"), gpu_->doorbell(am::kDoorbellMecRing0), hooks, pm4_target_);
  compute_list_ = std::make_unique<Pm4List>(pm4_target_);
  if (!env().amd_disable_sdma) {
    copy_ = make_sdma_queue(queue_memory("copy"), gpu_->doorbell(am::kDoorbellSdma0), hooks, sdma_target_);
    copy_list_ = std::make_unique<SdmaList>(sdma_target_);
    for (Buffer& b : staging_) b = allocator_->allocate(kStagingBytes, BufferKind::kHost, true, "staging");
  }
  kernargs_ = std::make_unique<KernelArgsRing>(
      allocator_->allocate(kKernargBytes, BufferKind::kDeviceUncached, true, "kernel arguments"), *timeline_);
  if (profile_) times_ = allocator_->allocate(kTimeSlot * kTimeSlots, BufferKind::kHost, true, "timestamps");
  start_queues();
}

void AmHcqDevice::start_queues() {
  const QueueMemory& c = compute_->memory();
  gpu_->setup_compute_queue({.ring = c.ring.va(),
                             .ring_size = c.ring.capacity(),
                             .rptr = c.rptr(),
                             .wptr = c.wptr(),
                             .eop = eop_.va(),
                             .eop_size = kEopBytes,
                             .doorbell = am::kDoorbellMecRing0});
  if (copy_) {
    const QueueMemory& s = copy_->memory();
    gpu_->setup_sdma_queue({.ring = s.ring.va(),
                            .ring_size = s.ring.capacity(),
                            .rptr = s.rptr(),
                            .wptr = s.wptr(),
                            .doorbell = am::kDoorbellSdma0});
  }
}

AmHcqDevice::~AmHcqDevice() {
  try {
    if (!failed_) synchronize();
  } catch (const std::exception& e) {
    log::warn("{}: closing with unfinished work: {}", properties_.name, e.what());
  }
  gpu_->shutdown();  // before any memory goes: the engines still use it
  timeline_->force_done();
}

void AmHcqDevice::require_usable() const {
  if (failed_)
    throw Error({.device = properties_.name,
                 .what = "the device had a fault and takes no work",
                 .source = {},
                 .hint = "call recover() first"},
                "device_failed");
}

Program AmHcqDevice::load(ProgramImage image) {
  require_usable();
  if (image.arch != properties_.arch)
    throw Error({.device = properties_.name,
                 .what = fmt::format("code for {} cannot run on {}", image.arch, properties_.arch),
                 .source = {},
                 .hint = "compile it for " + properties_.arch},
                "arch");
  Buffer memory = allocator_->allocate(image.bytes.size(), BufferKind::kDevice, false, "program");
  for (const ImageReloc& r : image.relocs) {
    if (r.offset > image.bytes.size() - 8) throw Error("relocation outside the program");
    const uint64_t value = memory.va().value + uint64_t(r.addend);
    std::memcpy(image.bytes.data() + r.offset, &value, 8);
  }
  std::vector<Kernel> kernels;
  for (const KernelInfo& k : image.kernels)
    kernels.push_back({.info = nullptr,
                       .code = memory.va() + k.code_offset,
                       .descriptor = memory.va() + k.descriptor_offset,
                       .label = intern(k.name)});
  copy_in(memory, 0, image.bytes);
  pm4_target_.code_changed = true;
  return Program(std::move(image), std::move(memory), std::move(kernels));
}

void AmHcqDevice::grow_scratch(uint32_t bytes_per_lane) {
  const am::GcInfo& gc = gpu_->gc_info();
  ScratchSetup setup =
      pm4_dialect(pm4_target_.gc).scratch_for(bytes_per_lane, gc.cu_count(), gc.max_scratch_slots_per_cu, gc.num_se);
  synchronize();  // running waves use the old one
  scratch_ = Buffer();
  pm4_target_.scratch = {};
  scratch_ = allocator_->allocate(setup.size, BufferKind::kDevice, false, "scratch");
  setup.base = scratch_.va();
  pm4_target_.scratch = setup;
}

void AmHcqDevice::begin(CommandList& list, Side side) {
  list.clear();
  // One timeline orders both queues, so a point on one queue may only be signalled after the points before it on the
  // other.
  if (last_side_ != Side::kNone && last_side_ != side && !timeline_->reached(timeline_->last()))
    list.wait(timeline_->last());
}

TimelinePoint AmHcqDevice::end(CommandList& list, AmdQueue& queue, Side side, const std::string* label,
                               GpuVa code) {
  const TimelinePoint done = timeline_->prepare();
  list.signal(done.signal, done.value);
  queue.submit(list, done);
  timeline_->commit(done);
  last_side_ = side;
  while (!in_flight_.empty() && in_flight_.front().count <= timeline_->done()) in_flight_.pop_front();
  in_flight_.push_back({done.count, label, code});
  return done;
}

TimelinePoint AmHcqDevice::launch(const Kernel& kernel, Dim3 groups, Dim3 block, std::span<const Arg> args) {
  require_usable();
  const KernelInfo& k = *kernel.info;
  const bool packet = k.properties & kPropertyDispatchPtr;
  const uint64_t packet_at = align_up(k.kernarg_size, kDispatchPacketBytes);
  argument_bytes_.resize(packet ? packet_at + kDispatchPacketBytes : k.kernarg_size);
  const uint32_t lds = write_kernel_args(k, args, groups, block, argument_bytes_);
  if (k.private_segment_size > pm4_target_.scratch.bytes_per_lane ||
      (k.uses_dynamic_stack && !pm4_target_.scratch.bytes_per_lane))
    grow_scratch(k.private_segment_size);

  const KernelArgsRing::Slot slot =
      kernargs_->allocate(argument_bytes_.size(), [this](const TimelinePoint& p) { wait(p); });
  if (packet)
    write_dispatch_packet({argument_bytes_.data() + packet_at, kDispatchPacketBytes}, kernel, slot.va, groups, block,
                          lds);
  if (!argument_bytes_.empty()) slot.cpu.write_block(0, argument_bytes_);

  begin(*compute_list_, Side::kCompute);
  if (pm4_target_.code_changed) compute_list_->memory_barrier();
  const auto timer = time_begin(*compute_list_);
  compute_list_->exec(kernel, slot.va, groups, block, lds);
  time_end(*compute_list_, timer, kernel.label);
  const TimelinePoint done = end(*compute_list_, *compute_, Side::kCompute, kernel.label, kernel.code);
  pm4_target_.code_changed = false;
  kernargs_->retire_with(done);
  return done;
}

}  // namespace baregpu::hcq::amd
