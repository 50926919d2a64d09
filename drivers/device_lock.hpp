// Exclusive use of a GPU between processes.
#pragma once
#include "drivers/pci_functions.hpp"

namespace baregpu {

/// Holds the function's lock file by flock; the kernel releases it when the process ends, however it ends.
class DeviceLock {
 public:
  /// @throws TransportError("device_held") naming the holder, TransportError if the file cannot be opened.
  DeviceLock(Os& os, const PciFunction& f);

 private:
  FileDescriptor file_;
};

}  // namespace baregpu
