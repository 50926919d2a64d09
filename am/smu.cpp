#include "am/smu.hpp"

#include <fmt/format.h>

#include "drivers/base/log.hpp"

// Protocol: Linux smu_cmn.c; messages and clocks: smu_v13_0_0_ppsmc.h, smu13_driver_if_v13_0_0.h.
namespace baregpu::am {
namespace {

struct Response {
  uint32_t value;
  const char* meaning;
};
constexpr uint32_t kOk = 1;
constexpr Response kResponses[] = {
    {0xff, "failed"},         {0xfe, "unknown message"}, {0xfd, "rejected: a prerequisite is missing"},
    {0xfc, "rejected: busy"}, {0xfb, "debug end"},
};

const char* meaning(uint32_t response) {
  for (const Response& r : kResponses)
    if (r.value == response) return r.meaning;
  return "unknown response";
}

constexpr Clock kClocks[] = {Clock::kUclk, Clock::kFclk, Clock::kSoc, Clock::kGfx};
// Bit 31 of a level marks a fine-grained table.
constexpr uint32_t kLevelMask = 0x7fffffff, kCountQuery = 0xff;

}  // namespace

uint32_t Smu::send(SmuMessage message, uint32_t argument, Milliseconds timeout) {
  const RegisterBlock& r = *c_.mp1;
  r.write_raw<MP1_SMN_C2PMSG_90>(0);
  r.write_raw<MP1_SMN_C2PMSG_82>(argument);
  r.write_raw<MP1_SMN_C2PMSG_66>(uint32_t(message));
  uint32_t response = 0;
  const std::string what = fmt::format("SMU answer to message {:#x}({:#x})", uint32_t(message), argument);
  // Any answer ends the poll: an error code must not look like a time-out.
  poll_until(
      c_.io, "MP1_SMN_C2PMSG_90", [&] { return (response = r.read<MP1_SMN_C2PMSG_90>()) != 0 ? 1u : 0u; }, 1, 1,
      timeout, what);
  if (response != kOk)
    throw Error({.device = c_.name(),
                 .what = fmt::format("SMU message {:#x}({:#x}): {}", uint32_t(message), argument, meaning(response)),
                 .source = fmt::format("MP1_SMN_C2PMSG_90 = {:#x}", response),
                 .hint = {}},
                "smu");
  return r.read<MP1_SMN_C2PMSG_82>();
}

bool Smu::alive() {
  try {
    send(SmuMessage::kGetSmuVersion, 0, Milliseconds(100));
    return true;
  } catch (const TimeoutError&) {
    return false;
  }
}

void Smu::init_hw() {
  const uint64_t table = gmc_.mc(table_).value;
  send(SmuMessage::kSetDriverDramAddrHigh, hi32(table));
  send(SmuMessage::kSetDriverDramAddrLow, lo32(table));
  send(SmuMessage::kEnableAllSmuFeatures, 0);
}

void Smu::set_clocks(bool highest) {
  for (Clock clock : kClocks) {
    const uint32_t id = uint32_t(clock) << 16;
    uint32_t index = 0;
    if (highest) {
      uint32_t count = send(SmuMessage::kGetDpmFreqByIndex, id | kCountQuery) & kLevelMask;
      if (count == 0 || count > 64) {
        log::warn("{}: SMU reports {} levels for clock {}; clocks are left as they are", c_.name(), count,
                  uint32_t(clock));
        continue;
      }
      index = count - 1;
    }
    const uint32_t mhz = send(SmuMessage::kGetDpmFreqByIndex, id | index) & 0xffff;
    for (SmuMessage m : {SmuMessage::kSetSoftMinByFreq, SmuMessage::kSetSoftMaxByFreq}) {
      try {
        send(m, id | mhz, Milliseconds(20));
      } catch (const TimeoutError&) {
        // Some firmware tables do not answer this message; the setting is not needed for correct results.
        log::info("{}: SMU does not answer the clock request for clock {}", c_.name(), uint32_t(clock));
      }
    }
  }
}

void Smu::request_mode1(ResetMailbox mailbox, uint32_t message, uint32_t argument) {
  const RegisterBlock& r = *c_.mp1;
  if (mailbox == ResetMailbox::kDebug) {
    r.write_raw<MP1_SMN_C2PMSG_54>(0);
    r.write_raw<MP1_SMN_C2PMSG_53>(argument);
    r.write_raw<MP1_SMN_C2PMSG_75>(message);
  } else {
    r.write_raw<MP1_SMN_C2PMSG_90>(0);
    r.write_raw<MP1_SMN_C2PMSG_82>(argument);
    r.write_raw<MP1_SMN_C2PMSG_66>(message);
  }
}

}  // namespace baregpu::am
