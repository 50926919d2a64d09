// The command line as scripts see it: the real binary, its exit codes, what is on stdout.
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/npy.hpp"

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("baregpu-cli-" + std::to_string(getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};
const Scratch& scratch() {
  static const Scratch s;
  return s;
}

std::string slurp(const fs::path& p) {
  std::ostringstream out;
  out << std::ifstream(p, std::ios::binary).rdbuf();
  return out.str();
}

struct Result {
  int code;
  std::string out, err;
};

Result cli(const std::string& arguments, const std::string& environment = "DEV=MOCKPCI+AMD") {
  const fs::path out = scratch().path / "stdout", err = scratch().path / "stderr";
  const std::string command = environment + " BAREGPU_CACHE='" + (scratch().path / "cache").string() +
                              "' '" BAREGPU_BINARY "' " + arguments + " >'" + out.string() + "' 2>'" + err.string() +
                              "' </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, slurp(out), slurp(err)};
}

std::vector<json> lines(const std::string& text) {
  std::vector<json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

constexpr const char* kSaxpy = R"(
kernel void saxpy(float a, global const float* x, global float* y) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
kernel void other(global int* p) { p[get_global_id(0)] = 1; }
)";

}  // namespace

TEST_CASE("wrong usage is exit code 2, help is 0", "[tools][cli]") {
  for (const char* args :
       {"", "frobnicate", "demo nothing", "demo --no-such-option", "run", "bench nothing", "demo --timeout-ms x"}) {
    CAPTURE(args);
    const Result r = cli(args);
    CHECK(r.code == 2);
    CHECK(r.err != "");
  }
  const Result help = cli("--help");
  CHECK(help.code == 0);
  for (const char* word : {"info", "run", "demo", "bench", "disasm", "HCQDEV_WAIT_TIMEOUT_MS", "MOCK_FAULT"})
    CHECK(help.out.find(word) != std::string::npos);
  for (const char* command : {"info", "run", "demo", "bench", "disasm"}) {
    const Result r = cli(std::string(command) + " --help");
    CHECK(r.code == 0);
    CHECK(r.out.find("--json") != std::string::npos);
    CHECK(r.out.find("--device") != std::string::npos);
  }
}

TEST_CASE("device strings that do not parse are shown, with what is accepted", "[tools][cli]") {
  for (const char* dev :
       {"FOO", "PCI+", "+AMD", "AMD:x:y:z:w", "PCI+PCI+AMD", "MOCKPCI+AMD::sparc", "AMD:99999999999"}) {
    CAPTURE(dev);
    const Result r = cli(std::string("demo vadd --json --device '") + dev + "'");
    CHECK(r.code == 2);
    const auto l = lines(r.out);
    REQUIRE(l.size() == 1);
    CHECK(l[0]["error"] == "usage");
    CHECK(l[0]["message"].get<std::string>().find(dev) != std::string::npos);
  }
  CHECK(cli("demo vadd --device NV").code == 1);  // known, not supported
  CHECK(cli("demo vadd --device USB+AMD").code == 1);
  CHECK(cli("demo vadd --device MOCKPCI+AMD:7").code == 1);
}

TEST_CASE("the demos run on the mock and are right", "[tools][cli]") {
  for (const char* name : {"vadd", "matmul", "mlp"}) {
    CAPTURE(name);
    const Result r = cli(std::string("demo ") + name + " --json");
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    const auto l = lines(r.out);
    REQUIRE(l.size() == 1);
    CHECK(l[0]["demo"] == name);
    CHECK(l[0]["ok"] == true);
    CHECK(l[0]["arch"] == "gfx1100");
    CHECK(l[0]["device"].get<std::string>().find("MOCKPCI") == 0);
    for (const char* key : {"max_abs_err", "boot_ms", "compile_ms", "run_ms"}) CHECK(l[0][key].is_number());
  }
  CHECK(lines(cli("demo vadd --json --device MOCKPCI+AMD::gfx1102").out)[0]["arch"] == "gfx1102");
}

