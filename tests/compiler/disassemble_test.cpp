// The disassembly, against llvm-objdump's.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/compiler.hpp"
#include "compiler/subprocess.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::compiler;

namespace {

struct Line {
  std::string text;
  uint64_t target = 0;  ///< of a branch
  bool operator==(const Line&) const = default;
};
using Listing = std::map<uint64_t, Line>;

std::string trim(std::string s) {
  s.erase(0, s.find_first_not_of(" \t"));
  s.erase(s.find_last_not_of(" \t") + 1);
  return s;
}

/// "  0x1700: text <L1758>   // words"
Listing ours(const std::string& text, std::map<uint64_t, bool>& labels) {
  Listing out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(" L")) labels[std::strtoull(line.c_str() + 2, nullptr, 16)] = true;
    if (!line.starts_with("  0x")) continue;
    Line l;
    const size_t colon = line.find(':');
    l.text = trim(line.substr(colon + 1, line.rfind("//") - colon - 1));
    if (const size_t at = l.text.find(" <L"); at != l.text.npos) {
      l.target = std::strtoull(l.text.c_str() + at + 3, nullptr, 16);
      l.text = l.text.substr(0, at);
    }
    out[std::strtoull(line.c_str(), nullptr, 16)] = l;
  }
  return out;
}

/// "0000000000001600 <helper>:" and "\ttext   // 000000001610: BFA50013 <helper+0x60>"
Listing theirs(const std::string& text) {
  Listing out;
  std::map<std::string, uint64_t> functions;
  for (int pass = 0; pass < 2; ++pass) {  // branches may go to functions that come later
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("0000") && line.ends_with(">:"))
        functions[line.substr(18, line.size() - 20)] = std::strtoull(line.c_str(), nullptr, 16);
      const size_t comment = line.find("// 0");
      if (comment == line.npos || pass == 0) continue;
      Line l{trim(line.substr(0, comment)), 0};
      if (const size_t at = line.find('<', comment); at != line.npos) {
        const size_t plus = line.find('+', at);
        l.target = functions[line.substr(at + 1, std::min(plus, line.find('>', at)) - at - 1)] +
                   (plus == line.npos ? 0 : std::strtoull(line.c_str() + plus + 1, nullptr, 16));
      }
      out[std::strtoull(line.c_str() + comment + 3, nullptr, 16)] = l;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("kernels and the functions they call are listed as llvm-objdump lists them", "[compiler][disasm]") {
  const char* source = R"(
__attribute__((noinline)) int helper(int x) {
  for (int i = 0; i < x; ++i) if (x & (1 << (i & 31))) x -= i * x;
  return x;
}
kernel void k(global int* p, int n) {
  for (int i = 0; i < n; ++i) if (p[i] > 3) p[i] = helper(i);
}
kernel void l(global float* p) { p[get_global_id(0)] = sqrt(p[get_local_id(0)]); }
)";
  const std::string objdump =
      find_program({"llvm-objdump-22", "llvm-objdump-21", "llvm-objdump-20", "llvm-objdump-19"});
  REQUIRE(objdump != "");
  for (const char* arch : {"gfx1100", "gfx1201", "gfx942"}) {
    CAPTURE(arch);
    CompileOptions o;
    o.arch = arch;
    o.use_cache = false;
    const std::vector<std::byte> object = compile(SourceKind::kOpenCl, source, "k.cl", o);
    TemporaryFolder folder;
    std::ofstream(folder.file("k.co"), std::ios::binary)
        .write(reinterpret_cast<const char*>(object.data()), long(object.size()));
    const std::string text = disassemble(object, "k.cl");
    std::map<uint64_t, bool> labels;
    const Listing mine = ours(text, labels), judge = theirs(run_program({objdump, "-d", folder.file("k.co")}).output);
    REQUIRE(mine.size() > 60);
    unsigned branches = 0;
    for (const auto& [address, line] : mine) {
      CAPTURE(address, line.text, line.target);
      REQUIRE(judge.contains(address));
      CHECK(judge.at(address).text == line.text);
      CHECK(judge.at(address).target == line.target);
      if (line.target) {
        ++branches;
        CHECK(labels.contains(line.target));
      }
    }
    CHECK(branches > 3);
    // What is left out is padding.
    for (const auto& [address, line] : judge)
      if (!mine.contains(address)) CHECK((line.text == "s_code_end" || line.text == "s_nop 0"));
    for (const char* part : {"\nhelper: function\n", "\nk: wave", "\nl: wave", "argument at   0, 8 bytes: int* p",
                             "argument at   8, 4 bytes: int n", "hidden arguments from "})
      CHECK(text.find(part) != text.npos);
  }
}

TEST_CASE("what cannot be disassembled says why", "[compiler][disasm]") {
  CHECK_THROWS_AS(disassemble({}, "empty.co"), ParseError);
  try {
    disassemble({}, "empty.co");
  } catch (const ParseError& e) {
    CHECK(std::string(e.what()).find("empty.co") != std::string::npos);
  }
}
