// A loaded code object as plain data: what a device needs to place and launch kernels (public).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baregpu {

/// What a kernel argument is; names follow the code-object metadata (.value_kind).
enum class ArgKind : uint8_t {
  kByValue,
  kGlobalBuffer,
  kDynamicSharedPointer,
  kSampler,
  kImage,
  kPipe,
  kQueue,
  kHiddenBlockCountX,
  kHiddenBlockCountY,
  kHiddenBlockCountZ,
  kHiddenGroupSizeX,
  kHiddenGroupSizeY,
  kHiddenGroupSizeZ,
  kHiddenRemainderX,
  kHiddenRemainderY,
  kHiddenRemainderZ,
  kHiddenGlobalOffsetX,
  kHiddenGlobalOffsetY,
  kHiddenGlobalOffsetZ,
  kHiddenGridDims,
  kHiddenPrintfBuffer,
  kHiddenHostcallBuffer,
  kHiddenMultigridSyncArg,
  kHiddenHeapV1,
  kHiddenDefaultQueue,
  kHiddenCompletionAction,
  kHiddenDynamicLdsSize,
  kHiddenPrivateBase,
  kHiddenSharedBase,
  kHiddenQueuePtr,
  kHiddenNone,
  kUnknown,
};
constexpr bool is_hidden(ArgKind k) { return k >= ArgKind::kHiddenBlockCountX && k <= ArgKind::kHiddenNone; }

struct KernelArg {
  std::string name, type_name;  ///< may be empty: not every compiler writes them
  ArgKind kind = ArgKind::kUnknown;
  uint32_t offset = 0, size = 0;  ///< bytes in the kernarg segment
  bool is_const = false, is_restrict = false, write_only = false, read_only = false;
};

/// One kernel: its descriptor's fields (AMDGPU kernel descriptor v3+, 64 bytes) and its metadata.
struct KernelInfo {
  std::string name;
  uint64_t descriptor_offset = 0;  ///< in ProgramImage::bytes, 64-byte aligned
  uint64_t code_offset = 0;        ///< entry point in bytes, 256-byte aligned
  uint32_t group_segment_size = 0, private_segment_size = 0, kernarg_size = 0, kernarg_align = 8;
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  ///< kernel_code_properties
  uint16_t kernarg_preload = 0;
  bool wave32 = false, uses_dynamic_stack = false;
  uint32_t max_flat_workgroup_size = 1024;
  std::array<uint32_t, 3> reqd_workgroup_size{};  ///< 0 = none
  uint32_t sgpr_count = 0, vgpr_count = 0, sgpr_spills = 0, vgpr_spills = 0;
  std::vector<KernelArg> args;  ///< in offset order, hidden ones last
};

/// A 64-bit word to fix when the image gets its address: *(u64*)(bytes + offset) = base + addend.
struct ImageReloc {
  uint64_t offset;
  int64_t addend;
};

/// Bytes to place at any 4 KiB-aligned GPU address, after applying `relocs`.
struct ProgramImage {
  std::string arch;              ///< "gfx1100", from e_flags
  unsigned abi_version = 0;      ///< 2 = code object v4, 3 = v5, 4 = v6
  std::vector<std::byte> bytes;  ///< size is a multiple of 4 KiB
  std::vector<ImageReloc> relocs;
  std::vector<KernelInfo> kernels;

  const KernelInfo* find(std::string_view name) const {
    for (const KernelInfo& k : kernels)
      if (k.name == name) return &k;
    return nullptr;
  }
};

}  // namespace baregpu
