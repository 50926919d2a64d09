#include "drivers/device_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "drivers/base/error.hpp"

namespace baregpu {
namespace {

constexpr const char* kInterfaces[] = {"PCI",     "VFIO",    "USB",     "KFD",     "NVK", "REMOTE",
                                       "MOCKPCI", "MOCKKFD", "MOCKUSB", "MOCKNVK", "MOCK"};
constexpr const char* kKinds[] = {"AMD", "NV", "CPU"};
constexpr const char* kRenderers[] = {"LLVM", "PTX"};
constexpr unsigned kMaxIndex = 255;

template <size_t N>
std::string list(const char* const (&names)[N]) {
  std::string out;
  for (const char* n : names) out += (out.empty() ? "" : ", ") + std::string(n);
  return out;
}

template <size_t N>
bool known(const char* const (&names)[N], std::string_view v) {
  return std::find(std::begin(names), std::end(names), v) != std::end(names);
}

[[noreturn]] void bad(std::string_view text, const std::string& why) {
  throw UsageError({.device = {},
                    .what = fmt::format("device '{}': {}", text, why),
                    .source = {},
                    .hint = fmt::format("the form is [IFACE+]KIND[:INDEX][:RENDERER][:ARCH], e.g. PCI+AMD, AMD:1, "
                                        "MOCKPCI+AMD::gfx1101; IFACE is one of {}; KIND is {}",
                                        list(kInterfaces), list(kKinds))});
}

bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "gfx" and three or more hexadecimal digits, or "sm_" and two or three digits with an optional letter.
bool is_arch(std::string_view s) {
  auto rest_is = [&](size_t from, const char* allowed) { return s.find_first_not_of(allowed, from) == s.npos; };
  if (s.starts_with("gfx")) return s.size() >= 6 && s.size() <= 8 && rest_is(3, "0123456789abcdef");
  if (s.starts_with("sm_")) return s.size() >= 5 && s.size() <= 7 && rest_is(3, "0123456789a");
  return false;
}

}  // namespace

std::string DeviceSpec::str() const {
  std::string out = iface.empty() ? kind : iface + "+" + kind;
  if (index) out += fmt::format(":{}", index);
  if (!renderer.empty() || !arch.empty()) out += ":" + renderer;
  if (!arch.empty()) out += ":" + arch;
  return out;
}

DeviceSpec parse_device_spec(std::string_view text) {
  DeviceSpec spec;
  std::string_view rest = text;
  if (const size_t plus = rest.find('+'); plus != rest.npos) {
    spec.iface = rest.substr(0, plus);
    rest.remove_prefix(plus + 1);
    if (!known(kInterfaces, spec.iface)) bad(text, fmt::format("'{}' is not an interface", spec.iface));
  }
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == rest.npos) break;
    rest.remove_prefix(colon + 1);
  }
  spec.kind = parts[0];
  if (!known(kKinds, spec.kind)) bad(text, fmt::format("'{}' is not a kind of device", spec.kind));
  if (spec.kind == "CPU" && !spec.iface.empty()) bad(text, "CPU takes no interface");
  size_t next = 1;
  if (next < parts.size() && all_digits(parts[next])) {
    const auto [end, ec] = std::from_chars(parts[next].data(), parts[next].data() + parts[next].size(), spec.index);
    if (ec != std::errc() || spec.index > kMaxIndex)
      bad(text, fmt::format("index {} is too large (0..{})", parts[next], kMaxIndex));
    ++next;
  }
  if (next < parts.size()) {
    spec.renderer = parts[next++];
    if (!spec.renderer.empty() && !known(kRenderers, spec.renderer))
      bad(text, fmt::format("'{}' is not a renderer ({})", spec.renderer, list(kRenderers)));
  }
  if (next < parts.size()) {
    spec.arch = parts[next++];
    if (!is_arch(spec.arch)) bad(text, fmt::format("'{}' is not an architecture (gfx1100, sm_89, ...)", spec.arch));
  }
  if (next < parts.size()) bad(text, fmt::format("nothing can follow the architecture ('{}')", parts[next]));
  return spec;
}

}  // namespace baregpu
