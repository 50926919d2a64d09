#include "mock/amd/rules.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"

namespace baregpu::mock {
namespace {

constexpr Rule kRules[] = {
    {"decode-off", "with PCI_COMMAND.memory off, in D3 or in reset the card claims no access: reads are all ones"},
    {"bus-master-off", "with bus mastering off the card's requests to host memory are dropped and reads are all ones"},
    {"dma-unmapped",
     "a bus address that no pinned page has is aborted by the root complex or hits a stranger's memory"},
    {"rebar-mapped", "resizing a BAR that is decoded or mapped moves it under the feet of its users"},
    {"unaligned", "BAR5 takes aligned dwords only, and engines fault on misaligned packet addresses"},
    {"unknown-register", "no block answers at that address: reads give 0 and writes are lost"},
    {"read-only-register", "the block ignores the write: the driver believes in a setting that never was"},
    {"gc-in-reset", "GC registers are held in reset until the RLC autoload is complete: writes are lost"},
    {"hdp-stale-read",
     "bytes written through BAR0 sit in the HDP write buffer: engines read the old ones until a flush"},
    {"hdp-null-remap", "a flush write to dword 0 hits MM_INDEX: nothing is flushed"},
    {"stale-translation",
     "TLBs keep old translations until an invalidate request with the right bits: the old page is used"},
    {"pte-fragment", "FRAGMENT promises a contiguous run: the TLB uses one entry for all of it and hits wrong pages"},
    {"pte-format", "reserved MTYPEs and addresses beyond 44 bits give wrong caching or wrong pages"},
    {"tlb-range", "an invalidate engine clears its ADDR_RANGE only: left at 0 it acknowledges and clears nothing"},
    {"tlb-semaphore", "MM hub invalidate requests without the engine's semaphore race with other requesters"},
    {"psp-order", "the PSP accepts each boot step and command only in its order and state"},
    {"psp-busy", "a boot loader command before the ready bit corrupts the running step: it is never ready again"},
    {"psp-address", "PSP buffers must be in the frame buffer and aligned"},
    {"psp-ring", "frames beyond the ring's end, partial frames and a second ring are not executed"},
    {"unsigned-firmware", "the PSP refuses images whose signature, kind or size is wrong"},
    {"tmr-access", "the trusted memory region is closed to CPU and engines: reads are all ones, writes are dropped"},
    {"smu-mailbox", "a message without a cleared response register or while busy is rejected or misread"},
    {"ih-rptr-unit", "IH_RB_RPTR counts bytes in steps of 32: other values make the ring lose or repeat entries"},
    {"ih-overflow", "the interrupt ring was not drained: the oldest entries are overwritten"},
    {"mec-not-started", "the compute micro engine needs a start address, a reset pulse and ACTIVE before it fetches"},
    {"hqd-active-write", "queue registers are latched while the queue is active: changing them gives undefined state"},
    {"mqd-image", "the queue's descriptor in memory does not match: the CP preloads garbage"},
    {"queue-wptr", "a write pointer behind the read pointer or further than a ring ahead is ignored"},
    {"doorbell-without-queue", "no active queue listens at that doorbell: the write is dropped"},
    {"doorbell-route", "the doorbell aperture or the S2A route of the engine is off: the write is dropped"},
    {"ring-packet-malformed", "the packet processor raises an error interrupt and the queue hangs"},
    {"register-window", "a SET packet outside its window or to a privileged register hangs the queue"},
    {"pred-exec-in-ring", "PRED_EXEC works in indirect buffers only; in a ring it is ignored"},
    {"dispatch-state",
     "compute state that was never programmed or is out of range makes waves hang or compute garbage"},
    {"sdma-wrap", "SDMA packets must not cross the ring's end: the engine reads past it"},
    {"sdma-active-write", "SDMA queue registers must not change while RB_ENABLE is set"},
};

}  // namespace

std::span<const Rule> amd_rules() { return kRules; }

bool Rules::broken(std::string_view rule, std::string detail) {
  std::scoped_lock lock(mutex_);
  if (lenient_.contains(rule)) return false;
  log::info("mock: {}: {}", rule, detail);
  if (notes_.size() >= kMaxNotes) return true;
  std::string recent;
  for (size_t i = 0; i < recent_.size(); ++i) {
    const Access& r = recent_[(recent_next_ + i) % recent_.size()];
    if (r.kind == 'E') recent += (recent.empty() ? "" : "; ") + r.event;
    else if (r.kind) recent += fmt::format("{}{} {} {:#x} = {:#x}", recent.empty() ? "" : "; ", r.kind, names_ ? names_(r.dword) : "?", r.dword, r.value);
  }
  if (!recent.empty()) detail += " [last accesses: " + recent + "]";
  notes_.push_back({std::string(rule), std::move(detail)});
  return true;
}

void Rules::remember(Access access) {
  std::scoped_lock lock(mutex_);
  recent_[recent_next_] = std::move(access);
  recent_next_ = (recent_next_ + 1) % recent_.size();
}

void Rules::remember_access(char kind, uint32_t dword, uint32_t value) { remember({kind, dword, value, {}}); }
void Rules::remember_event(std::string text) { remember({'E', 0, 0, std::move(text)}); }

void Rules::set_lenient(const std::string& rule, bool lenient) {
  std::string names;
  bool known = false;
  for (const Rule& r : kRules) {
    known |= rule == r.name;
    names += std::string(names.empty() ? "" : ", ") + r.name;
  }
  if (!known)
    throw UsageError(
        {.device = {}, .what = "unknown mock rule '" + rule + "'", .source = {}, .hint = "rules: " + names});
  std::scoped_lock lock(mutex_);
  if (lenient)
    lenient_.insert(rule);
  else
    lenient_.erase(rule);
}

bool Rules::lenient(std::string_view rule) const {
  std::scoped_lock lock(mutex_);
  return lenient_.contains(rule);
}

std::vector<Violation> Rules::list() const {
  std::scoped_lock lock(mutex_);
  return notes_;
}

void Rules::clear() {
  std::scoped_lock lock(mutex_);
  notes_.clear();
}

}  // namespace baregpu::mock
