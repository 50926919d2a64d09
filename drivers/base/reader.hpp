// Bounds-checked little-endian reader for bytes from outside (public).
#pragma once
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "drivers/base/error.hpp"

namespace baregpu {

/// Reads plain structures at offsets of a byte span. Every access is checked without overflow; a violation throws
/// ParseError that names `what()` and the offset. Thread: any (immutable).
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  uint64_t size() const { return bytes_.size(); }
  const std::string& what() const { return what_; }

  /// The value of type T at byte `offset` (no alignment needed).
  template <class T>
  T at(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T v;
    std::memcpy(&v, range(offset, sizeof(T)).data(), sizeof(T));
    return v;
  }
  /// `size` bytes from `offset`.
  std::span<const std::byte> range(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) fail_range(offset, size);
    return bytes_.subspan(size_t(offset), size_t(size));
  }
  /// A reader over a part; its messages carry `what` in front.
  ByteReader sub(uint64_t offset, uint64_t size, std::string_view what) const {
    return {range(offset, size), what_ + ": " + std::string(what)};
  }
  /// The zero-terminated string at `offset`; an unterminated one is an error.
  std::string_view c_string(uint64_t offset) const {
    auto rest = range(offset, bytes_.size() >= offset ? bytes_.size() - offset : 1);
    const void* end = std::memchr(rest.data(), 0, rest.size());
    if (!end) fail("unterminated string at offset " + std::to_string(offset));
    return {reinterpret_cast<const char*>(rest.data()), size_t(static_cast<const std::byte*>(end) - rest.data())};
  }
  /// Throws ParseError: "<what>: <problem>".
  [[noreturn]] void fail(const std::string& problem) const {
    throw ParseError({.device = {}, .what = what_ + ": " + problem, .source = {}, .hint = {}});
  }

 private:
  [[noreturn]] void fail_range(uint64_t offset, uint64_t size) const {
    fail("needs " + std::to_string(size) + " bytes at offset " + std::to_string(offset) + ", has " +
         std::to_string(bytes_.size()));
  }
  std::span<const std::byte> bytes_;
  std::string what_;
};

}  // namespace baregpu
