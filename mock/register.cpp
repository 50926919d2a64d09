#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "drivers/base/error.hpp"
#include "drivers/interfaces.hpp"
#include "mock/amd/chips.hpp"
#include "mock/mock.hpp"

namespace baregpu::mock {
namespace {

constexpr unsigned kCards = 4;  // how many mock cards "are plugged in"

std::string arch_of(const DeviceSpec& spec) { return spec.arch.empty() ? "gfx1100" : spec.arch; }

/// One card for each index and architecture, alive as long as the process: it keeps its state between openings.
std::shared_ptr<MockGpu> card(unsigned index, const std::string& arch) {
  static std::mutex mutex;
  static std::map<std::pair<unsigned, std::string>, std::shared_ptr<MockGpu>> cards;
  std::scoped_lock lock(mutex);
  std::shared_ptr<MockGpu>& c = cards[{index, arch}];
  if (!c) {
    MockOptions options = MockOptions::from_env();
    options.arch = arch;
    options.seed += index;
    c = make_mock_gpu(options);
  }
  return c;
}

std::string device_name(unsigned index) { return "MOCKPCI+AMD:" + std::to_string(index); }

std::vector<FoundDevice> list_cards(const DeviceSpec& spec) {
  if (!spec.kind.empty() && spec.kind != "AMD") return {};
  const Chip& chip = find_chip(arch_of(spec));
  std::vector<FoundDevice> found;
  for (unsigned i = 0; i < kCards; ++i)
    found.push_back({.name = device_name(i),
                     .id = {.vendor = 0x1002,
                            .device = chip.device_id,
                            .subsystem_vendor = 0x1002,
                            .subsystem_device = chip.subsystem_id,
                            .class_code = 0x030000,
                            .revision = chip.pci_revision},
                     .model = chip.model,
                     .owner = "mock",
                     .usable = true,
                     .missing = {}});
  return found;
}

std::unique_ptr<PciDevice> open_card(const DeviceSpec& spec) {
  if (spec.index >= kCards)
    throw UsageError({.device = device_name(spec.index),
                      .what = "there is no such mock card",
                      .source = {},
                      .hint = "indices 0 to " + std::to_string(kCards - 1)});
  return card(spec.index, arch_of(spec))->open(device_name(spec.index));
}

}  // namespace

void register_interfaces() {
  register_pci_interface({.name = "MOCKPCI",
                          .description = "PCI GPUs made of software that keep the hardware's rules",
                          .is_mock = true,
                          .list = list_cards,
                          .open = open_card});
}

}  // namespace baregpu::mock
