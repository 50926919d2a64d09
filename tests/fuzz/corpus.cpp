#include "tests/fuzz/corpus.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace baregpu::fuzz {

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

Bytes to_bytes(const std::string& text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

namespace {

/// libFuzzer starts itself again for these, with the folders it wants.
bool is_own_mode(std::string_view argument) {
  for (const char* mode : {"-merge", "-minimize_crash", "-cleanse_crash", "-fork"})
    if (argument.starts_with(mode)) return true;
  return false;
}

}  // namespace
}  // namespace baregpu::fuzz

/// Without a folder or file on the command line, a target starts from its seeds: they are written to TARGET.corpus
/// beside the program, where libFuzzer also adds what it finds.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  namespace fs = std::filesystem;
  for (int i = 1; i < *argc; ++i)
    if ((*argv)[i][0] != '-' || baregpu::fuzz::is_own_mode((*argv)[i])) return 0;
  static std::string folder = fs::canonical("/proc/self/exe").string() + ".corpus";
  fs::create_directories(folder);
  for (const auto& [name, bytes] : baregpu::fuzz::seeds())
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.push_back(folder.data());
  arguments.push_back(nullptr);
  *argc = int(arguments.size()) - 1;
  *argv = arguments.data();
  return 0;
}
