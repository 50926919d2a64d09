// baregpu info: which GPUs there are, who owns them, and what is missing to use them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "am/firmware.hpp"
#include "drivers/base/error.hpp"
#include "drivers/interfaces.hpp"
#include "tools/cli.hpp"

namespace baregpu::tools {
namespace {

struct InfoOptions {
  Global global;
};

constexpr const char* kSecureOsFiles[] = {"psp_13_0_0_sos.bin", "psp_13_0_10_sos.bin",
                                          "psp_13_0_7_sos.bin"};  // Navi31, Navi32, Navi33

nlohmann::json to_json(const PciInterface& row, const DeviceSpec& spec, const FoundDevice& d) {
  return {{"interface", row.name}, {"device", d.name},
          {"spec", spec.str()},    {"pci_id", fmt::format("{:04x}:{:04x}", d.id.vendor, d.id.device)},
          {"model", d.model},      {"owner", d.owner},
          {"usable", d.usable},    {"missing", d.missing}};
}

/// Which chip it is only its discovery table says, and that is read when it is booted; but without any of these files
/// no chip that is supported boots.
void add_firmware(const Global& global, FoundDevice& d) {
  const am::FirmwareFolders folders(global.firmware);
  for (const char* file : kSecureOsFiles)
    if (!folders.find(file).empty()) return;
  std::string where;
  for (const std::string& f : folders.folders()) where += (where.empty() ? "" : ", ") + f;
  d.missing.push_back(
      fmt::format("firmware: none of the supported chips' files (psp_13_0_0_sos.bin, ...) is in {}: `sudo apt-get "
                  "install firmware-amd-graphics`, or --firmware DIR",
                  where));
  d.usable = false;
}

int run_info(const InfoOptions& o) {
  const DeviceSpec wanted = o.global.spec();
  const bool mocks = wanted.iface.starts_with("MOCK");  // listed only when asked for: they are always there
  unsigned real = 0;
  for (const PciInterface& row : pci_interfaces()) {
    if (wanted.iface.empty() ? row.is_mock : row.name != (wanted.iface == "MOCK" ? "MOCKPCI" : wanted.iface)) continue;
    for (const char* kind : {"AMD", "NV"}) {
      if (!wanted.kind.empty() && wanted.kind != kind) continue;
      DeviceSpec spec = wanted;
      spec.iface = row.name;
      spec.kind = kind;
      std::vector<FoundDevice> found;
      try {
        found = row.list(spec);
        for (FoundDevice& d : found)
          if (!row.is_mock && spec.kind == "AMD") add_firmware(o.global, d);
      } catch (const Error& e) {
        // One broken way must not hide the others.
        if (o.global.json)
          fmt::print("{}\n",
                     nlohmann::json{{"interface", row.name}, {"error", e.code()}, {"message", e.what()}}.dump());
        else
          fmt::print("{}: {}\n", row.name, e.what());
        continue;
      }
      for (unsigned i = 0; i < found.size(); ++i) {
        const FoundDevice& d = found[i];
        real += !row.is_mock;
        spec.index = i;
        if (o.global.json) {
          fmt::print("{}\n", to_json(row, spec, d).dump());
          continue;
        }
        fmt::print("{}  {:04x}:{:04x}  {}\n  owner: {}\n", spec.str(), d.id.vendor, d.id.device, d.model, d.owner);
        if (!row.is_mock) fmt::print("  address: {}\n", d.name);
        if (d.usable) fmt::print("  ready to use\n");
        for (const std::string& m : d.missing) fmt::print("  missing: {}\n", m);
      }
    }
  }
  if (real == 0 && !mocks && !o.global.json)
    fmt::print(
        "No AMD or NVIDIA GPU was found on PCI. Commands such as `baregpu demo` then use the mock GPU "
        "(DEV=MOCKPCI+AMD).\n");
  return kDone;
}

}  // namespace

void setup_info(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<InfoOptions>();
  CLI::App* c = app.add_subcommand("info", "devices found, who owns them, what is missing to use them");
  o->global.add_to(*c);
  c->callback([o, &exit_code] { exit_code = guarded(o->global, [&] { return run_info(*o); }); });
}

}  // namespace baregpu::tools
