#include "drivers/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "drivers/env.hpp"

namespace baregpu::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace: return spdlog::level::trace;
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::level::level_enum level_of(int verbosity) {
  switch (verbosity) {
    case 0: return spdlog::level::warn;
    case 1: return spdlog::level::info;
    case 2: return spdlog::level::debug;
    default: return verbosity < 0 ? spdlog::level::warn : spdlog::level::trace;
  }
}

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger l("baregpu", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    l.set_pattern("%^%L%$ %v");
    l.set_level(level_of(env().debug));
    return l;
  }();
  return instance;
}

}  // namespace

bool enabled(Level level) noexcept { return logger().should_log(to_spdlog(level)); }

void set_verbosity(int verbosity) noexcept { logger().set_level(level_of(verbosity)); }

void write(Level level, std::string_view text) noexcept {
  try {
    logger().log(to_spdlog(level), text);
  } catch (const std::exception&) {
    // A log line that cannot be written is not worth an error of its own.
  }
}

}  // namespace baregpu::log
