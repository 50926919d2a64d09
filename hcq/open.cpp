// Finds the device that a spec names and makes it ready.
#include <fmt/format.h>

#include "am/am_device.hpp"
#include "drivers/env.hpp"
#include "drivers/interfaces.hpp"
#include "hcq/amd/am_device.hpp"
#include "hcq/device.hpp"

namespace baregpu::hcq {
namespace {

constexpr const char* kMockHint = "DEV=MOCKPCI+AMD runs on a GPU made of software; `baregpu info` shows what was found";

[[noreturn]] void refuse(const DeviceSpec& spec, std::string why, std::string hint) {
  throw Error({.device = spec.str(), .what = std::move(why), .source = {}, .hint = std::move(hint)}, "no_device");
}

std::string describe(const FoundDevice& d) {
  std::string text = fmt::format("{} ({})", d.name, d.owner);
  for (const std::string& m : d.missing) text += "\n    " + m;
  return text;
}

/// The device of `row` that `spec.index` selects among those that VISIBLE_DEVICES allows.
/// @returns its index in the row's own order.
std::optional<unsigned> select(const PciInterface& row, const DeviceSpec& spec, const std::vector<FoundDevice>& found) {
  const auto& visible = env().visible;
  if (visible.empty() || row.is_mock) return spec.index < found.size() ? std::optional(spec.index) : std::nullopt;
  if (spec.index >= visible.size() || visible[spec.index] >= found.size()) return std::nullopt;
  return visible[spec.index];
}

std::unique_ptr<Device> boot(const PciInterface& row, const DeviceSpec& spec, const DeviceOptions& options) {
  am::BootOptions boot_options;
  boot_options.force_reset = options.force_reset || env().am_reset;
  boot_options.progress = options.progress;
  std::unique_ptr<PciDevice> pci = row.open(spec);
  if (!options.firmware_folders.empty()) {
    std::vector<std::string> folders = options.firmware_folders;
    for (std::string& own : pci->firmware_folders()) folders.push_back(std::move(own));
    boot_options.firmware = am::FirmwareFolders(std::move(folders));
  }
  auto gpu = std::make_unique<am::AmDevice>(std::move(pci), std::move(boot_options));
  if (!spec.arch.empty() && spec.arch != gpu->arch())
    refuse(spec, fmt::format("{} is a {} ({})", gpu->name(), gpu->chip(), gpu->arch()),
           "name that architecture, or none");
  return std::make_unique<amd::AmHcqDevice>(std::move(gpu), options);
}

std::unique_ptr<Device> open_named(const PciInterface& row, DeviceSpec spec, const DeviceOptions& options) {
  const std::vector<FoundDevice> found = row.list(spec);
  const std::optional<unsigned> index = select(row, spec, found);
  if (!index) {
    std::string text = fmt::format("no {} device {} on {}", spec.kind, spec.index, row.name);
    if (found.empty())
      text += ": none was found";
    else
      text += fmt::format(": {} found{}", found.size(), env().visible.empty() ? "" : ", VISIBLE_DEVICES hides some");
    refuse(spec, text, kMockHint);
  }
  const FoundDevice& d = found[*index];
  if (!d.usable) refuse(spec, "the device cannot be used: " + describe(d), {});
  spec.index = *index;
  return boot(row, spec, options);
}

/// The first usable real device of the kind.
std::unique_ptr<Device> open_any(const DeviceSpec& spec, const DeviceOptions& options) {
  std::string seen;
  for (const PciInterface& row : pci_interfaces()) {
    if (row.is_mock || (row.name == "VFIO" && !env().vfio)) continue;
    DeviceSpec s = spec;
    s.iface = row.name;
    const std::vector<FoundDevice> found = row.list(s);
    unsigned n = 0;
    for (unsigned i = 0; i < found.size(); ++i) {
      if (!env().visible.empty() && std::find(env().visible.begin(), env().visible.end(), i) == env().visible.end())
        continue;
      if (!found[i].usable) {
        seen += "\n  " + describe(found[i]);
        continue;
      }
      if (n++ != spec.index) continue;
      s.index = i;
      return boot(row, s, options);
    }
  }
  refuse(spec, seen.empty() ? fmt::format("no {} GPU was found", spec.kind) : "no GPU is free:" + seen, kMockHint);
}

/// What the environment asks for and this version does not have is refused, not ignored.
void refuse_unsupported() {
  const char* what = env().amd_aql.value_or(false) ? "AMD_AQL=1: AQL queues"
                     : env().pmc                   ? "PMC: performance counters"
                     : env().sqtt                  ? "SQTT: thread traces"
                     : !env().gmmu                 ? "GMMU=0: physical addresses"
                                                   : nullptr;
  if (what)
    throw UnsupportedError({.device = {},
                            .what = std::string(what) + " are not supported yet",
                            .source = {},
                            .hint = "unset the variable"});
}

}  // namespace

std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options) {
  refuse_unsupported();
  DeviceSpec s = spec;
  if (s.kind.empty()) s.kind = "AMD";
  if (s.kind == "CPU" || s.kind == "NV")
    throw UnsupportedError({.device = s.str(),
                            .what = s.kind + " devices are not supported yet",
                            .source = {},
                            .hint = "supported now: AMD"});
  if (!s.renderer.empty() && s.renderer != "LLVM")
    throw UnsupportedError({.device = s.str(),
                            .what = "no renderer " + s.renderer + " for " + s.kind,
                            .source = {},
                            .hint = "supported now: LLVM"});
  if (s.iface.empty()) return open_any(s, options);
  if (s.iface == "MOCK") s.iface = "MOCKPCI";
  const PciInterface* row = find_pci_interface(s.iface);
  if (!row) {
    std::string names;
    for (const PciInterface& r : pci_interfaces()) names += (names.empty() ? "" : ", ") + r.name;
    throw UnsupportedError({.device = s.str(),
                            .what = "the interface " + s.iface + " is not supported yet",
                            .source = {},
                            .hint = "supported now: " + names});
  }
  return open_named(*row, s, options);
}

}  // namespace baregpu::hcq
