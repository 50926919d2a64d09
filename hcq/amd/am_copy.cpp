// Copies of AmHcqDevice.
#include <fmt/format.h>

#include "hcq/amd/am_device.hpp"

namespace baregpu::hcq::amd {
namespace {

void check_range(const char* what, const Buffer& b, uint64_t offset, uint64_t size) {
  if (!b) throw Error(fmt::format("{}: not a buffer", what));
  if (offset > b.size() || size > b.size() - offset)
    throw Error(
        {.device = {},
         .what = fmt::format("{}: {} bytes at offset {} do not fit a buffer of {} bytes", what, size, offset, b.size()),
         .source = {},
         .hint = {}},
        "range");
}

[[noreturn]] void no_way(const std::string& device) {
  throw UnsupportedError({.device = device,
                          .what = "this memory is out of the CPU's reach and the copy queue is off",
                          .source = "AMD_DISABLE_SDMA=1",
                          .hint = "unset it, or enable resizable BAR in the firmware set-up"});
}

}  // namespace

TimelinePoint AmHcqDevice::submit_copy(GpuVa dst, GpuVa src, uint64_t size) {
  begin(*copy_list_, Side::kCopy);
  const auto timer = time_begin(*copy_list_);
  copy_list_->copy(dst, src, size);
  time_end(*copy_list_, timer, copy_label_);
  return end(*copy_list_, *copy_, Side::kCopy, copy_label_);
}

TimelinePoint AmHcqDevice::copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                uint64_t size) {
  check_range("copy destination", dst, dst_offset, size);
  check_range("copy source", src, src_offset, size);
  if (size == 0) return timeline_->last();
  require_usable();
  const GpuVa to = dst.va() + dst_offset, from = src.va() + src_offset;
  if (to < from + size && from < to + size)
    throw Error({.device = {}, .what = "copy ranges overlap", .source = {}, .hint = {}}, "range");
  if (copy_) return submit_copy(to, from, size);
  if (!dst.cpu() || !src.cpu()) no_way(properties_.name);
  synchronize();
  std::vector<std::byte> chunk(std::min<uint64_t>(size, 1 * MiB));
  for (uint64_t at = 0; at < size; at += chunk.size()) {
    const std::span part(chunk.data(), std::min<uint64_t>(chunk.size(), size - at));
    src.cpu().read_block(src_offset + at, part);
    dst.cpu().write_block(dst_offset + at, part);
  }
  full_barrier();
  gpu_->flush_hdp();
  return timeline_->last();
}

void AmHcqDevice::copy_in(const Buffer& dst, uint64_t offset, std::span<const std::byte> bytes) {
  check_range("copy to the device", dst, offset, bytes.size());
  require_usable();
  if (!copy_) {
    if (!dst.cpu()) no_way(properties_.name);
    synchronize();  // earlier kernels may still read the old contents
    dst.cpu().write_block(offset, bytes);
    full_barrier();
    gpu_->flush_hdp();
    return;
  }
  while (!bytes.empty()) {
    const unsigned i = next_staging_++ % staging_.size();
    if (staging_use_[i].count) wait(staging_use_[i]);
    const auto part = bytes.first(std::min<size_t>(bytes.size(), staging_[i].size()));
    staging_[i].cpu().write_block(0, part);
    staging_use_[i] = submit_copy(dst.va() + offset, staging_[i].va(), part.size());
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void AmHcqDevice::copy_out(std::span<std::byte> bytes, const Buffer& src, uint64_t offset) {
  check_range("copy from the device", src, offset, bytes.size());
  require_usable();
  if (!copy_) {
    if (!src.cpu()) no_way(properties_.name);
    synchronize();
    src.cpu().read_block(offset, bytes);
    return;
  }
  // Two chunks in flight: one is read by the CPU while the engine fills the other.
  struct Part {
    uint64_t at, size;
    unsigned staging;
  };
  std::deque<Part> queued;
  uint64_t at = 0;
  auto drain = [&] {
    const Part p = queued.front();
    queued.pop_front();
    wait(staging_use_[p.staging]);
    staging_[p.staging].cpu().read_block(0, bytes.subspan(p.at, p.size));
  };
  while (at < bytes.size()) {
    if (queued.size() == staging_.size()) drain();
    const unsigned i = next_staging_++ % staging_.size();
    if (staging_use_[i].count) wait(staging_use_[i]);
    const uint64_t n = std::min<uint64_t>(bytes.size() - at, staging_[i].size());
    staging_use_[i] = submit_copy(staging_[i].va(), src.va() + offset + at, n);
    queued.push_back({at, n, i});
    at += n;
  }
  while (!queued.empty()) drain();
}

}  // namespace baregpu::hcq::amd
