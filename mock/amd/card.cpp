#include "mock/amd/card.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "drivers/base/error.hpp"
#include "mock/amd/device.hpp"
#include "mock/amd/firmware.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

/// A folder of its own that goes with the card, or a lasting one under MOCK_STATE.
class FirmwareFolder {
 public:
  FirmwareFolder(const Chip& chip, const std::string& state_dir) {
    if (!state_dir.empty()) {
      path_ = (std::filesystem::path(state_dir) / "firmware" / chip.arch).string();
    } else {
      std::string text = (std::filesystem::temp_directory_path() / "baregpu-mock-XXXXXX").string();
      if (!mkdtemp(text.data())) throw Error("mock: cannot make a folder for firmware: " + text);
      path_ = text;
      temporary_ = true;
    }
    write_chip_firmware(chip, path_);
  }
  ~FirmwareFolder() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(path_, ignored);
  }
  FirmwareFolder(const FirmwareFolder&) = delete;
  FirmwareFolder& operator=(const FirmwareFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool temporary_ = false;
};

class AmdCard final : public MockGpu, public std::enable_shared_from_this<AmdCard> {
 public:
  AmdCard(const MockOptions& options, const ExecutorFactory& factory)
      : chip_(find_chip(options.arch)),
        folder_(chip_, options.state_dir),
        machine_(chip_, options, factory(chip_.target, {.threads = options.executor_threads})) {}

  std::unique_ptr<PciDevice> open(std::string name) override {
    return open_mock_device(machine_, shared_from_this(), std::move(name), folder_.path());
  }
  std::vector<Violation> violations() const override { return machine_.rules.list(); }
  void clear_violations() override { machine_.rules.clear(); }
  AccessCounters counters() const override {
    std::scoped_lock lock(machine_.mutex);
    return machine_.counters;
  }
  void reset_counters() override {
    std::scoped_lock lock(machine_.mutex);
    machine_.counters = {};
  }
  void set_trace(std::vector<std::string>* out) override {
    std::scoped_lock lock(machine_.mutex);
    machine_.set_trace(out);
  }
  void set_lenient(const std::string& rule, bool lenient) override { machine_.rules.set_lenient(rule, lenient); }
  const std::string& firmware_folder() const override { return folder_.path(); }

 private:
  const Chip& chip_;
  FirmwareFolder folder_;
  mutable Machine machine_;
};

}  // namespace

std::shared_ptr<MockGpu> make_amd_card(const MockOptions& options, const ExecutorFactory& factory) {
  return std::make_shared<AmdCard>(options, factory);
}

std::shared_ptr<MockGpu> make_mock_gpu(const MockOptions& options) {
  return make_amd_card(options, isa::make_executor);
}

}  // namespace baregpu::mock
