#include "hcq/kernel_args.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

namespace baregpu::hcq {
namespace {

[[noreturn]] void mismatch(const KernelInfo& k, const std::string& problem) {
  std::string list;
  for (const KernelArg& a : k.args)
    if (!is_hidden(a.kind))
      list += fmt::format("{}{}{}", list.empty() ? "" : ", ",
                          a.type_name.empty()
                              ? (a.kind == ArgKind::kGlobalBuffer ? "buffer" : fmt::format("{} bytes", a.size))
                              : a.type_name,
                          a.name.empty() ? "" : " " + a.name);
  throw Error({.device = {},
               .what = fmt::format("kernel {}: {}", k.name, problem),
               .source = fmt::format("it takes ({})", list),
               .hint = {}},
              "kernel_args");
}

template <class T>
void put(std::span<std::byte> out, const KernelInfo& k, const KernelArg& a, T value) {
  if (a.size > sizeof(T) * 2 || uint64_t{a.offset} + a.size > out.size())
    mismatch(k, fmt::format("hidden argument at {} is {} bytes", a.offset, a.size));
  uint64_t wide = value;
  std::memcpy(out.data() + a.offset, &wide, std::min<size_t>(a.size, 8));
}

void put_hidden(std::span<std::byte> out, const KernelInfo& k, const KernelArg& a, Dim3 groups, Dim3 block,
                uint32_t lds, unsigned dims) {
  switch (a.kind) {
    case ArgKind::kHiddenBlockCountX: return put<uint32_t>(out, k, a, groups.x);
    case ArgKind::kHiddenBlockCountY: return put<uint32_t>(out, k, a, groups.y);
    case ArgKind::kHiddenBlockCountZ: return put<uint32_t>(out, k, a, groups.z);
    case ArgKind::kHiddenGroupSizeX: return put<uint16_t>(out, k, a, uint16_t(block.x));
    case ArgKind::kHiddenGroupSizeY: return put<uint16_t>(out, k, a, uint16_t(block.y));
    case ArgKind::kHiddenGroupSizeZ: return put<uint16_t>(out, k, a, uint16_t(block.z));
    case ArgKind::kHiddenGridDims: return put<uint16_t>(out, k, a, uint16_t(dims));
    case ArgKind::kHiddenDynamicLdsSize: return put<uint32_t>(out, k, a, lds);
    case ArgKind::kHiddenPrivateBase:
      return put<uint32_t>(out, k, a, 2u << 16);  // SH_MEM_BASES, bits 63:32 of the aperture
    case ArgKind::kHiddenSharedBase: return put<uint32_t>(out, k, a, 1u << 16);
    // Whole workgroups only, no offsets, and no printf, hostcall, heap or device queue: zero is what "none" means.
    default: return;
  }
}

}  // namespace

uint32_t write_kernel_args(const KernelInfo& k, std::span<const Arg> args, Dim3 groups, Dim3 block,
                           std::span<std::byte> out) {
  if (out.size() < k.kernarg_size) throw Error("kernarg segment is smaller than the kernel's");
  std::memset(out.data(), 0, k.kernarg_size);
  const unsigned dims = groups.z * block.z > 1 ? 3 : groups.y * block.y > 1 ? 2 : 1;
  uint32_t lds = 0;
  size_t next = 0;
  for (const KernelArg& a : k.args) {
    if (is_hidden(a.kind)) continue;
    if (uint64_t{a.offset} + a.size > k.kernarg_size)
      mismatch(k, fmt::format("argument {} is outside the kernarg segment", next));
    if (next == args.size()) mismatch(k, fmt::format("{} arguments given, it takes more", args.size()));
    const Arg& v = args[next];
    switch (a.kind) {
      case ArgKind::kGlobalBuffer:
        if (!v.is_pointer()) mismatch(k, fmt::format("argument {} must be a buffer", next));
        break;
      case ArgKind::kDynamicSharedPointer: {
        uint32_t at = uint32_t(align_up(k.group_segment_size + lds, 16));
        std::memcpy(out.data() + a.offset, &at, std::min<size_t>(a.size, 4));
        lds = at - k.group_segment_size + v.local_bytes();
        ++next;
        continue;
      }
      case ArgKind::kByValue: break;
      default:
        throw UnsupportedError(
            {.device = {},
             .what = fmt::format("kernel {}: argument {} is an image, sampler, pipe or queue", k.name, next),
             .source = {},
             .hint = {}});
    }
    if (v.bytes().size() != a.size)
      mismatch(k, fmt::format("argument {} has {} bytes, the kernel's has {}", next, v.bytes().size(), a.size));
    std::memcpy(out.data() + a.offset, v.bytes().data(), a.size);
    ++next;
  }
  if (next != args.size()) mismatch(k, fmt::format("{} arguments given, it takes {}", args.size(), next));
  for (const KernelArg& a : k.args)
    if (is_hidden(a.kind)) put_hidden(out, k, a, groups, block, lds, dims);
  return lds;
}

KernelArgsRing::KernelArgsRing(Buffer memory, const Timeline& timeline)
    : memory_(std::move(memory)), timeline_(timeline) {
  if (!memory_.cpu()) throw Error("the kernel-argument ring must be reachable by the CPU");
}

void KernelArgsRing::too_large(uint64_t size) const {
  throw Error(fmt::format("kernel arguments of {} bytes do not fit the ring of {} bytes", size, memory_.capacity()));
}

}  // namespace baregpu::hcq
