#include "tools/cli.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"
#include "drivers/env.hpp"
#include "drivers/interfaces.hpp"
#include "mock/mock.hpp"

namespace baregpu::tools {
namespace {

std::string environment_help() {
  std::string out = "Environment:\n";
  for (const EnvRow& r : env_table()) out += fmt::format("  {:<24}{} ({})\n", r.name, r.meaning, r.values);
  return out + "\nExit codes: 0 done, 1 the operation failed, 2 wrong usage.";
}

void print_error(const Global& global, const std::string& code, const std::string& message) {
  if (show_progress(global)) progress({});
  if (global.json)
    fmt::print("{}\n", nlohmann::json{{"error", code}, {"message", message}}.dump(
                           -1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print(stderr, "baregpu: {}\n", message);
}

}  // namespace

DeviceSpec Global::spec() const {
  const std::string& text = device.empty() ? env().dev : device;
  return text.empty() ? DeviceSpec{} : parse_device_spec(text);
}

hcq::DeviceOptions Global::device_options() const {
  hcq::DeviceOptions o;
  if (timeout_ms) o.timeout_ms = timeout_ms;
  o.force_reset = reset;
  o.firmware_folders = firmware;
  o.profile = profile;
  if (show_progress(*this)) o.progress = [](const std::string& step) { progress("boot: " + step); };
  return o;
}

void Global::add_to(CLI::App& command) {
  command.add_option("--device", device,
                     "[IFACE+]KIND[:INDEX][:RENDERER][:ARCH], e.g. PCI+AMD, MOCKPCI+AMD::gfx1101 (default: DEV)");
  command.add_flag("--json", json, "one JSON object a line on stdout, nothing else");
  command.add_flag("--reset", reset, "reset the GPU and boot it in full, whatever state it is in");
  command.add_flag("--profile", profile, "time every kernel and copy on the device, and print the times");
  command.add_flag("-v", verbose, "log to stderr: -v info, -vv debug, -vvv trace (default: DEBUG)");
  command.add_option("--timeout-ms", timeout_ms, "how long a wait may take before the device counts as hung")
      ->check(CLI::PositiveNumber);
  command.add_option("--firmware", firmware, "folder searched first for firmware files (repeatable)")
      ->check(CLI::ExistingDirectory);
}

std::unique_ptr<hcq::Device> open_or_mock(const Global& global, const hcq::DeviceOptions& options) {
  DeviceSpec spec = global.spec();
  if (!spec.kind.empty()) return hcq::open_device(spec, options);
  try {
    return hcq::open_device(spec, options);
  } catch (const Error& e) {
    if (e.code() != "no_device") throw;  // a GPU that is there but fails must not be papered over
  }
  static bool said = false;
  if (!global.json && !std::exchange(said, true))
    fmt::print(stderr,
               "No free GPU: using MOCKPCI+AMD, a GPU made of software. `baregpu info` tells what is missing.\n");
  spec.iface = "MOCKPCI";
  spec.kind = "AMD";
  return hcq::open_device(spec, options);
}

int guarded(const Global& global, const std::function<int()>& body) {
  if (global.verbose) log::set_verbosity(global.verbose);
  try {
    const int code = body();
    if (std::fflush(stdout) != 0) {
      fmt::print(stderr, "baregpu: writing to standard output failed\n");
      return kFailed;
    }
    return code;
  } catch (const UsageError& e) {
    print_error(global, e.code(), e.what());
    return kUsage;
  } catch (const Error& e) {
    print_error(global, e.code(), e.what());
  } catch (const std::bad_alloc&) {
    print_error(global, "out_of_memory", "out of host memory");
  } catch (const std::exception& e) {
    print_error(global, "error", e.what());
  }
  return kFailed;
}

bool show_progress(const Global& global) { return !global.json && isatty(STDERR_FILENO); }

void progress(const std::string& text) {
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
}

int run(int argc, const char* const* argv) {
  CLI::App app("baregpu: userspace GPU driver stack and compute runtime", "baregpu");
  app.set_version_flag("--version", "baregpu " BAREGPU_VERSION);
  app.footer(environment_help);
  app.require_subcommand(1);
  int exit_code = kDone;
  setup_info(app, exit_code);
  setup_demo(app, exit_code);
  setup_run(app, exit_code);
  setup_disasm(app, exit_code);
  setup_bench(app, exit_code);
  register_native_interfaces();
  mock::register_interfaces();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? kDone : kUsage;
  }
  return exit_code;
}

}  // namespace baregpu::tools
