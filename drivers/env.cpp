#include "drivers/env.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "drivers/base/error.hpp"

namespace baregpu {
namespace {

constexpr EnvRow kRows[] = {
    {"DEV", "[IFACE+]KIND[:RENDERER][:ARCH]", "device to use", "--device"},
    {"VISIBLE_DEVICES", "0,2,...", "indices of the devices that may be used", "drivers/device_spec.hpp"},
    {"DEBUG", "0..3", "diagnostics on stderr: warnings, info, debug, trace", "-v, -vv, -vvv"},
    {"AM_RESET", "0|1", "always reset the GPU and boot in full", "--reset"},
    {"AM_DEBUG", "0..2", "AM driver: 1 logs boot steps, 2 every register access", "am::BootOptions"},
    {"AM_FIRMWARE_PATH", "DIR[:DIR...]", "folders searched for firmware before /lib/firmware/amdgpu", "--firmware"},
    {"AMD_AQL", "0|1", "force PM4 (0) or AQL (1) compute queues", "hcq::DeviceOptions"},
    {"AMD_DISABLE_SDMA", "0|1", "no copy queue", "hcq::DeviceOptions"},
    {"HCQDEV_WAIT_TIMEOUT_MS", "ms", "how long a wait may take before the device counts as hung", "--timeout-ms"},
    {"REMOTE", "host[:port],...", "GPUs on other machines", "--device REMOTE+AMD"},
    {"PROFILE", "0|1", "collect per-kernel times", "--profile"},
    {"PMC", "0|1", "collect performance counters", "-"},
    {"SQTT", "0|1", "collect thread traces", "-"},
    {"JIT", "0|1", "capture and replay", "-"},
    {"BEAM", "n", "beam width of the kernel search", "-"},
    {"GMMU", "0|1", "use the GPU's page tables (1) or physical addresses (0)", "-"},
    {"VFIO", "0|1", "reach PCI devices through vfio-pci", "--device VFIO+AMD"},
    {"BAREGPU_CACHE", "DIR", "folder of compiled kernels", "compiler::CompilerOptions"},
    {"BAREGPU_CLANG", "FILE", "the clang that compiles kernels; default clang-22 to clang-19 in PATH",
     "compiler::CompileOptions"},
    {"MOCK_CARD", "cold|amdgpu|am|am-dirty|stalled|vf", "state in which the mock card is found", "mock::MockOptions"},
    {"MOCK_FAULT", "name@N,...", "faults that the mock injects", "mock::MockOptions"},
    {"MOCK_STATE", "DIR", "folder for the mock's non-volatile state", "mock::MockOptions"},
    {"MOCK_SEED", "n", "seed of the mock's random choices", "mock::MockOptions"},
};

[[noreturn]] void bad(const char* name, std::string_view value, const char* wants) {
  throw UsageError({.device = {},
                    .what = std::string(name) + "='" + std::string(value) + "' is not understood",
                    .source = {},
                    .hint = std::string("it takes ") + wants});
}

template <class T>
void number(const char* (*get)(const char*), const char* name, T& out) {
  const char* s = get(name);
  if (!s || !*s) return;
  std::string_view v(s);
  T value{};
  auto [end, ec] = std::from_chars(v.data(), v.data() + v.size(), value);
  if (ec != std::errc() || end != v.data() + v.size()) bad(name, v, "a number");
  out = value;
}

void flag(const char* (*get)(const char*), const char* name, bool& out) {
  const char* s = get(name);
  if (!s || !*s) return;
  std::string_view v(s);
  if (v != "0" && v != "1") bad(name, v, "0 or 1");
  out = v == "1";
}

void text(const char* (*get)(const char*), const char* name, std::string& out) {
  if (const char* s = get(name)) out = s;
}

std::vector<std::string> split(std::string_view s, char sep) {
  std::vector<std::string> parts;
  while (!s.empty()) {
    size_t n = s.find(sep);
    if (n != 0) parts.emplace_back(s.substr(0, n));
    if (n == s.npos) break;
    s.remove_prefix(n + 1);
  }
  return parts;
}

}  // namespace

Env parse_env(const char* (*get)(const char*)) {
  Env e;
  text(get, "DEV", e.dev);
  std::string list;
  text(get, "VISIBLE_DEVICES", list);
  for (const std::string& part : split(list, ',')) {
    unsigned n{};
    auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (ec != std::errc() || end != part.data() + part.size()) bad("VISIBLE_DEVICES", list, "indices like 0,2");
    e.visible.push_back(n);
  }
  number(get, "DEBUG", e.debug);
  flag(get, "AM_RESET", e.am_reset);
  number(get, "AM_DEBUG", e.am_debug);
  std::string path;
  text(get, "AM_FIRMWARE_PATH", path);
  e.firmware_path = split(path, ':');
  if (const char* s = get("AMD_AQL"); s && *s) {
    bool v = false;
    flag(get, "AMD_AQL", v);
    e.amd_aql = v;
  }
  flag(get, "AMD_DISABLE_SDMA", e.amd_disable_sdma);
  number(get, "HCQDEV_WAIT_TIMEOUT_MS", e.wait_timeout_ms);
  text(get, "REMOTE", e.remote);
  number(get, "PROFILE", e.profile);
  number(get, "PMC", e.pmc);
  number(get, "SQTT", e.sqtt);
  number(get, "JIT", e.jit);
  number(get, "BEAM", e.beam);
  flag(get, "GMMU", e.gmmu);
  flag(get, "VFIO", e.vfio);
  text(get, "BAREGPU_CACHE", e.cache_dir);
  if (e.cache_dir.empty()) {
    std::string base;
    text(get, "XDG_CACHE_HOME", base);
    if (base.empty()) {
      text(get, "HOME", base);
      if (!base.empty()) base += "/.cache";
    }
    if (!base.empty()) e.cache_dir = base + "/baregpu";
  }
  text(get, "BAREGPU_CLANG", e.clang);
  text(get, "PATH", e.path);
  text(get, "MOCK_CARD", e.mock_card);
  text(get, "MOCK_FAULT", e.mock_fault);
  text(get, "MOCK_STATE", e.mock_state);
  number(get, "MOCK_SEED", e.mock_seed);
  return e;
}

const Env& env() {
  static const Env e = parse_env([](const char* name) -> const char* { return std::getenv(name); });
  return e;
}

std::span<const EnvRow> env_table() { return kRows; }

}  // namespace baregpu
