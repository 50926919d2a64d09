// Runs a program without a shell and catches what it says.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace baregpu::compiler {

struct ProgramResult {
  int exit_code = 0;   ///< 128 + signal if it was killed
  std::string output;  ///< stdout and stderr together, at most 1 MiB
};

/// @param arguments  argument vector; [0] is the program, a path or a name to look up in PATH.
/// @throws Error if it cannot be started, TimeoutError if it runs longer than `limit` (it is killed then).
ProgramResult run_program(const std::vector<std::string>& arguments,
                          std::chrono::seconds limit = std::chrono::seconds(120));

/// Full path of the first of `names` that PATH has, or "".
std::string find_program(const std::vector<std::string>& names);

/// A private folder below the system's temporary one; removed with its contents in the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace baregpu::compiler
