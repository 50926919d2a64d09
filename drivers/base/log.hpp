// Diagnostics go to stderr through one logger; the level comes from DEBUG (0 warnings, 1 info, 2 debug, 3 trace).
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace baregpu::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError };

/// Whether a message of this level would be written; cheap, so that callers can skip the formatting.
bool enabled(Level level) noexcept;
/// What DEBUG sets, changed at run time: 0 warnings, 1 info, 2 debug, 3 trace. Call before threads are started.
void set_verbosity(int verbosity) noexcept;
/// Writes one line. Never throws. Thread: any.
void write(Level level, std::string_view text) noexcept;

template <class... Args>
void message(Level level, fmt::format_string<Args...> f, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(f, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> f, Args&&... a) {
  message(Level::kDebug, f, std::forward<Args>(a)...);
}
template <class... Args>
void info(fmt::format_string<Args...> f, Args&&... a) {
  message(Level::kInfo, f, std::forward<Args>(a)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> f, Args&&... a) {
  message(Level::kWarn, f, std::forward<Args>(a)...);
}
template <class... Args>
void error(fmt::format_string<Args...> f, Args&&... a) {
  message(Level::kError, f, std::forward<Args>(a)...);
}

}  // namespace baregpu::log
