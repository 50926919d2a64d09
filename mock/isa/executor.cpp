#include "mock/isa/executor.hpp"

#include <xmmintrin.h>

#include <condition_variable>
#include <thread>
#include <utility>

#include "drivers/base/error.hpp"
#include "mock/isa/translate.hpp"

namespace baregpu::mock::isa {
namespace {

constexpr int64_t kSlice = 200'000;  // instructions a wave may run before others of its group get a turn
constexpr uint32_t kLdsPad = 256;

// COMPUTE_PGM_RSRC1/2 fields (LLVM AMDGPUUsage, compute_pgm_rsrc1/2).
constexpr uint32_t user_sgprs(uint32_t rsrc2) { return rsrc2 >> 1 & 31; }
constexpr uint32_t float_mode(uint32_t rsrc1) { return rsrc1 >> 12 & 0xff; }
constexpr uint32_t lds_bytes(uint32_t rsrc2) { return (rsrc2 >> 15 & 0x1ff) * 512; }

/// The waves of one workgroup on one host thread, with their registers.
class Worker {
 public:
  Worker(CodeCache& code, unsigned index) : code_(code), index_(index) {}

  /// Runs one workgroup. @returns kDone, kFault, or kReady when `stop` ended it.
  Status run_group(const DispatchInfo& d, const std::array<uint32_t, 3>& id, AddressSpace& memory,
                   const std::atomic<bool>& stop) {
    prepare(d, id, memory);
    for (;;) {
      unsigned done = 0, waiting = 0;
      for (Wave& w : waves_) {
        if (w.status == Status::kReady) step(w);
        if (w.status == Status::kFault) {
          fault_ = w.fault;
          return Status::kFault;
        }
        done += w.status == Status::kDone;
        waiting += w.status == Status::kBarrier;
        if (stop.load(std::memory_order_relaxed)) return Status::kReady;
      }
      if (done == waves_.size()) return Status::kDone;
      if (done + waiting == waves_.size())  // waves that have ended count as arrived
        for (Wave& w : waves_)
          if (w.status == Status::kBarrier) w.status = Status::kReady;
    }
  }
  const WaveFault& fault() const { return fault_; }
  uint64_t take_instructions() {
    uint64_t n = 0;
    for (Wave& w : waves_) n += std::exchange(w.instructions, 0);
    return n;
  }

 private:
  void step(Wave& w) {
    w.tlb->check();
    apply_mode(w.mode);
    w.fuel = kSlice;
    const Uop* u = w.resume;
    w.run_start = u->seq;
    while (u) u = u->run(w, u);
  }

  void prepare(const DispatchInfo& d, const std::array<uint32_t, 3>& id, AddressSpace& memory) {
    const uint32_t lanes = d.wave32 ? 32 : 64, items = d.group_size[0] * d.group_size[1] * d.group_size[2];
    const unsigned count = (items + lanes - 1) / lanes, halves = lanes / kLanes;
    tlb_.attach(memory);
    group_.id = id;
    group_.lds_bytes = lds_bytes(d.rsrc2);
    // What an earlier group left is what a kernel finds on hardware; a fixed pattern makes a missing initialisation
    // show.
    group_.lds.assign(group_.lds_bytes + kLdsPad, 0xa5);
    waves_.resize(count);
    const size_t words = size_t{count} * halves * kHalf;
    if (registers_.size() < words + 8) registers_.resize(words + 8);
    uint32_t* base = registers_.data();
    while (reinterpret_cast<uintptr_t>(base) % 32) ++base;
    std::fill(base, base + words, kPoison);
    const Uop* entry = code_.code_at(d.code_va);
    for (unsigned i = 0; i < count; ++i)
      start_wave(waves_[i], d, i, count, base + size_t{i} * halves * kHalf, halves, entry);
  }

  void start_wave(Wave& w, const DispatchInfo& d, unsigned index, unsigned count, uint32_t* registers, unsigned halves,
                  const Uop* entry) {
    w.s.fill(kPoison);
    w.v = registers;
    w.halves = halves;
    w.index = index;
    w.status = Status::kReady;
    w.resume = entry;
    w.instructions = 0;
    w.mode = float_mode(d.rsrc1);
    w.dispatch = &d;
    w.group = &group_;
    w.tlb = &tlb_;
    w.code = &code_;
    // WAVESIZE counts 256 bytes of a wave (COMPUTE_TMPRING_SIZE 26:12).
    const uint64_t scratch_wave = uint64_t{d.tmpring_size >> 12 & 0x7fff} * 256;
    w.scratch_bytes = uint32_t(scratch_wave / (halves * kLanes));
    w.flat_scratch = d.scratch_base + (uint64_t{index_} * count + index) * scratch_wave;

    const unsigned user = std::min(user_sgprs(d.rsrc2), 16u);
    for (unsigned i = 0; i < user; ++i) w.s[i] = d.user_data[i];
    unsigned next = user;
    for (unsigned axis = 0; axis < 3; ++axis)
      if (d.rsrc2 >> (7 + axis) & 1) w.s[next++] = group_.id[axis];
    if (d.rsrc2 >> 10 & 1)
      w.s[next++] = count | (index == 0 ? 1u << 31 : 0);  // TG_SIZE: waves in the group, first wave
    w.s[kSink] = w.s[kSink + 1] = 0;
    w.s[kNull] = 0;
    w.s[kVcc] = w.s[kVcc + 1] = 0;
    w.s[kScc] = 0;
    // Apertures: bases in the upper dword, limits 4 GiB above.
    w.set_pair(kSharedBase, d.shared_aperture);
    w.set_pair(kSharedLimit, d.shared_aperture | 0xffffffff);
    w.set_pair(kPrivateBase, d.private_aperture);
    w.set_pair(kPrivateLimit, d.private_aperture | 0xffffffff);

    const uint32_t items = d.group_size[0] * d.group_size[1] * d.group_size[2];
    uint64_t exec = 0;
    for (unsigned lane = 0; lane < halves * kLanes; ++lane) {
      const uint32_t flat = index * halves * kLanes + lane;
      if (flat >= items) break;
      exec |= uint64_t{1} << lane;
      const uint32_t x = flat % d.group_size[0], y = flat / d.group_size[0] % d.group_size[1],
                     z = flat / d.group_size[0] / d.group_size[1];
      w.v[lane / kLanes * kHalf + lane % kLanes] = x | y << 10 | z << 20;  // v0, gfx11: three packed 10-bit ids
    }
    w.set_pair(kExec, exec);
    if (halves == 1) w.s[kExec + 1] = 0;
  }

