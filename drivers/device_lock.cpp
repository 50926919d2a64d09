#include "drivers/device_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "drivers/base/error.hpp"

namespace baregpu {

DeviceLock::DeviceLock(Os& os, const PciFunction& f) {
  const std::string path = lock_path(f);
  // The folder is everyone's: a link that leads elsewhere is not followed. An existing file is opened without O_CREAT:
  // with fs.protected_regular the kernel refuses O_CREAT on other users' files in sticky folders, to root as well.
  file_ = FileDescriptor(os, os.open(path, O_RDWR | O_NOFOLLOW));
  if (!file_ && errno == ENOENT) {
    file_ = FileDescriptor(os, os.open(path, O_RDWR | O_CREAT | O_EXCL, 0666));
    if (!file_ && errno == EEXIST) file_ = FileDescriptor(os, os.open(path, O_RDWR | O_NOFOLLOW));
    if (file_) ::fchmod(file_.get(), 0666);  // the umask is not asked: other users must be able to take the lock too
  }
  if (!file_)
    throw TransportError({.device = f.bdf,
                          .what = "cannot open the lock file",
                          .source = path + ": " + std::strerror(errno),
                          .hint = "remove the file, or give write permission"});
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
  const std::string holder = lock_holder(os, f);
  throw TransportError({.device = f.bdf,
                        .what = "the GPU is in use by " + (holder.empty() ? "another process" : holder),
                        .source = path,
                        .hint = "end that process first"},
                       "device_held");
}

}  // namespace baregpu
