// Rules about the source itself.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = BAREGPU_SOURCE_DIR;

/// What each folder may include: a folder, a part of one, or one header.
const std::map<std::string, std::vector<std::string>> kAllowed = {
    {"drivers", {"drivers/"}},
    {"am", {"am/", "drivers/"}},
    {"compiler", {"compiler/", "drivers/base/", "drivers/env.hpp"}},
    {"hcq", {"hcq/", "am/", "drivers/", "compiler/program_image.hpp"}},
    {"mock", {"mock/", "drivers/", "am/regs/"}},
};
const char* const kFolders[] = {"drivers", "am", "nv", "hcq", "usb", "mock", "compiler", "tensor", "tools", "tests"};

std::vector<fs::path> sources(const std::string& folder) {
  std::vector<fs::path> out;
  if (!fs::exists(kRoot / folder)) return out;
  for (const auto& e : fs::recursive_directory_iterator(kRoot / folder))
    if (e.path().extension() == ".cpp" || e.path().extension() == ".hpp") out.push_back(e.path());
  return out;
}

std::vector<std::string> lines(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

bool is_ours(const std::string& include) {
  for (const char* f : kFolders)
    if (include.starts_with(std::string(f) + "/")) return true;
  return false;
}

}  // namespace

TEST_CASE("includes follow the table of allowed includes", "[house]") {
  const std::regex include(R"re(^\s*#\s*include\s*"([^"]+)")re");
  unsigned seen = 0;
  for (const auto& [folder, allowed] : kAllowed)
    for (const fs::path& file : sources(folder))
      for (const std::string& line : lines(file)) {
        std::smatch m;
        if (!std::regex_search(line, m, include)) continue;
        ++seen;
        const std::string what = m[1];
        bool ok = false;
        for (const std::string& a : allowed) ok |= what.starts_with(a);
        CAPTURE(file.string(), what);
        CHECK(ok);
        CHECK(is_ours(what));  // "a/b.hpp" from the root, never "b.hpp" or "../b.hpp"
      }
  CHECK(seen > 100);
}

TEST_CASE("the mock and the driver share tables, never logic", "[house]") {
  // Tables and packed structs only: what is in am/regs may not include the driver either.
  for (const fs::path& file : sources("am/regs"))
    for (const std::string& line : lines(file))
      if (line.starts_with("#include \"")) {
        CAPTURE(file.string(), line);
        CHECK((line.find("\"am/regs/") != line.npos || line.find("\"drivers/base/") != line.npos));
      }
}

TEST_CASE("costly headers stay in the few files that need them", "[house]") {
  const std::regex llvm(R"re(#\s*include\s*[<"](llvm|lld|llvm-c)/)re"), cli(R"(#\s*include\s*<CLI/)");
  unsigned llvm_files = 0;
  for (const char* folder : kFolders)
    for (const fs::path& file : sources(folder)) {
      bool uses_llvm = false;
      for (const std::string& line : lines(file)) {
        uses_llvm |= std::regex_search(line, llvm);
        if (std::regex_search(line, cli)) {
          CAPTURE(file.string());
          CHECK(file.string().starts_with((kRoot / "tools").string()));
        }
      }
      if (!uses_llvm) continue;
      ++llvm_files;
      CAPTURE(file.string());
      CHECK(file.extension() == ".cpp");
      CHECK(file.string().starts_with((kRoot / "compiler").string()));
    }
  CHECK(llvm_files <= 4);
}

TEST_CASE("every header compiles once: it has #pragma once", "[house]") {
  for (const char* folder : kFolders)
    for (const fs::path& file : sources(folder)) {
      if (file.extension() != ".hpp") continue;
      bool once = false;
      for (const std::string& line : lines(file)) once |= line == "#pragma once";
      CAPTURE(file.string());
      CHECK(once);
    }
}

TEST_CASE("the environment is read in one place", "[house]") {
  for (const char* folder : {"drivers", "am", "hcq", "mock", "compiler", "tools"})
    for (const fs::path& file : sources(folder)) {
      if (file.filename() == "env.cpp") continue;
      for (const std::string& line : lines(file)) {
        CAPTURE(file.string(), line);
        CHECK(line.find("getenv(") == line.npos);
      }
    }
}

TEST_CASE("the generated register names and tables are those of the .tsv files", "[house][regs]") {
  const std::string command = "cd '" + kRoot.string() + "' && python3 am/regs/gen.py --check";
  CHECK(std::system(command.c_str()) == 0);
}
