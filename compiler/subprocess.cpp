#include "compiler/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "drivers/base/error.hpp"
#include "drivers/env.hpp"

extern char** environ;

namespace baregpu::compiler {
namespace {

constexpr size_t kMaxOutput = 1 << 20;
using Clock = std::chrono::steady_clock;

/// Reads until end of file or the deadline. @returns whether the end was reached.
bool drain(int fd, std::string& out, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd p{fd, POLLIN, 0};
    if (::poll(&p, 1, int(left)) < 0 && errno != EINTR) return true;
    if (!p.revents) continue;
    char chunk[4096];
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    if (out.size() < kMaxOutput) out.append(chunk, size_t(n));
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  int pipe_fd[2];
  if (::pipe2(pipe_fd, O_CLOEXEC) != 0)
    throw Error({.device = {}, .what = "cannot start " + arguments.at(0), .source = std::strerror(errno), .hint = {}});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], 2);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fd[1]);
  if (error) {
    ::close(pipe_fd[0]);
    throw Error({.device = {}, .what = "cannot start " + arguments[0], .source = std::strerror(error), .hint = {}});
  }
  ProgramResult result;
  const bool ended = drain(pipe_fd[0], result.output, Clock::now() + limit);
  ::close(pipe_fd[0]);
  if (!ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    throw TimeoutError({.device = {},
                        .what = fmt::format("{} did not end within {} s", arguments[0], limit.count()),
                        .source = {},
                        .hint = {}});
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string find_program(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (size_t at = 0; at <= env().path.size();) {
      const size_t end = std::min(env().path.find(':', at), env().path.size());
      const std::string folder = env().path.substr(at, end - at), full = folder + "/" + name;
      if (!folder.empty() && ::access(full.c_str(), X_OK) == 0) return full;
      at = end + 1;
    }
  return "";
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "baregpu-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    throw Error({.device = {},
                 .what = "cannot make a temporary folder",
                 .source = pattern + ": " + std::strerror(errno),
                 .hint = {}});
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace baregpu::compiler
