#include "drivers/os.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace baregpu {

int Os::open(const std::string& absolute, int flags, mode_t mode) {
  return ::open(path(absolute).c_str(), flags | O_CLOEXEC, mode);
}
int Os::close(int fd) { return ::close(fd); }
ssize_t Os::pread(int fd, void* out, size_t size, off_t offset) { return ::pread(fd, out, size, offset); }
ssize_t Os::pwrite(int fd, const void* in, size_t size, off_t offset) { return ::pwrite(fd, in, size, offset); }
int Os::ioctl(int fd, unsigned long request, void* argument) { return ::ioctl(fd, request, argument); }
void* Os::mmap(size_t size, int protection, int flags, int fd, off_t offset) {
  return ::mmap(nullptr, size, protection, flags, fd, offset);
}
int Os::munmap(void* at, size_t size) { return ::munmap(at, size); }

std::vector<uint64_t> Os::pagemap(const void* va, size_t pages) {
  std::vector<uint64_t> entries(pages, 0);
  FileDescriptor fd(*this, ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!fd) return entries;
  const off_t offset = off_t(reinterpret_cast<uintptr_t>(va) / 4096 * 8);
  if (::pread(fd.get(), entries.data(), pages * 8, offset) != ssize_t(pages * 8))
    std::fill(entries.begin(), entries.end(), 0);
  return entries;
}

bool Os::exists(const std::string& absolute) const { return ::access(path(absolute).c_str(), F_OK) == 0; }

std::optional<std::string> Os::read_text(const std::string& absolute) {
  FileDescriptor fd(*this, open(absolute, O_RDONLY));
  if (!fd) return std::nullopt;
  std::string out;
  char chunk[4096];
  while (out.size() < (1 << 20)) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    out.append(chunk, size_t(n));
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

int Os::write_text(const std::string& absolute, const std::string& text) {
  FileDescriptor fd(*this, open(absolute, O_WRONLY | O_TRUNC));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) == ssize_t(text.size()) ? 0 : errno ? errno : EIO;
}

std::string Os::link_name(const std::string& absolute) const {
  std::error_code ec;
  const auto target = std::filesystem::read_symlink(path(absolute), ec);
  return ec ? "" : target.filename().string();
}

std::vector<std::string> Os::list(const std::string& absolute) const {
  std::vector<std::string> out;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(path(absolute), ec))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

Os& real_os() {
  static Os os;
  return os;
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& o) noexcept {
  if (this != &o) {
    reset();
    os_ = o.os_;
    fd_ = std::exchange(o.fd_, -1);
  }
  return *this;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) os_->close(std::exchange(fd_, -1));
}

}  // namespace baregpu
