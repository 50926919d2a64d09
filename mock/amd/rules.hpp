// The strictness list: what a driver can do wrong, and the notes about it.
#pragma once
#include <array>
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
  /// Text of one register access, kept for the details of later notes (the last 16).
  void remember_access(std::string text);
  void set_lenient(const std::string& rule, bool lenient);  ///< @throws UsageError for an unknown name
  bool lenient(std::string_view rule) const;
  std::vector<Violation> list() const;
  void clear();

 private:
  static constexpr size_t kMaxNotes = 1000;  // a polling driver must not fill the memory with equal notes
  mutable std::mutex mutex_;
  std::vector<Violation> notes_;
  std::set<std::string, std::less<>> lenient_;
  std::array<std::string, 16> recent_;
  size_t recent_next_ = 0;
};

}  // namespace baregpu::mock