TEST_CASE("times are printed when asked for; what is not supported yet is refused, not ignored", "[tools][cli]") {
  const Result timed = cli("demo mlp --profile");
  CHECK(timed.code == 0);
  for (const char* word : {"linear", "softmax", "copy", " us"}) CHECK(timed.out.find(word) != std::string::npos);
  const Result loud = cli("demo vadd -vv --json");
  CHECK(loud.err.find("SOC") != std::string::npos);  // boot steps
  CHECK(lines(loud.out).size() == 1);                // and none of it on stdout
  for (const char* variable : {"AMD_AQL=1", "PMC=1", "SQTT=1", "GMMU=0"}) {
    const Result r = cli("demo vadd --json", std::string("DEV=MOCKPCI+AMD ") + variable);
    CAPTURE(variable, r.out);
    CHECK(r.code == 1);
    CHECK(lines(r.out)[0]["error"] == "unsupported");
  }
  CHECK(cli("demo vadd", "DEV=MOCKPCI+AMD AM_RESET=perhaps").code == 2);
}

TEST_CASE("info is one JSON object a device", "[tools][cli]") {
  const Result r = cli("info --json");
  REQUIRE(r.code == 0);
  bool mock = false;
  for (const json& l : lines(r.out)) mock |= l["interface"] == "MOCKPCI" && l["usable"] == true && l["missing"].empty();
  CHECK(mock);
  CHECK(cli("info", "").code == 0);
}

TEST_CASE("a kernel file runs on .npy arrays and is checked", "[tools][cli]") {
  using namespace baregpu::tools;
  const std::string file = scratch().write("saxpy.cl", kSaxpy);
  NpyArray x{DType::kF32, {64}, std::vector<std::byte>(256)}, y = x, want = x;
  for (int i = 0; i < 64; ++i) {
    const float xi = float(i), yi = 100.0f, wi = 2.5f * float(i) + 100.0f;
    std::memcpy(x.bytes.data() + 4 * i, &xi, 4);
    std::memcpy(y.bytes.data() + 4 * i, &yi, 4);
    std::memcpy(want.bytes.data() + 4 * i, &wi, 4);
  }
  const std::string dir = scratch().path.string() + "/";
  write_npy(dir + "x.npy", x);
  write_npy(dir + "y.npy", y);
  write_npy(dir + "want.npy", want);
  const std::string base = "run '" + file + "' --kernel saxpy --grid 2 --block 32 --arg f32:2.5 --arg 'buf:f32:@" +
                           dir + "x.npy' --arg 'buf:f32:@" + dir + "y.npy' ";
  const Result good = cli(base + "--json --out '2=" + dir + "out.npy' --print 2:3 --expect '2=" + dir + "want.npy,0'");
  CAPTURE(good.err);
  REQUIRE(good.code == 0);
  const auto l = lines(good.out);
  REQUIRE(l.size() == 1);
  CHECK(l[0]["kernel"] == "saxpy");
  CHECK(l[0]["ok"] == true);
  CHECK(l[0]["time_us"].get<double>() > 0);
  CHECK(l[0]["outputs"][0]["arg"] == 2);
  CHECK(l[0]["outputs"][0]["max_abs_err"] == 0.0);
  CHECK(l[0]["outputs"][0]["values"] == json::array({100.0, 102.5, 105.0}));
  CHECK(read_npy(dir + "out.npy").bytes == want.bytes);
  const Result bad = cli(base + "--expect '2=" + dir + "y.npy,1.5'");
  CHECK(bad.code == 1);
  CHECK(bad.out.find("element 1 is 102.5, expected 100") != std::string::npos);
  CHECK(cli(base + "--expect 0=" + dir + "y.npy").code == 2);  // argument 0 is no buffer
  CHECK(cli(base + "--out 9=x.npy").code == 2);
}

