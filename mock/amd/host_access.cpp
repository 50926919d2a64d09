#include "mock/amd/host_access.hpp"

#include <cstring>

#define BAREGPU_UNCHECKED __attribute__((no_sanitize("thread"), noinline))

namespace baregpu::mock {

uint32_t load32(const void* p) noexcept {
  return __atomic_load_n(static_cast<const uint32_t*>(p), __ATOMIC_ACQUIRE);
}
uint64_t load64(const void* p) noexcept {
  return __atomic_load_n(static_cast<const uint64_t*>(p), __ATOMIC_ACQUIRE);
}
void store32(void* p, uint32_t v) noexcept {
  __atomic_store_n(static_cast<uint32_t*>(p), v, __ATOMIC_RELEASE);
}
void store64(void* p, uint64_t v) noexcept {
  __atomic_store_n(static_cast<uint64_t*>(p), v, __ATOMIC_RELEASE);
}
uint64_t exchange64(void* p, uint64_t v) noexcept {
  return __atomic_exchange_n(static_cast<uint64_t*>(p), v, __ATOMIC_ACQ_REL);
}

namespace {
bool both_aligned(const void* a, const void* b, size_t n) {
  return ((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) & (n - 1)) == 0;
}
}  // namespace

BAREGPU_UNCHECKED void copy_bytes(void* dst, const void* src, size_t n) noexcept {
  if (n == 4 && both_aligned(dst, src, 4)) return store32(dst, load32(src));
  if (n == 8 && both_aligned(dst, src, 8)) return store64(dst, load64(src));
#if defined(__SANITIZE_THREAD__)
  // The library's memcpy is intercepted even when it is called from here: copy by hand.
  auto* d = static_cast<volatile unsigned char*>(dst);
  auto* s = static_cast<const volatile unsigned char*>(src);
  size_t i = 0;
  if (both_aligned(dst, src, 8))
    for (; i + 8 <= n; i += 8)
      *reinterpret_cast<volatile uint64_t*>(d + i) = *reinterpret_cast<const volatile uint64_t*>(s + i);
  for (; i < n; ++i) d[i] = s[i];
#else
  std::memmove(dst, src, n);  // a driver may ask an engine for an overlapping copy
#endif
}

BAREGPU_UNCHECKED void fill_bytes(void* dst, uint8_t value, size_t n) noexcept {
#if defined(__SANITIZE_THREAD__)
  auto* d = static_cast<volatile unsigned char*>(dst);
  for (size_t i = 0; i < n; ++i) d[i] = value;
#else
  std::memset(dst, value, n);
#endif
}

}  // namespace baregpu::mock
