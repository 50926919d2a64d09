#include "drivers/base/error.hpp"
#include "drivers/env.hpp"
#include "mock/amd/faults.hpp"
#include "mock/mock.hpp"

namespace baregpu::mock {
namespace {

struct StateName {
  const char* name;
  CardState state;
};
constexpr StateName kStates[] = {{"cold", CardState::kCold},       {"amdgpu", CardState::kAmdgpu},
                                 {"am", CardState::kAm},           {"am-dirty", CardState::kAmDirty},
                                 {"stalled", CardState::kStalled}, {"vf", CardState::kVf}};

CardState parse_state(const std::string& text) {
  std::string names;
  for (const StateName& s : kStates) {
    if (text == s.name) return s.state;
    names += std::string(names.empty() ? "" : ", ") + s.name;
  }
  throw UsageError(
      {.device = {}, .what = "MOCK_CARD='" + text + "' is not understood", .source = {}, .hint = "it takes " + names});
}

}  // namespace

MockOptions MockOptions::from_env() {
  const Env& e = env();
  MockOptions o;
  if (!e.mock_card.empty()) o.card = parse_state(e.mock_card);
  o.fault = e.mock_fault;
  FaultPlan check(o.fault);  // a wrong name should show now, not when the card is opened
  o.seed = e.mock_seed;
  o.state_dir = e.mock_state;
  return o;
}

}  // namespace baregpu::mock
