#include "drivers/host_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "drivers/base/error.hpp"

namespace baregpu {
namespace {

constexpr uint64_t kPage = 4096, kHuge = 2 * MiB;
constexpr uint64_t kPfnMask = (uint64_t{1} << 55) - 1,
                   kPresent = uint64_t{1} << 63;  // Documentation/admin-guide/mm/pagemap.rst

}  // namespace

PinnedMemory::PinnedMemory(Os& os, uint64_t size, bool contiguous) : os_(os) {
  int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED;
  mapped_ = size;
  const bool huge = contiguous && size > kPage;
  if (huge) {
    if (size > kHuge)
      throw Error(fmt::format("{} contiguous bytes of host memory: at most {} can be had", size, kHuge));
    flags |= MAP_HUGETLB | 21 << MAP_HUGE_SHIFT;  // 2 MiB pages are contiguous and are not migrated
    mapped_ = kHuge;
  }
  void* at = os_.mmap(mapped_, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (at == MAP_FAILED) {
    const std::string reason = std::strerror(errno);
    throw OutOfMemoryError({.device = {},
                            .what = fmt::format("cannot pin {} bytes of host memory", mapped_),
                            .source = reason,
                            .hint = huge ? "reserve huge pages: `echo 64 | sudo tee /proc/sys/vm/nr_hugepages`"
                                         : "raise the limit of locked memory (ulimit -l), or run as root"});
  }
  data_ = static_cast<std::byte*>(at);
  ::madvise(at, mapped_,
            MADV_DONTFORK);  // copy-on-write after a fork would move the parent's page away from the device
  if (!huge) ::madvise(at, mapped_, MADV_NOHUGEPAGE);
  // Touched by writing: a page only read so far may be the shared zero page.
  for (uint64_t i = 0; i < mapped_; i += kPage) *reinterpret_cast<volatile std::byte*>(data_ + i) = std::byte{0};
}

PinnedMemory::~PinnedMemory() {
  if (data_) os_.munmap(data_, mapped_);
}

std::vector<BusAddress> PinnedMemory::physical_pages(uint64_t size, unsigned bits, const std::string& device) const {
  std::vector<BusAddress> out;
  for (const uint64_t entry : os_.pagemap(data_, size / kPage)) {
    const uint64_t address = (entry & kPfnMask) * kPage;
    if (!(entry & kPresent) || address == 0)
      throw TransportError({.device = device,
                            .what = "cannot see the physical addresses of host memory",
                            .source = fmt::format("/proc/self/pagemap entry {:#x}", entry),
                            .hint = "run as root or with CAP_SYS_ADMIN, or use DEV=VFIO+..."});
    if (address >> bits)
      throw TransportError(
          {.device = device,
           .what = fmt::format("host memory at {:#x} is beyond the device's {} address bits", address, bits),
           .source = {},
           .hint = "use DEV=VFIO+... with an IOMMU"});
    out.push_back(BusAddress(address));
  }
  return out;
}

}  // namespace baregpu
