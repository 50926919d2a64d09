#include "drivers/base/error.hpp"

namespace baregpu {
namespace {

std::string text_of(const ErrorInfo& i) {
  std::string s;
  if (!i.device.empty()) s += i.device + ": ";
  s += i.what;
  if (!i.source.empty()) s += " (" + i.source + ")";
  if (!i.hint.empty()) s += "; " + i.hint;
  return s;
}

}  // namespace

Error::Error(ErrorInfo info, std::string_view code)
    : std::runtime_error(text_of(info)), info_(std::move(info)), code_(code) {}

}  // namespace baregpu
