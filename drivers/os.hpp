// The system calls that the PCI transports make, behind one interface so that tests can stand in for the kernel.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baregpu {

/// The kernel. Paths are absolute ("/sys/..."); calls return what the system call returns, with errno.
/// Thread: any.
class Os {
 public:
  virtual ~Os() = default;
  /// Where a path really is (tests: below a folder of their own).
  virtual std::string path(const std::string& absolute) const { return absolute; }
  virtual int open(const std::string& absolute, int flags, mode_t mode = 0);
  virtual int close(int fd);
  virtual ssize_t pread(int fd, void* out, size_t size, off_t offset);
  virtual ssize_t pwrite(int fd, const void* in, size_t size, off_t offset);
  virtual int ioctl(int fd, unsigned long request, void* argument);
  virtual void* mmap(size_t size, int protection, int flags, int fd, off_t offset);
  virtual int munmap(void* at, size_t size);
  /// Physical page numbers of `pages` host pages from `va`, as /proc/self/pagemap gives them (bit 63 present, 54:0
  /// PFN).
  virtual std::vector<uint64_t> pagemap(const void* va, size_t pages);
  /// Writes in one call, as sysfs attributes want it. @returns 0 or an errno value.
  virtual int write_text(const std::string& absolute, const std::string& text);

  // Conveniences over the calls above.
  bool exists(const std::string& absolute) const;
  /// Text of a small file without its trailing newline; nullopt if it cannot be read.
  std::optional<std::string> read_text(const std::string& absolute);
  /// Last component of a link's target, "" if there is no such link.
  std::string link_name(const std::string& absolute) const;
  std::vector<std::string> list(const std::string& absolute) const;
};

/// The real one.
Os& real_os();

/// Closes on destruction. Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  FileDescriptor(Os& os, int fd) : os_(&os), fd_(fd) {}
  FileDescriptor(FileDescriptor&& o) noexcept { *this = static_cast<FileDescriptor&&>(o); }
  FileDescriptor& operator=(FileDescriptor&& o) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  Os* os_ = nullptr;
  int fd_ = -1;
};

}  // namespace baregpu
