#include "mock/amd/faults.hpp"

#include <algorithm>
#include <charconv>

#include "drivers/base/error.hpp"

namespace baregpu::mock {
namespace {

struct Name {
  const char* name;
  FaultPoint point;
};
constexpr Name kNames[] = {
    {"all-ones", FaultPoint::kAllOnes},
    {"fail-open", FaultPoint::kFailOpen},
    {"hang", FaultPoint::kHang},
    {"psp-timeout", FaultPoint::kPspTimeout},
    {"smu-timeout", FaultPoint::kSmuTimeout},
    {"page-fault", FaultPoint::kPageFault},
    {"msi-lost", FaultPoint::kMsiLost},
    {"power-cut", FaultPoint::kPowerCut},
    {"usb-unplug", FaultPoint::kUsbUnplug},
};

[[noreturn]] void refuse(const std::string& text, const std::string& item) {
  std::string names;
  for (const Name& n : kNames) names += std::string(names.empty() ? "" : ", ") + n.name + "@N";
  throw UsageError({.device = {},
                    .what = "MOCK_FAULT='" + text + "': '" + item + "' is not understood",
                    .source = {},
                    .hint = "it takes a comma-separated list of " + names});
}

}  // namespace

FaultPlan::FaultPlan(const std::string& text) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    size_t at = item.find('@');
    uint64_t n = 0;
    if (at == item.npos) refuse(text, item);
    const char* last = item.data() + item.size();
    auto [p, ec] = std::from_chars(item.data() + at + 1, last, n);
    if (ec != std::errc() || p != last || n == 0) refuse(text, item);
    const Name* found = nullptr;
    for (const Name& name : kNames)
      if (item.compare(0, at, name.name) == 0) found = &name;
    if (!found) refuse(text, item);
    items_.push_back({found->point, n});
  }
}

bool FaultPlan::hit(FaultPoint point) {
  bool now = false;
  for (Item& i : items_)
    if (i.point == point) now |= ++i.seen == i.at;
  return now;
}

bool FaultPlan::hit_from(FaultPoint point) {
  bool now = false;
  for (Item& i : items_)
    if (i.point == point) now |= ++i.seen >= i.at;
  return now;
}

}  // namespace baregpu::mock
