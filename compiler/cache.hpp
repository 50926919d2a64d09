// Compiled kernels on disk, by a hash of everything that went into them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baregpu::compiler {

/// SHA-256 of `parts`, each with its length, as 64 hexadecimal digits.
std::string content_key(std::initializer_list<std::string_view> parts);

/// The stored bytes, or nullopt: no entry, or one whose checksum is wrong (it is removed). Never throws.
std::optional<std::vector<std::byte>> cache_load(const std::string& folder, const std::string& key) noexcept;
/// Stores under a temporary name and renames. A folder that cannot be written is logged, not an error.
void cache_store(const std::string& folder, const std::string& key, std::span<const std::byte> bytes) noexcept;

}  // namespace baregpu::compiler
