#include "mock/amd/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>

#include "drivers/base/bits.hpp"
#include "mock/amd/discovery.hpp"
#include "mock/amd/host_access.hpp"

namespace baregpu::mock {
namespace {

// RCC_IOV_FUNC_IDENTIFIER: a fixed dword (amdgpu_virt.c) that no header lists under NBIO 4.3.
constexpr uint32_t kFuncIdentifier = 0xde5;
constexpr auto kResetTime = std::chrono::milliseconds(20);  // silicon needs up to 500 ms; drivers wait by themselves

uint64_t vram_size_of(const Chip& chip, const MockOptions& o) {
  return o.vram_size ? align_up(o.vram_size, 16 * MiB) : chip.vram_size;
}

}  // namespace

Machine::Machine(const Chip& c, const MockOptions& o, std::unique_ptr<isa::Executor> executor)
    : chip(c),
      options(o),
      faults(o.fault),
      random(o.seed),
      memory(vram_size_of(c, o), rules, random),
      config(c, rules, memory.vram_size(), o.bar0_size, o.bar0_resizable, o.card == CardState::kVf),
      regs(c, rules),
      gc(*this, "GC"),
      mm(*this, "MM"),
      ih(*this),
      psp(*this),
      smu(*this),
      nbio(*this),
      gfx(*this, std::move(executor)),
      sdma(*this) {
  rules.set_names([this](uint32_t dword) { return regs.name(dword); });
  regs.add(kFuncIdentifier, "RCC_IOV_FUNC_IDENTIFIER", am::HwIp::Nbio);
  const bool vf = o.card == CardState::kVf;
  regs.on_read(kFuncIdentifier, [vf] { return vf ? 0x80000001u : 0u; });
  power_on(o.card);
}

Machine::~Machine() {
  {
    std::scoped_lock lock(mutex);
    stopping_ = true;
    gfx.stop_waves();
  }
  kick();
  for (std::thread& t : threads_) t.join();
  note_waves_ended();
}

void Machine::cold_blocks(bool stalled) {
  deferred_.clear();
  memory.lose_content();
  memory.place(memory.vram_size() - kDiscoveryFromTop, discovery_blob(chip));
  regs.reset();
  for (const char* hub : {"MM", "GC"}) {  // the VBIOS sets the frame buffer's place
    regs.set(std::string(hub) + "MC_VM_FB_LOCATION_BASE", uint32_t(kFbBase >> 24));
    regs.set(std::string(hub) + "MC_VM_FB_LOCATION_TOP", uint32_t((kFbBase + memory.vram_size()) >> 24));
  }
  gc.reset();
  mm.reset();
  ih.reset();
  nbio.reset();
  smu.reset();
  gfx.reset();
  sdma.reset();
  psp.reset(stalled);
  nbio.set_ifwi_ready(!stalled);
  clock_zero_ = std::chrono::steady_clock::now();
}

// The states in which a card can be found.
void Machine::power_on(CardState state) {
  cold_blocks(state == CardState::kStalled);
  switch (state) {
    case CardState::kCold:
    case CardState::kStalled:
    case CardState::kVf: break;
    case CardState::kAmdgpu:
    case CardState::kAm:
    case CardState::kAmDirty:
      psp.set_running();
      smu.set_running();
      gfx.set_running();
      regs.set("IH_RB_CNTL", 0x1);  // interrupts of the last driver still go somewhere
      if (state != CardState::kAmdgpu) {
        // Left by the reference AM driver: its layout version (tinygrad amdev.py), which no other driver may trust.
        regs.set("SCRATCH_REG7", 0xa0000008);
        regs.set("SCRATCH_REG6", state == CardState::kAmDirty ? 1 : 0);
      }
      break;
  }
}

void Machine::mode1_reset() {
  gfx.stop_waves();
  rules.remember_event("mode1 reset");
  reset_until_ = std::chrono::steady_clock::now() + kResetTime;
  reset_pending_ = true;
  deferred_.clear();
  config.reset();
}

void Machine::finish_reset() {
  reset_pending_ = false;
  cold_blocks(false);
  nbio.set_ifwi_ready(false);
  defer([this] { nbio.set_ifwi_ready(true); });
}

bool Machine::answers() {
  if (removed_ || in_reset()) return false;
  if (reset_pending_) finish_reset();
  return config.decode();
}

void Machine::trace_access(char kind, uint32_t dword, uint32_t value) {
  if (trace_) trace_->push_back(fmt::format("{} {} {:#x} = {:#x}", kind, regs.name(dword), dword, value));
  rules.remember_access(kind, dword, value);
}

uint32_t Machine::mmio_read(uint32_t dword) {
  ++counters.mmio_reads;
  if (faults.hit_from(FaultPoint::kAllOnes)) removed_ = true;
  if (!answers()) {
    if (!removed_ && !in_reset())
      rules.broken("decode-off", fmt::format("read of {} ({:#x})", regs.name(dword), dword));
    return ~0u;
  }
  tick();
  uint32_t v = regs.access_read(dword);
  trace_access('R', dword, v);
  return v;
}

void Machine::mmio_write(uint32_t dword, uint32_t value) {
  ++counters.mmio_writes;
  if (!answers()) {
    if (!removed_ && !in_reset())
      rules.broken("decode-off", fmt::format("write of {} ({:#x})", regs.name(dword), dword));
    return;
  }
  trace_access('W', dword, value);
  regs.access_write(dword, value);
  kick();
}

void Machine::defer(std::function<void()> f) { deferred_.push_back({unsigned(2 + random() % 3), std::move(f)}); }

void Machine::tick() {
  if (deferred_.empty()) return;
  std::vector<std::function<void()>> due;
  for (Deferred& d : deferred_)
    if (--d.reads == 0) due.push_back(std::move(d.f));
  std::erase_if(deferred_, [](const Deferred& d) { return d.reads == 0; });
  for (auto& f : due) f();
}

uint64_t Machine::clock() const {
  auto ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - clock_zero_).count();
  return uint64_t(ns) / 10;
}

