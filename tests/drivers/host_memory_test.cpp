// Pinned memory and page frame numbers on the real kernel.
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "drivers/base/error.hpp"
#include "drivers/host_memory.hpp"

using namespace baregpu;

namespace {

constexpr uint64_t kPresent = uint64_t{1} << 63,
                   kPfn = (uint64_t{1} << 55) - 1;  // Documentation/admin-guide/mm/pagemap.rst

}  // namespace

TEST_CASE("pagemap entries are those of the pages asked for", "[drivers][memory]") {
  const int fd = ::memfd_create("pages", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::ftruncate(fd, 4 * 4096) == 0);
  // Two windows on the same pages, the second from page 1 on: the kernel must name the same frames, shifted by one.
  auto* a = static_cast<char*>(::mmap(nullptr, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0));
  auto* b = static_cast<char*>(::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 4096));
  REQUIRE(a != MAP_FAILED);
  REQUIRE(b != MAP_FAILED);
  for (int i = 0; i < 4; ++i) a[i * 4096] = 1;
  for (int i = 0; i < 3; ++i) b[i * 4096] = 1;
  const auto of_a = real_os().pagemap(a, 4), of_b = real_os().pagemap(b, 3);
  REQUIRE(of_a.size() == 4);
  REQUIRE(of_b.size() == 3);
  for (int i = 0; i < 4; ++i) CHECK((of_a[size_t(i)] & kPresent) != 0);
  for (int i = 0; i < 3; ++i) CHECK((of_b[size_t(i)] & kPfn) == (of_a[size_t(i) + 1] & kPfn));
  if (of_a[0] & kPfn) CHECK((of_a[0] & kPfn) != (of_a[1] & kPfn));  // 0 without CAP_SYS_ADMIN
  void* untouched = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK((real_os().pagemap(untouched, 1)[0] & kPresent) == 0);
  ::munmap(untouched, 4096);
  ::munmap(a, 4 * 4096);
  ::munmap(b, 3 * 4096);
  ::close(fd);
}

TEST_CASE("pinned memory is zeroed and stays where it is, or says what is missing", "[drivers][memory]") {
  PinnedMemory m(real_os(), 16 * 4096, false);
  for (size_t i = 0; i < m.mapped_size(); ++i) REQUIRE(m.data()[i] == std::byte{0});
  const bool sees = (real_os().pagemap(m.data(), 1)[0] & kPfn) != 0;
  if (sees) {
    const auto pages = m.physical_pages(16 * 4096, 52, "test");
    REQUIRE(pages.size() == 16);
    for (const BusAddress p : pages) CHECK(p.value % 4096 == 0);
    CHECK_THROWS_AS(m.physical_pages(16 * 4096, 12, "test"), TransportError);
  } else {
    CHECK_THROWS_AS(m.physical_pages(16 * 4096, 52, "test"), TransportError);
  }
  CHECK_THROWS_AS(PinnedMemory(real_os(), 4 * MiB, true), Error);
}
