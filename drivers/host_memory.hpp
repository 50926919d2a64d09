// Host memory for a device that uses physical addresses.
#pragma once
#include "drivers/os.hpp"
#include "drivers/pci_device.hpp"

namespace baregpu {

/// Anonymous, populated, locked memory; huge pages where a contiguous run of more than one page is asked for.
/// Unmapped in the destructor.
class PinnedMemory final : public DmaBuffer::Owner {
 public:
  /// `size` is a multiple of 4 KiB. @throws OutOfMemoryError that says what to reserve, Error for a contiguous run over
  /// 2 MiB.
  PinnedMemory(Os& os, uint64_t size, bool contiguous);
  ~PinnedMemory() override;
  PinnedMemory(const PinnedMemory&) = delete;
  std::byte* data() const { return data_; }
  uint64_t mapped_size() const { return mapped_; }
  /// Physical address of each 4 KiB page of the first `size` bytes. @throws TransportError without the permission to
  /// see them, or if one needs more than `bits` bits.
  std::vector<BusAddress> physical_pages(uint64_t size, unsigned bits, const std::string& device) const;

 private:
  Os& os_;
  std::byte* data_ = nullptr;
  uint64_t mapped_ = 0;
};

}  // namespace baregpu
