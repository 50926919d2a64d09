#include "drivers/mmio.hpp"

#include <cstring>

#include <fmt/format.h>
#include "drivers/base/error.hpp"

namespace baregpu {

void Mmio::fail(uint64_t offset, uint64_t width) const {
  throw Error(fmt::format("access of {} bytes at offset {:#x} of a device window of {:#x} bytes{}", width, offset,
                          size_, offset % (width < 8 ? width : 8) ? " (misaligned)" : ""));
}

// memcpy may use byte or overlapping accesses, which device memory need not accept: whole aligned words only.
void Mmio::read_block(uint64_t offset, std::span<std::byte> out) const {
  check_range(offset, out.size());
  if (!base_) {
    if (!out.empty()) backend_->read_block(start_ + offset, out);
    return;
  }
  size_t i = 0, n = out.size();
  for (; i < n && (offset + i) % 8; ++i) out[i] = base_[offset + i];
  for (; i + 8 <= n; i += 8) {
    uint64_t v = *reinterpret_cast<volatile uint64_t*>(base_ + offset + i);
    std::memcpy(&out[i], &v, 8);
  }
  for (; i < n; ++i) out[i] = base_[offset + i];
}

void Mmio::write_block(uint64_t offset, std::span<const std::byte> in) const {
  check_range(offset, in.size());
  if (!base_) {
    if (!in.empty()) backend_->write_block(start_ + offset, in);
    return;
  }
  size_t i = 0, n = in.size();
  for (; i < n && (offset + i) % 8; ++i) base_[offset + i] = in[i];
  for (; i + 8 <= n; i += 8) {
    uint64_t v;
    std::memcpy(&v, &in[i], 8);
    *reinterpret_cast<volatile uint64_t*>(base_ + offset + i) = v;
  }
  for (; i < n; ++i) base_[offset + i] = in[i];
}

void Mmio::fill_zero(uint64_t offset, uint64_t size) const {
  static constexpr std::byte zeros[65536] = {};
  check_range(offset, size);
  while (size) {
    uint64_t n = size < sizeof zeros ? size : sizeof zeros;
    write_block(offset, {zeros, size_t(n)});
    offset += n;
    size -= n;
  }
}

Mmio Mmio::sub(uint64_t offset, uint64_t size) const {
  check_range(offset, size);
  Mmio m = *this;
  if (base_) m.base_ += offset;
  m.start_ += offset;
  m.size_ = size;
  return m;
}

}  // namespace baregpu
