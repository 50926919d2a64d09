// Waiting, faults, recovery, and times of AmHcqDevice.
#include <fmt/format.h>

#include <thread>

#include "drivers/base/log.hpp"
#include "hcq/amd/am_device.hpp"

namespace baregpu::hcq::amd {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kFaultLook = std::chrono::milliseconds(20);
constexpr auto kMaxSleep = std::chrono::microseconds(200);
constexpr uint64_t kTimeSlot = 64, kSecondStamp = 32;

}  // namespace

void AmHcqDevice::wait(const TimelinePoint& point) {
  if (timeline_->reached(point)) return;
  require_usable();
  const auto start = Clock::now();
  while (Clock::now() - start < kSpin)
    if (timeline_->reached(point)) return;
  const auto deadline = start + std::chrono::milliseconds(timeout_ms_);
  auto look = start + kFaultLook;
  auto sleep = std::chrono::microseconds(5);
  for (;;) {
    if (timeline_->reached(point)) return;
    const auto now = Clock::now();
    if (now >= look || now >= deadline) {
      am::FaultReport report;
      try {
        report = gpu_->collect_faults();
      } catch (const Error&) {  // the device is gone
        failed_ = true;
        throw;
      }
      if (report.faulted) fail(point, report, false);
      // The work may have ended while the faults were looked at.
      if (now >= deadline && !timeline_->reached(point)) fail(point, report, true);
      look = now + kFaultLook;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 2, std::chrono::microseconds(kMaxSleep));
  }
}

std::string AmHcqDevice::suspect() const {
  for (const InFlight& f : in_flight_) {
    if (f.count <= timeline_->done()) continue;
    if (f.label == copy_label_) return "a copy";
    return fmt::format("kernel '{}' (code at {:#x})", *f.label, f.code.value);
  }
  return "the device";
}

void AmHcqDevice::fail(const TimelinePoint& point, const am::FaultReport& report, bool timed_out) {
  failed_ = true;
  if (timed_out) gpu_->note_hang();
  (void)timeline_->reached(point);  // brings done() up to date
  const std::string what = suspect();
  if (timed_out)
    throw TimeoutError(
        {.device = properties_.name,
         .what = fmt::format("{} did not finish within {} ms and no fault was reported", what, timeout_ms_),
         .source = fmt::format("timeline at {}, waiting for {}", timeline_->done(), point.count),
         .hint = "an endless loop? A longer limit is set with HCQDEV_WAIT_TIMEOUT_MS or --timeout-ms"});
  throw FaultError(
      {.device = properties_.name, .what = fmt::format("{}: {}", what, report.text), .source = {}, .hint = {}},
      report.code.empty() ? "fault" : report.code);
}

void AmHcqDevice::recover() {
  gpu_->recover();
  compute_->reset();
  if (copy_) copy_->reset();
  timeline_->force_done();
  in_flight_.clear();
  timed_.clear();
  last_side_ = Side::kNone;
  pm4_target_.code_changed = true;
  start_queues();
  failed_ = false;
}

std::optional<uint64_t> AmHcqDevice::time_begin(CommandList& list) {
  if (!profile_ || timed_.size() == times_.capacity() / kTimeSlot) return std::nullopt;  // take_profile() makes room
  const uint64_t slot = next_time_++ % (times_.capacity() / kTimeSlot);
  list.timestamp(times_.va() + slot * kTimeSlot);
  return slot;
}

void AmHcqDevice::time_end(CommandList& list, std::optional<uint64_t> slot, const std::string* name) {
  if (!slot) return;
  list.timestamp(times_.va() + *slot * kTimeSlot + kSecondStamp);
  timed_.push_back({name, list.kind(), *slot});
}

std::vector<ProfileEvent> AmHcqDevice::take_profile() {
  synchronize();
  std::vector<ProfileEvent> events;
  for (const Timed& t : timed_)
    events.push_back({*t.name, t.queue, times_.cpu().read64(t.slot * kTimeSlot),
                      times_.cpu().read64(t.slot * kTimeSlot + kSecondStamp)});
  timed_.clear();
  return events;
}

}  // namespace baregpu::hcq::amd
