// The exception tree of baregpu. Include as "drivers/base/error.hpp" (public).
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace baregpu {

/// What an error message is made of; empty parts are left out of the text.
struct ErrorInfo {
  std::string device;  ///< which device: "0000:03:00.0", "MOCKPCI+AMD:0"
  std::string what;    ///< what failed, in words
  std::string source;  ///< the register, packet, file or value involved
  std::string hint;    ///< what the user can do
};

/// Root of all errors that baregpu throws. `code()` is a stable lower-case name for scripts (`--json`).
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorInfo info, std::string_view code = "error");
  /// A plain message without device, source and hint.
  explicit Error(std::string what)
      : Error(ErrorInfo{.device = {}, .what = std::move(what), .source = {}, .hint = {}}) {}
  const ErrorInfo& info() const noexcept { return info_; }
  const std::string& code() const noexcept { return code_; }

 private:
  ErrorInfo info_;
  std::string code_;
};

/// Something did not happen within its bound (register poll, signal wait).
class TimeoutError : public Error {
 public:
  explicit TimeoutError(ErrorInfo info) : Error(std::move(info), "timeout") {}

 protected:
  TimeoutError(ErrorInfo info, std::string_view code) : Error(std::move(info), code) {}
};

/// The GPU reported a fault (page fault, illegal instruction, memory violation) or stopped making progress.
class FaultError : public Error {
 public:
  explicit FaultError(ErrorInfo info, std::string_view code) : Error(std::move(info), code) {}
};

/// The way to the device is broken: unplugged, reads of all ones, a failed system call on its files.
class TransportError : public Error {
 public:
  explicit TransportError(ErrorInfo info, std::string_view code = "transport") : Error(std::move(info), code) {}
};

/// Known, but not supported by this version, chip or mode.
class UnsupportedError : public Error {
 public:
  explicit UnsupportedError(ErrorInfo info) : Error(std::move(info), "unsupported") {}
};

/// Bytes from outside (ELF, firmware, discovery, .npy, DEV string) that do not parse.
class ParseError : public Error {
 public:
  explicit ParseError(ErrorInfo info) : Error(std::move(info), "parse") {}
};

/// A kernel does not compile, or does not match its arguments; `what` holds the compiler's diagnostics.
class CompileError : public Error {
 public:
  explicit CompileError(ErrorInfo info) : Error(std::move(info), "compile") {}
};

/// Memory of a device or of the host ran out; the text says asked, used and free.
class OutOfMemoryError : public Error {
 public:
  explicit OutOfMemoryError(ErrorInfo info) : Error(std::move(info), "out_of_memory") {}
};

/// Wrong use of a command or of an environment variable: exit code 2 in the tools.
class UsageError : public Error {
 public:
  explicit UsageError(ErrorInfo info) : Error(std::move(info), "usage") {}
};

}  // namespace baregpu
