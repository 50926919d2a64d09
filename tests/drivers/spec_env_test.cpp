// DEV strings and the environment.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <set>

#include "drivers/base/error.hpp"
#include "drivers/device_spec.hpp"
#include "drivers/env.hpp"

using namespace baregpu;

TEST_CASE("DEV strings of the documentation parse", "[drivers][spec]") {
  struct Row {
    const char* text;
    DeviceSpec want;
  };
  for (const Row& r : {Row{"AMD", {.kind = "AMD"}}, Row{"PCI+AMD", {.iface = "PCI", .kind = "AMD"}},
                       Row{"USB+AMD", {.iface = "USB", .kind = "AMD"}},
                       Row{"MOCKPCI+AMD::gfx1201", {.iface = "MOCKPCI", .kind = "AMD", .arch = "gfx1201"}},
                       Row{"MOCK+NV:PTX", {.iface = "MOCK", .kind = "NV", .renderer = "PTX"}},
                       Row{"CPU", {.kind = "CPU"}}, Row{"AMD:1", {.kind = "AMD", .index = 1}},
                       Row{"AMD:1:LLVM:gfx942", {.kind = "AMD", .renderer = "LLVM", .arch = "gfx942", .index = 1}},
                       Row{"NV:LLVM:sm_89", {.kind = "NV", .renderer = "LLVM", .arch = "sm_89"}},
                       Row{"AMD:0::gfx90a", {.kind = "AMD", .arch = "gfx90a"}}}) {
    CAPTURE(r.text);
    const DeviceSpec s = parse_device_spec(r.text);
    CHECK(s.iface == r.want.iface);
    CHECK(s.kind == r.want.kind);
    CHECK(s.renderer == r.want.renderer);
    CHECK(s.arch == r.want.arch);
    CHECK(s.index == r.want.index);
    const DeviceSpec again = parse_device_spec(s.str());
    CHECK(again.str() == s.str());
    CHECK(again.index == s.index);
    CHECK(again.arch == s.arch);
  }
}

TEST_CASE("DEV strings that do not parse show the text and the accepted values", "[drivers][spec]") {
  for (const char* text : {"",
                           "amd",
                           "+",
                           "+AMD",
                           "PCI+",
                           "PCI",
                           "FOO+AMD",
                           "PCI+PCI+AMD",
                           "AMD:",
                           "AMD:x",
                           "AMD:-1",
                           "AMD:256",
                           "AMD:99999999999999999999",
                           "AMD::",
                           "AMD::x86",
                           "AMD::gfx",
                           "AMD::gfx11000000",
                           "AMD::gfx11 0",
                           "AMD::sm_",
                           "AMD:1:LLVM:gfx1100:more",
                           "AMD ",
                           " AMD",
                           "CPU+CPU",
                           "PCI+CPU",
                           "AMD:1:1"}) {
    if (std::strcmp(text, "AMD:") == 0) continue;  // an empty renderer is the default one
    CAPTURE(text);
    try {
      parse_device_spec(text);
      FAIL("accepted");
    } catch (const UsageError& e) {
      CHECK(std::string(e.what()).find("'" + std::string(text) + "'") != std::string::npos);
      CHECK(std::string(e.what()).find("MOCKPCI") != std::string::npos);
    }
  }
}

namespace {

std::map<std::string, std::string> vars;
Env parse(std::map<std::string, std::string> v) {
  vars = std::move(v);
  return parse_env([](const char* name) -> const char* {
    auto it = vars.find(name);
    return it == vars.end() ? nullptr : it->second.c_str();
  });
}

}  // namespace

TEST_CASE("the environment parses with its defaults", "[drivers][env]") {
  const Env none = parse({});
  CHECK(none.wait_timeout_ms == 30000);
  CHECK_FALSE(none.amd_aql.has_value());
  CHECK(none.mock_seed == 1);
  CHECK(none.cache_dir == "");
  const Env e = parse({{"VISIBLE_DEVICES", "2,0"},
                       {"AM_RESET", "1"},
                       {"AMD_AQL", "0"},
                       {"AM_FIRMWARE_PATH", "/a::/b"},
                       {"HCQDEV_WAIT_TIMEOUT_MS", "5"},
                       {"HOME", "/h"},
                       {"AM_DEBUG", ""}});
  CHECK(e.visible == std::vector<unsigned>{2, 0});
  CHECK(e.am_reset);
  CHECK(e.amd_aql == false);
  CHECK(e.firmware_path == std::vector<std::string>{"/a", "/b"});
  CHECK(e.wait_timeout_ms == 5);
  CHECK(e.cache_dir == "/h/.cache/baregpu");
  CHECK(parse({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache_dir == "/x/baregpu");
  CHECK(parse({{"BAREGPU_CACHE", "/c"}, {"HOME", "/h"}}).cache_dir == "/c");
}

TEST_CASE("a variable that does not parse is named", "[drivers][env]") {
  for (auto [name, value] : {std::pair{"AM_RESET", "yes"},
                             {"DEBUG", "x"},
                             {"VISIBLE_DEVICES", "1,x"},
                             {"HCQDEV_WAIT_TIMEOUT_MS", "-1"},
                             {"MOCK_SEED", "1.5"},
                             {"AMD_AQL", "2"}}) {
    CAPTURE(name);
    try {
      parse({{name, value}});
      FAIL("accepted");
    } catch (const UsageError& e) {
      CHECK(std::string(e.what()).find(name) != std::string::npos);
    }
  }
}

TEST_CASE("the environment table has each name once, with its equivalent", "[drivers][env]") {
  std::set<std::string> names;
  for (const EnvRow& r : env_table()) {
    CHECK(names.insert(r.name).second);
    CHECK(std::strlen(r.meaning) > 5);
    CHECK(std::strlen(r.equivalent) > 0);
  }
  for (const char* n : {"DEV", "VISIBLE_DEVICES", "DEBUG", "AM_RESET", "AM_DEBUG", "AMD_AQL", "AMD_DISABLE_SDMA",
                        "HCQDEV_WAIT_TIMEOUT_MS", "REMOTE", "PROFILE", "PMC", "SQTT", "JIT", "BEAM", "GMMU"})
    CHECK(names.contains(n));
}
