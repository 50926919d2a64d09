// What the commands share: global options, output, exit codes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hcq/device.hpp"

namespace CLI {
class App;
}

namespace baregpu::tools {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

/// Options that every command takes.
struct Global {
  std::string device;  ///< DEV string; empty = DEV, else the command's default
  bool json = false;
  bool reset = false;
  bool profile = false;
  int verbose = 0;
  uint32_t timeout_ms = 0;  ///< 0 = default
  std::vector<std::string> firmware;

  /// The device asked for by --device or DEV; kind empty when neither is given. @throws UsageError.
  DeviceSpec spec() const;
  /// Options for open_device(); progress lines go to a terminal's stderr only.
  hcq::DeviceOptions device_options() const;
  /// Adds --device, --json … to a command.
  void add_to(CLI::App& command);
};

/// A real GPU if one is free, else the mock; what was asked for if something was. Says on stderr when the mock is
/// taken.
std::unique_ptr<hcq::Device> open_or_mock(const Global& global, const hcq::DeviceOptions& options);

/// Runs one command's body: prints errors (text on stderr, or one JSON object on stdout) and gives the exit code.
int guarded(const Global& global, const std::function<int()>& body);

/// Whether stderr is a terminal and progress may be shown.
bool show_progress(const Global& global);
/// One progress line, overwritten by the next; an empty text clears it.
void progress(const std::string& text);

/// Parses the command line and runs the command. Exit codes: 0 done, 1 failed, 2 wrong usage.
int run(int argc, const char* const* argv);

/// Each command registers itself; `exit_code` is set when it ran.
void setup_info(CLI::App& app, int& exit_code);
void setup_demo(CLI::App& app, int& exit_code);
void setup_run(CLI::App& app, int& exit_code);
void setup_disasm(CLI::App& app, int& exit_code);
void setup_bench(CLI::App& app, int& exit_code);

}  // namespace baregpu::tools
