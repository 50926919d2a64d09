// Loads, stores and copies of memory that GPU engines share with the CPU side of a driver.
#pragma once
#include <cstddef>
#include <cstdint>

namespace baregpu::mock {

// Aligned words are single accesses with acquire and release order, as a driver's are: a doorbell or a signal orders what was
// written before it. Bulk accesses of the engines are not instrumented by ThreadSanitizer, since no C++ memory model applies
// to memory that a device reads and writes.
uint32_t load32(const void* p) noexcept;
uint64_t load64(const void* p) noexcept;
void store32(void* p, uint32_t v) noexcept;
void store64(void* p, uint64_t v) noexcept;
uint64_t exchange64(void* p, uint64_t v) noexcept;
/// Copies; what overlapping ranges end up with is not specified. Naturally aligned 4- and 8-byte copies are single accesses.
void copy_bytes(void* dst, const void* src, size_t n) noexcept;
/// Fills with a repeated byte.
void fill_bytes(void* dst, uint8_t value, size_t n) noexcept;

}  // namespace baregpu::mock
