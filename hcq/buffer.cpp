#include "hcq/buffer.hpp"

#include "drivers/base/error.hpp"
#include "drivers/base/log.hpp"

namespace baregpu::hcq {
namespace {

// Size classes: 4 KiB steps up to 64 KiB, then eighths of a power of two: at most 12 % waste and few classes.
uint64_t size_class(uint64_t size) {
  if (size <= 64 * KiB) return align_up(size, 4096);
  return align_up(size, uint64_t{1} << (log2_floor(size) - 3));
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  if (this == &o) return *this;
  if (owner_) owner_->release(*this);
  owner_ = std::exchange(o.owner_, nullptr);
  memory_ = o.memory_;
  size_ = o.size_;
  cpu_access_ = o.cpu_access_;
  return *this;
}

Buffer::~Buffer() {
  if (owner_) owner_->release(*this);
}

Buffer Allocator::allocate(uint64_t size, BufferKind kind, bool cpu_access, const std::string& label) {
  if (size == 0) throw Error("a buffer needs at least 1 byte");
  const uint64_t rounded = size_class(size);
  Buffer b;
  b.size_ = size;
  b.cpu_access_ = cpu_access;
  auto& list = cache_[{rounded, kind, cpu_access}];
  for (auto it = list.begin(); it != list.end(); ++it)
    if (timeline_.reached(it->last_use)) {
      b.memory_ = it->memory;
      list.erase(it);
      cached_ -= rounded;
      break;
    }
  if (!b.memory_.size) {
    try {
      b.memory_ = backend_.allocate(rounded, kind, cpu_access, label);
    } catch (const OutOfMemoryError&) {
      if (trim() == 0) throw;
      b.memory_ = backend_.allocate(rounded, kind, cpu_access, label);
    }
    b.memory_.size = rounded;
  }
  b.owner_ = this;
  live_ += rounded;
  return b;
}

void Allocator::release(Buffer& b) noexcept {
  live_ -= b.memory_.size;
  try {
    cache_[{b.memory_.size, b.memory_.kind, b.cpu_access_}].push_back({b.memory_, timeline_.last()});
    cached_ += b.memory_.size;
  } catch (const std::exception&) {  // no host memory for the cache entry
    backend_.free(b.memory_);
  }
  b.owner_ = nullptr;
}

uint64_t Allocator::trim() {
  uint64_t freed = 0;
  for (auto& [key, list] : cache_)
    std::erase_if(list, [&](const Cached& c) {
      if (!timeline_.reached(c.last_use)) return false;
      backend_.free(c.memory);
      freed += c.memory.size;
      return true;
    });
  cached_ -= freed;
  return freed;
}

Allocator::~Allocator() {
  for (auto& [key, list] : cache_)
    for (Cached& c : list) backend_.free(c.memory);
  if (live_) log::error("{} bytes of buffers outlive their device", live_);
}

}  // namespace baregpu::hcq
