#include "mock/amd/gfx.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "am/regs/mqd.hpp"
#include "drivers/base/bits.hpp"
#include "mock/amd/firmware.hpp"
#include "mock/amd/machine.hpp"
#include "mock/amd/pm4.hpp"

namespace baregpu::mock {
namespace {

constexpr const am::MqdLayout& kMqd = am::kMqdV11Compute;
static_assert(kMqd.hqd_count == kHqdRegs);
constexpr unsigned hqd_index(unsigned mqd_word) { return mqd_word - kMqd.first_hqd; }
constexpr unsigned kActive = hqd_index(kMqd.hqd_active), kPqBase = hqd_index(kMqd.pq_base_lo),
                   kRptrReport = hqd_index(kMqd.rptr_report_lo), kDoorbell = hqd_index(kMqd.doorbell_control),
                   kPqControl = hqd_index(kMqd.pq_control), kEopBase = hqd_index(kMqd.eop_base_lo),
                   kEopControl = hqd_index(kMqd.eop_control);
// Words without a name in the shared layout, by register order from CP_MQD_BASE_ADDR (0x1fa9).
constexpr unsigned kRptr = 0x1fb3 - 0x1fa9, kDequeue = 0x1fc1 - 0x1fa9, kWptr = 0x1fdf - 0x1fa9;
constexpr uint32_t kMqdHeader = 0xc0310800;
constexpr uint32_t kPoison = 0xa5a5a5a5;  // SH registers that nobody programmed

// Registers of the gfx11 table.
using GrbmPipe = Bits<1, 0>;
using GrbmMe = Bits<3, 2>;
using GrbmVmid = Bits<7, 4>;
using GrbmQueue = Bits<10, 8>;
using MecReset = Bits<16>;
using MecActive = Bits<26>;
using MecHalt = Bits<30>;
using DoorbellOffset = Bits<27, 2>;
using DoorbellEn = Bits<30>;
using QueueSize = Bits<5, 0>;
constexpr uint32_t kResetCp = 1u << 0, kResetCpc = 1u << 18, kResetSdma0 = 1u << 23, kResetSdma1 = 1u << 24;
constexpr unsigned kPacketsPerTurn = 256;

}  // namespace

uint64_t ComputeQueue::ring_dwords() const { return uint64_t{2} << QueueSize::get(hqd[kPqControl]); }

Gfx::Gfx(Machine& machine, std::unique_ptr<isa::Executor> executor)
    : m_(machine), executor_(std::move(executor)), space_(machine, machine.gc) {
  RegisterFile& r = m_.regs;
  for (unsigned i = 0; i < queues_.size(); ++i) queues_[i].pipe = i / 8, queues_[i].queue = i % 8;
  const uint32_t first = r.dword("CP_MQD_BASE_ADDR");
  for (unsigned i = 0; i < kHqdRegs; ++i) {
    r.add(first + i, "CP_HQD_RESERVED", am::HwIp::Gc);  // one of the mirrored words has no name
    r.on_read(first + i, [this, i] {
      ComputeQueue* q = selected();
      return q ? q->hqd[i] : 0u;
    });
    r.on_write(first + i, [this, i](uint32_t v) { hqd_write(i, v); });
  }
  r.on_read("SH_MEM_CONFIG", [this] { return sh_config_[selected_vmid()]; });
  r.on_write("SH_MEM_CONFIG", [this](uint32_t v) { sh_config_[selected_vmid()] = v; });
  r.on_read("SH_MEM_BASES", [this] { return sh_bases_[selected_vmid()]; });
  r.on_write("SH_MEM_BASES", [this](uint32_t v) { sh_bases_[selected_vmid()] = v; });
  auto start_pc = [this](uint64_t keep, unsigned shift) {
    return [this, keep, shift](uint32_t v) {
      if (ComputeQueue* q = selected(); q && q->pipe == 0) start_pc_ = (start_pc_ & keep) | uint64_t{v} << shift;
    };
  };
  r.on_write("CP_MEC_RS64_PRGRM_CNTR_START", start_pc(~uint64_t{0xffffffff}, 0));
  r.on_write("CP_MEC_RS64_PRGRM_CNTR_START_HI", start_pc(0xffffffff, 32));
  r.set_reset_value("CP_MEC_RS64_CNTL", MecHalt::mask);
  r.on_write("CP_MEC_RS64_CNTL", [this](uint32_t v) { mec_control(v); });
  r.on_write("GRBM_SOFT_RESET", [this](uint32_t v) { soft_reset(v); });
  r.on_read("CP_STAT", [this] { return autoload_busy_ ? 0x80000000u : 0u; });
  r.read_only("CP_STAT");
  r.read_only("RLC_RLCS_BOOTLOAD_STATUS");
  r.exempt_from_gate("CP_STAT");
  r.exempt_from_gate("RLC_RLCS_BOOTLOAD_STATUS");
  r.on_write("RLC_SAFE_MODE", [this](uint32_t v) {
    m_.regs.set("RLC_SAFE_MODE", v);
    if (v & 1) m_.defer([this, v] { m_.regs.set("RLC_SAFE_MODE", v & ~1u); });  // CMD goes back when it is done
  });
  r.on_write("RLC_CAPTURE_GPU_CLOCK_COUNT", [this](uint32_t) {
    uint64_t now = m_.clock();
    m_.regs.set("RLC_GPU_CLOCK_COUNT_LSB", lo32(now));
    m_.regs.set("RLC_GPU_CLOCK_COUNT_MSB", hi32(now));
  });
}

void Gfx::start_autoload() {
  autoload_busy_ = true;
  // Two stages, each awaited by polls: microcode to the engines, then boot of the RLC.
  m_.defer([this] { m_.defer([this] { set_running(); }); });
}

void Gfx::set_running() {
  autoload_busy_ = false;
  m_.regs.set("RLC_RLCS_BOOTLOAD_STATUS", 0x80000001);
  m_.regs.set_gc_gate(false);
}

void Gfx::reset() {
  kill_queues();
  sh_config_.fill(0);
  sh_bases_.fill(0);
  start_pc_ = 0;
  started_ = autoload_busy_ = false;
}

ComputeQueue* Gfx::selected() {
  uint32_t s = m_.regs.get("GRBM_GFX_CNTL");
  return GrbmMe::get(s) == 1 ? &queues_[GrbmPipe::get(s) * 8 + GrbmQueue::get(s)] : nullptr;
}

unsigned Gfx::selected_vmid() const { return GrbmVmid::get(m_.regs.get("GRBM_GFX_CNTL")); }

void Gfx::hqd_write(unsigned index, uint32_t value) {
  ComputeQueue* q = selected();
  if (!q) return;  // banks of micro engines without compute queues
  if (index == kActive) {
    if ((value & 1) && !q->active)
      activate(*q);
    else if (!(value & 1) && q->active)
      deactivate(*q);
    return;
  }
  if (index == kDequeue) {
    q->dequeue = value & 0xf;
    if (q->dequeue == 2 && running_queue_ == q) stop_.store(true);
    if (q->dequeue) m_.defer([this, q] { try_dequeue(*q); });
    return;
  }
  if (q->active && index != kDoorbell && index != kWptr && index != kWptr + 1) {
    if (m_.rules.broken("hqd-active-write",
                        fmt::format("word {:#x} of the active queue {}.{}", index, q->pipe, q->queue)))
      return;
  }
  q->hqd[index] = value;
}

void Gfx::activate(ComputeQueue& q) {
  q.hqd[kActive] = 1;
  q.active = true;
  q.hung = q.mqd_read = false;
  q.has_cus = true;
  q.dequeue = 0;
  q.rptr = q.hqd[kRptr];
  q.wptr = q.hqd64(kWptr);
  q.sh.fill(kPoison);
  q.sh_written.reset();
  q.ibs.clear();
  ++q.epoch;
}

void Gfx::deactivate(ComputeQueue& q) {
  if (running_queue_ == &q) stop_.store(true);
  q.active = false;
  q.hqd[kActive] = 0;
  q.dequeue = 0;
  ++q.epoch;
}

// A queue whose waves hang never drains; only a reset of the micro engine ends it.
void Gfx::try_dequeue(ComputeQueue& q) {
  if (!q.dequeue || !q.active || q.hung || running_queue_ == &q) return;
  deactivate(q);
}

void Gfx::kill_queues() {
  stop_.store(true);
  for (ComputeQueue& q : queues_) {
    q.active = q.hung = false;
    q.hqd.fill(0);
    q.ibs.clear();
    ++q.epoch;
  }
}

void Gfx::mec_control(uint32_t v) {
  uint32_t old = m_.regs.get("CP_MEC_RS64_CNTL");
  m_.regs.set("CP_MEC_RS64_CNTL", v);
  if (MecReset::get(v)) {
    kill_queues();
    started_ = false;
  } else if (MecReset::get(old)) {
    started_ = start_pc_ == kMecStart >> 2 ||
               !m_.rules.broken("mec-not-started",
                                fmt::format("reset released with start address {:#x}, the firmware starts at {:#x}",
                                            start_pc_, kMecStart >> 2));
  }
}

void Gfx::soft_reset(uint32_t v) {
  m_.regs.set("GRBM_SOFT_RESET", v);
  if (v & (kResetCp | kResetCpc)) {
    kill_queues();
    started_ = false;
  }
  if (v & (kResetSdma0 | kResetSdma1)) m_.sdma.reset();
}

bool Gfx::mec_running() const {
  uint32_t v = m_.regs.get("CP_MEC_RS64_CNTL");
  return started_ && MecActive::get(v) && !MecHalt::get(v) && !MecReset::get(v);
}

bool Gfx::doorbell(unsigned index, uint64_t value) {
  const uint64_t byte = uint64_t{index} * 8;
  if (byte < m_.regs.get("CP_MEC_DOORBELL_RANGE_LOWER") || byte > m_.regs.get("CP_MEC_DOORBELL_RANGE_UPPER"))
    return false;
  for (ComputeQueue& q : queues_) {
    uint32_t control = q.hqd[kDoorbell];
    if (!q.active || !DoorbellEn::get(control) || DoorbellOffset::get(control) != 2 * index) continue;
    if (!mec_running()) m_.rules.broken("mec-not-started", fmt::format("doorbell {} = {:#x}", index, value));
    if ((value < q.rptr || value - q.rptr > q.ring_dwords()) &&
        m_.rules.broken("queue-wptr", fmt::format("doorbell {:#x}, read pointer {:#x}, ring of {:#x} dwords", value,
                                                  q.rptr, q.ring_dwords())))
      return true;
    q.wptr = value;
    q.hqd[kWptr] = lo32(value);
    q.hqd[kWptr + 1] = hi32(value);
    return true;
  }
  return false;
}

bool Gfx::read_mqd(ComputeQueue& q) {
  q.mqd_read = true;
  uint64_t at = q.hqd64(0);
  std::array<uint32_t, 0x30> words{};
  if (!m_.gc.read(at, std::as_writable_bytes(std::span(words)), Client::kCpFetch, "CP (MQD)")) return false;
  if (words[kMqd.header] != kMqdHeader) {
    bool strict = m_.rules.broken("mqd-image", fmt::format("header {:#x} at {:#x}", words[kMqd.header], at));
    if (strict) return false;
  }
  uint32_t any = 0;
  for (unsigned se = 0; se < std::min<unsigned>(m_.chip.num_se, 8); ++se) any |= words[kMqd.static_thread_mgmt[se]];
  q.has_cus = any != 0;
  return true;
}

void Gfx::report_rptr(ComputeQueue& q) {
  q.hqd[kRptr] = uint32_t(q.rptr & (q.ring_dwords() - 1));
  // Reported modulo the ring: drivers must not take it for a count (no source says which it is).
  if (uint64_t to = q.hqd64(kRptrReport)) m_.gc.write64(to, q.hqd[kRptr], Client::kCpData, "CP (read pointer)");
}

StepResult Gfx::step(std::unique_lock<std::mutex>& lock) {
  if (!mec_running() || m_.reset_pending()) return StepResult::kIdle;
  StepResult result = StepResult::kIdle;
  for (ComputeQueue& q : queues_) {
    if (!q.active || q.hung) continue;
    const uint64_t before = q.rptr, epoch = q.epoch;
    StepResult r = StepResult::kIdle;
    if (q.rptr != q.wptr && !q.mqd_read && !read_mqd(q)) hang(q, 0, "no usable MQD");
    for (unsigned n = 0; n < kPacketsPerTurn && !q.hung; ++n) {
      r = Pm4(m_, *this, q, lock).run_one();
      if (r == StepResult::kWorked) result = r;
      if (r != StepResult::kWorked || q.epoch != epoch || m_.stopping()) break;
    }
    if (q.epoch != epoch) continue;
    if (q.rptr != before) report_rptr(q);
    if (q.dequeue) try_dequeue(q);
    if (r == StepResult::kBlocked && result == StepResult::kIdle) result = r;
  }
  return result;
}

void Gfx::hang(ComputeQueue& q, uint8_t source, const std::string& why) {
  q.hung = true;
  m_.rules.remember_event(fmt::format("queue {}.{} hangs: {}", q.pipe, q.queue, why));
  if (source) m_.ih.push(IhClient::kGrbmCp, source, uint8_t(1u << 2 | q.pipe | q.queue << 4), {0, 0, 0, 0});
}

bool Gfx::eop_ready(ComputeQueue& q) {
  uint64_t base = q.hqd64(kEopBase) << 8;
  Mapping map = m_.gc.lookup(base, "CP (EOP buffer)");
  const bool mapped = map.status == Mapping::Status::kOk && map.writable;
  if (mapped && (q.hqd[kEopControl] & 0x3f) != 0) return true;
  m_.gc.raise_fault(base, true, map.status == Mapping::Status::kOk ? Mapping::Status::kInvalid : map.status, 0,
                    Client::kCpData);
  hang(q, 0, "no EOP buffer");
  return false;
}

}  // namespace baregpu::mock
