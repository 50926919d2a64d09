#include "am/vram.hpp"

#include <fmt/format.h>

#include <cstring>

#include "drivers/base/error.hpp"

namespace baregpu::am {
namespace {

// Fixed on every chip (Linux amdgpu_device.c, amdgpu_device_mm_access): index, data and high index, dwords.
constexpr uint32_t kMmIndex = 0x0, kMmData = 0x1, kMmIndexHi = 0x6;
constexpr uint32_t kMmIndexVram = 0x80000000;  // bit 31 selects VRAM, not a register

void select(RegisterIo& io, uint64_t address) {
  io.write(kMmIndexHi, uint32_t(address >> 31), "MM_INDEX_HI");
  io.write(kMmIndex, uint32_t(address & 0x7fffffff) | kMmIndexVram, "MM_INDEX");
}

}  // namespace

void Vram::check(VramOffset at, uint64_t size) const {
  if (at.value > size_ || size > size_ - at.value)
    throw Error(fmt::format("VRAM access of {} bytes at {:#x}, VRAM has {:#x}", size, at.value, size_));
}

void Vram::read(VramOffset at, std::span<std::byte> out) const {
  check(at, out.size());
  uint64_t direct = at.value < bar0_.size() ? std::min<uint64_t>(out.size(), bar0_.size() - at.value) : 0;
  if (direct) bar0_.read_block(at.value, out.first(size_t(direct)));
  for (uint64_t i = direct; i < out.size();) {
    uint64_t a = at.value + i, word = align_down(a, 4);
    select(io_, word);
    uint32_t v = io_.read(kMmData, "MM_DATA");
    uint64_t n = std::min<uint64_t>(4 - (a - word), out.size() - i);
    std::memcpy(&out[size_t(i)], reinterpret_cast<const std::byte*>(&v) + (a - word), size_t(n));
    i += n;
  }
}

void Vram::write(VramOffset at, std::span<const std::byte> in) const {
  check(at, in.size());
  uint64_t direct = at.value < bar0_.size() ? std::min<uint64_t>(in.size(), bar0_.size() - at.value) : 0;
  if (direct) bar0_.write_block(at.value, in.first(size_t(direct)));
  for (uint64_t i = direct; i < in.size();) {
    uint64_t a = at.value + i, word = align_down(a, 4);
    uint64_t n = std::min<uint64_t>(4 - (a - word), in.size() - i);
    select(io_, word);
    uint32_t v = n == 4 ? 0 : io_.read(kMmData, "MM_DATA");
    std::memcpy(reinterpret_cast<std::byte*>(&v) + (a - word), &in[size_t(i)], size_t(n));
    io_.write(kMmData, v, "MM_DATA");
    i += n;
  }
}

void Vram::zero(VramOffset at, uint64_t size) const {
  static constexpr std::byte zeros[4096] = {};
  for (uint64_t done = 0; done < size;) {
    uint64_t n = std::min<uint64_t>(size - done, sizeof zeros);
    write(at + done, {zeros, size_t(n)});
    done += n;
  }
}

uint32_t Vram::read32(VramOffset at) const {
  std::byte b[4];
  read(at, b);
  uint32_t v;
  std::memcpy(&v, b, 4);
  return v;
}

}  // namespace baregpu::am