std::byte* Machine::bus_host(uint64_t bus, const char* who) {
  if (!config.bus_master()) {
    rules.broken("bus-master-off", fmt::format("{} reaches for bus address {:#x}", who, bus));
    return nullptr;
  }
  std::byte* host = memory.host(bus);
  if (!host)
    rules.broken("dma-unmapped", fmt::format("{} reaches for bus address {:#x}, which is not pinned", who, bus));
  return host;
}

bool Machine::bus_read(uint64_t bus, std::span<std::byte> out, const char* who) {
  std::byte* host = bus_host(bus, who);
  if (!host) {
    std::ranges::fill(out, std::byte{0xff});
    return false;
  }
  copy_bytes(out.data(), host, out.size());
  return true;
}

bool Machine::bus_write(uint64_t bus, std::span<const std::byte> in, const char* who) {
  std::byte* host = bus_host(bus, who);
  if (!host) return false;
  copy_bytes(host, in.data(), in.size());
  return true;
}

void Machine::raise_msi() {
  if (!config.msi_enabled() || !config.bus_master() || faults.hit(FaultPoint::kMsiLost)) return;
  {
    std::scoped_lock lock(msi_mutex_);
    ++msi_pending_;
  }
  msi_cv_.notify_all();
}

bool Machine::wait_msi(std::chrono::milliseconds timeout) {
  std::unique_lock lock(msi_mutex_);
  bool came = msi_cv_.wait_for(lock, timeout, [this] { return msi_pending_ != 0; });
  msi_pending_ = 0;  // several interrupts coalesce, as in an eventfd
  return came;
}

std::unique_lock<std::mutex> Machine::bus_lock() {
  constexpr unsigned kMaxYields = 1000;  // an engine that gets no processor must not stop the bus
  for (unsigned i = 0; engines_waiting_.load(std::memory_order_acquire) != 0 && i < kMaxYields; ++i) sched_yield();
  return std::unique_lock(mutex);
}

std::unique_lock<std::mutex> Machine::engine_lock() {
  engines_waiting_.fetch_add(1, std::memory_order_acq_rel);
  std::unique_lock lock(mutex);
  engines_waiting_.fetch_sub(1, std::memory_order_acq_rel);
  return lock;
}

void Machine::start_engines() {
  if (!threads_.empty()) return;
  threads_.emplace_back([this] { engine_loop(true); });
  threads_.emplace_back([this] { engine_loop(false); });
}

void Machine::kick() {
  kicks_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  std::scoped_lock lock(sleep_mutex_);
  sleep_cv_.notify_all();
}

void Machine::release_host(std::byte* host, uint64_t size) {
  gc.bump_generation();  // executors forget host addresses before the next dispatch
  if (gfx.busy())
    graves_.push_back({host, size});
  else
    munmap(host, size);
}

void Machine::note_waves_ended() {
  for (const Grave& g : graves_) munmap(g.host, g.size);
  graves_.clear();
}

// One thread for the compute queues, one for the copy engines. Both deliver doorbells, so that a ring is answered while
// the other runs. Idle threads poll doorbell memory ever more slowly; register writes (each driver flushes the HDP
// right before a doorbell) wake them.
void Machine::engine_loop(bool compute) {
  using namespace std::chrono;
  constexpr auto kSpin = microseconds(100), kMaxNap = microseconds(1000);
  auto last_work = steady_clock::now();
  auto nap = microseconds(50);
  bool pending = false;
  uint64_t seen = 0;
  while (!stopping_) {
    bool worked = false;
    const uint64_t now_kicks = kicks_.load(std::memory_order_seq_cst);
    const bool waiting = nbio.doorbell_waiting();
    if (waiting || pending || now_kicks != seen) {
      std::unique_lock lock = engine_lock();
      if (waiting && !reset_pending_) {
        nbio.take_doorbells();
        kick();  // the queue may be the other thread's
      }
      StepResult r = compute ? gfx.step(lock) : sdma.step(lock);
      pending = r != StepResult::kIdle;
      worked = r == StepResult::kWorked;
    }
    if (worked) kick();  // the other engine may wait for what was written
    if (worked || waiting || now_kicks != seen) {
      last_work = steady_clock::now();
      nap = microseconds(50);
      seen = worked ? kicks_.load() : now_kicks;
      if (worked) continue;
    }
    if (steady_clock::now() - last_work < kSpin) {
      sched_yield();
      continue;
    }
    std::unique_lock sleep(sleep_mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    auto bound = opened ? nap : microseconds(20000);
    sleep_cv_.wait_for(sleep, bound, [&] { return stopping_ || kicks_.load() != seen; });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    nap = std::min(nap * 2, kMaxNap);
  }
}

}  // namespace baregpu::mock
