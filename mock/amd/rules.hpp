// The strictness list: what a driver can do wrong, and the notes about it.
#pragma once
#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mock/mock.hpp"

namespace baregpu::mock {

struct Rule {
  const char* name;
  const char* why;  ///< what hardware does to a driver that breaks it
};
std::span<const Rule> amd_rules();

/// Notes of broken rules. Thread: any.
class Rules {
 public:
  /// Notes a broken rule and returns true: act as hardware does. False if the rule is switched off: act as if kept.
  bool broken(std::string_view rule, std::string detail);
  /// Keeps one register access for the details of later notes (the last 16). Cheap: text is made when a note is.
  void remember_access(char kind, uint32_t dword, uint32_t value);
  /// The same for something that is no register access.
  void remember_event(std::string text);
  /// How a note names a register.
  void set_names(std::function<std::string(uint32_t)> names) { names_ = std::move(names); }
  void set_lenient(const std::string& rule, bool lenient);  ///< @throws UsageError for an unknown name
  bool lenient(std::string_view rule) const;
  std::vector<Violation> list() const;
  void clear();

 private:
  static constexpr size_t kMaxNotes = 1000;  // a polling driver must not fill the memory with equal notes
  mutable std::mutex mutex_;
  std::vector<Violation> notes_;
  std::set<std::string, std::less<>> lenient_;
  struct Access {
    char kind = 0;  ///< 'R', 'W', 'E' for an event
    uint32_t dword = 0, value = 0;
    std::string event;
  };
  void remember(Access access);
  std::array<Access, 16> recent_;
  std::function<std::string(uint32_t)> names_;
  size_t recent_next_ = 0;
};

}  // namespace baregpu::mock
