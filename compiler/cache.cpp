#include "compiler/cache.hpp"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/SHA256.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "drivers/base/log.hpp"

namespace baregpu::compiler {
namespace {

constexpr std::string_view kMagic = "baregpu-kernel-1";  // an entry: magic, SHA-256 of the rest, the rest
constexpr size_t kDigest = 32;

std::array<uint8_t, kDigest> digest(std::span<const std::byte> bytes) {
  return llvm::SHA256::hash(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

}  // namespace

std::string content_key(std::initializer_list<std::string_view> parts) {
  llvm::SHA256 sha;
  for (const std::string_view p : parts) {
    const uint64_t size = p.size();
    sha.update(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(&size), sizeof size));
    sha.update(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(p.data()), p.size()));
  }
  std::string out;
  for (const uint8_t b : sha.final()) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

std::optional<std::vector<std::byte>> cache_load(const std::string& folder, const std::string& key) noexcept {
  try {
    const std::filesystem::path path = std::filesystem::path(folder) / key;
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    const std::string file((std::istreambuf_iterator<char>(in)), {});
    if (file.size() >= kMagic.size() + kDigest && file.starts_with(kMagic)) {
      const auto* start = reinterpret_cast<const std::byte*>(file.data());
      const std::span<const std::byte> body(start + kMagic.size() + kDigest, file.size() - kMagic.size() - kDigest);
      const auto sum = digest(body);
      if (std::memcmp(sum.data(), start + kMagic.size(), kDigest) == 0)
        return std::vector<std::byte>(body.begin(), body.end());
    }
    log::warn("kernel cache: {} is damaged and will be made anew", path.string());
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  } catch (const std::exception& e) {
    log::warn("kernel cache: {}", e.what());
  }
  return std::nullopt;
}

void cache_store(const std::string& folder, const std::string& key, std::span<const std::byte> bytes) noexcept {
  try {
    std::filesystem::create_directories(folder);
    const std::string path = folder + "/" + key;
    std::string temporary = path + ".XXXXXX";
    const int fd = ::mkstemp(temporary.data());
    if (fd < 0) {
      log::info("kernel cache: {} cannot be written: {}", folder, std::strerror(errno));
      return;
    }
    const auto sum = digest(bytes);
    std::string file(kMagic);
    file.append(reinterpret_cast<const char*>(sum.data()), sum.size());
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool ok = ::write(fd, file.data(), file.size()) == ssize_t(file.size());
    if (::close(fd) != 0 || !ok || ::rename(temporary.c_str(), path.c_str()) != 0) {
      log::info("kernel cache: {} cannot be written: {}", path, std::strerror(errno));
      ::unlink(temporary.c_str());
    }
  } catch (const std::exception& e) {
    log::info("kernel cache: {}", e.what());
  }
}

}  // namespace baregpu::compiler