  CodeCache& code_;
  unsigned index_;
  Tlb tlb_;
  Group group_;
  std::vector<Wave> waves_;
  std::vector<uint32_t> registers_;
  WaveFault fault_;
};

class Interpreter final : public Executor {
 public:
  Interpreter(Target target, unsigned threads) : code_(target) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(code_, i));
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Interpreter() override {
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  DispatchResult run(const DispatchInfo& d, AddressSpace& memory, const std::atomic<bool>& stop) override {
    code_.attach(memory);
    job_ = {.dispatch = &d, .memory = &memory, .stop = &stop};
    job_.total = uint64_t{d.groups[0]} * d.groups[1] * d.groups[2];
    next_.store(0);
    halt_.store(false);
    result_ = {};
    // Each wave in flight needs scratch of its own; TMPRING_SIZE.WAVES says for how many there is some.
    const unsigned lanes = d.wave32 ? 32 : 64,
                   waves = (d.group_size[0] * d.group_size[1] * d.group_size[2] + lanes - 1) / lanes;
    uint64_t parallel = workers_.size();
    if (d.tmpring_size >> 12 & 0x7fff)
      parallel = std::min<uint64_t>(parallel, std::max(1u, (d.tmpring_size & 0xfff) / std::max(1u, waves)));
    parallel = std::min<uint64_t>(parallel, job_.total);
    {
      std::lock_guard lock(mutex_);
      active_ = unsigned(parallel);
      running_ = unsigned(parallel ? parallel - 1 : 0);
      ++round_;
    }
    if (parallel > 1) wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return running_ == 0; });
    result_.cancelled = result_.fault.kind == FaultKind::kNone && stop.load() && done_groups_ < job_.total;
    result_.completed = result_.fault.kind == FaultKind::kNone && !result_.cancelled;
    done_groups_ = 0;
    return result_;
  }
  void invalidate_code() override { code_.clear(); }

 private:
  struct Job {
    const DispatchInfo* dispatch = nullptr;
    AddressSpace* memory = nullptr;
    const std::atomic<bool>* stop = nullptr;
    uint64_t total = 0;
  };

  void serve(unsigned index) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return quit_ || round_ != seen; });
      if (quit_) return;
      seen = round_;
      if (index >= active_) continue;
      lock.unlock();
      work(index);
      lock.lock();
      if (--running_ == 0) idle_.notify_all();
    }
  }

  void work(unsigned index) {
    Worker& w = *workers_[index];
    const DispatchInfo& d = *job_.dispatch;
    const unsigned host_mode = _mm_getcsr();  // waves set rounding and denormals of this thread as their MODE says
    uint64_t groups = 0, instructions = 0;
    while (!halt_.load(std::memory_order_relaxed) && !job_.stop->load(std::memory_order_relaxed)) {
      const uint64_t g = next_.fetch_add(1, std::memory_order_relaxed);
      if (g >= job_.total) break;
      const std::array<uint32_t, 3> id{uint32_t(g % d.groups[0]), uint32_t(g / d.groups[0] % d.groups[1]),
                                       uint32_t(g / d.groups[0] / d.groups[1])};
      const Status s = w.run_group(d, id, *job_.memory, *job_.stop);
      instructions += w.take_instructions();
      if (s == Status::kDone) ++groups;
      if (s == Status::kFault) {
        halt_.store(true);
        std::lock_guard lock(mutex_);
        if (result_.fault.kind == FaultKind::kNone) result_.fault = w.fault();
      }
    }
    _mm_setcsr(host_mode);
    std::lock_guard lock(mutex_);
    result_.wave_instructions += instructions;
    done_groups_ += groups;
  }

  CodeCache code_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job job_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> halt_{false};
  DispatchResult result_;
  uint64_t done_groups_ = 0, round_ = 0;
  unsigned active_ = 0, running_ = 0;
  bool quit_ = false;
};

}  // namespace

std::optional<Target> find_target(const std::string& name) {
  if (name == "gfx1100") return Target::kGfx1100;
  if (name == "gfx1101") return Target::kGfx1101;
  if (name == "gfx1102") return Target::kGfx1102;
  return std::nullopt;
}

std::unique_ptr<Executor> make_executor(Target target, const ExecutorOptions& options) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    throw UnsupportedError({.device = {},
                            .what = "the mock GPU's shader cores need a CPU with AVX2, FMA and F16C",
                            .source = {},
                            .hint = {}});
  return std::make_unique<Interpreter>(target, options.threads);
}

}  // namespace baregpu::mock::isa
