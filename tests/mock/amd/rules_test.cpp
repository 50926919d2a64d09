// Every rule of the strictness list is explained, and some test here breaks it.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "mock/amd/rules.hpp"
#include "tests/mock/amd/rig.hpp"

TEST_CASE("each rule has a name of its own, a reason, and a test that breaks it", "[mock][rules]") {
  std::string tests;
  for (const auto& e :
       std::filesystem::directory_iterator(std::filesystem::path(BAREGPU_SOURCE_DIR) / "tests/mock/amd")) {
    if (e.path().filename() == "rules_test.cpp") continue;
    std::ifstream in(e.path());
    std::stringstream text;
    text << in.rdbuf();
    tests += text.str();
  }
  std::set<std::string> names;
  for (const auto& rule : baregpu::mock::amd_rules()) {
    CAPTURE(rule.name);
    CHECK(names.insert(rule.name).second);
    CHECK(std::string(rule.why).size() > 20);
    CHECK(tests.find('"' + std::string(rule.name) + '"') != std::string::npos);
  }
}

TEST_CASE("notes carry the last accesses and can be cleared", "[mock][rules]") {
  rig::Rig g;
  g.w(rig::kScratch7, 0x42);
  g.r(0x777);
  auto notes = g.card->violations();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].rule == "unknown-register");
  CHECK(notes[0].detail.find("W SCRATCH_REG7 0xc047 = 0x42") != std::string::npos);
  g.card->clear_violations();
  CHECK(g.card->violations().empty());
}