TEST_CASE("what does not fit a kernel is said clearly, exit code 1", "[tools][cli]") {
  const std::string file = scratch().write("saxpy.cl", kSaxpy), base = "run '" + file + "' --json ";
  struct Case {
    std::string args;
    const char* error;
    const char* text;
  };
  const std::string broken = scratch().write("broken.cl", "kernel void k(global int* p) { p[0] = undeclared_name; }");
  const std::string cut = scratch().write("cut.co", std::string("\x7f"
                                                                "ELF\2\1\1\x40\3",
                                                                9) +
                                                        std::string(20, '\0'));
  const std::string two_buffers = "--arg buf:f32:32 --arg buf:f32:32 ";
  for (const Case& c :
       {Case{base + "--kernel nope", "error", "saxpy"},
        Case{base + "--kernel saxpy --arg f32:1", "kernel_args", "1 arguments given"},
        Case{base + "--kernel saxpy --arg i64:1 " + two_buffers, "kernel_args", "argument 0 has 8 bytes"},
        Case{base + "--kernel saxpy --block 2048 --arg f32:1 " + two_buffers, "launch", "2048"},
        Case{"run '" + broken + "' --json", "compile", "undeclared_name"},
        Case{"run '" + cut + "' --json", "parse", "cut.co"},
        Case{"run /nonexistent.cl --json", "file", "/nonexistent.cl"}}) {
    CAPTURE(c.args);
    const Result r = cli(c.args);
    CAPTURE(r.out, r.err);
    CHECK(r.code == 1);
    const auto l = lines(r.out);
    REQUIRE(l.size() == 1);
    if (std::string(c.error) != "error") CHECK(l[0]["error"] == c.error);
    CHECK(l[0]["message"].get<std::string>().find(c.text) != std::string::npos);
  }
}

TEST_CASE("a fault names the kernel and the address; an endless kernel ends with the limit", "[tools][cli]") {
  const std::string file = scratch().write("bad.cl", R"(
kernel void wild(global int* p) { p[(size_t)1 << 31] = 1; }
kernel void endless(global int* p) { while (*(volatile global int*)p == 0) {} }
)");
  const Result wild = cli("run '" + file + "' --kernel wild --arg buf:i32:16 --json");
  CHECK(wild.code == 1);
  CHECK(lines(wild.out)[0]["error"] == "page_fault");
  const std::string text = lines(wild.out)[0]["message"];
  CAPTURE(text);
  CHECK(text.find("'wild'") != text.npos);
  CHECK(text.find("0x20") != text.npos);
  const Result endless = cli("run '" + file + "' --kernel endless --arg buf:i32:16 --json --timeout-ms 300");
  CHECK(endless.code == 1);
  CHECK(lines(endless.out)[0]["error"] == "timeout");
  CHECK(lines(endless.out)[0]["message"].get<std::string>().find("'endless'") != std::string::npos);
}

TEST_CASE("disasm shows kernels, arguments and instructions", "[tools][cli]") {
  const std::string file = scratch().write("saxpy.cl", kSaxpy);
  const Result r = cli("disasm '" + file + "'");
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  for (const char* word : {"saxpy", "other", "s_endpgm", "global_store_b32", "s_load_b"}) {
    CAPTURE(word);
    CHECK(r.out.find(word) != std::string::npos);
  }
  const auto l = lines(cli("disasm '" + file + "' --json").out);
  REQUIRE(l.size() == 1);
  CHECK(l[0]["arch"] == "gfx1100");
  CHECK(l[0]["kernels"].size() == 2);
  CHECK(cli("disasm /dev/null").code == 1);
}

TEST_CASE("bench lines have the promised keys", "[tools][cli]") {
  for (const char* name : {"boot", "submit"}) {
    const Result r = cli(std::string("bench ") + name + " --json --rounds 1");
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    const auto l = lines(r.out);
    CHECK(l.size() >= 2);
    for (const json& line : l) {
      CHECK(line["bench"] == name);
      for (const char* key : {"case", "device", "arch", "variant", "unit"}) CHECK(line[key].is_string());
      CHECK(line["value"].is_number());
    }
  }
}
