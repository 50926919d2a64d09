// The AQL dispatch packet that some kernels read through their dispatch pointer.
#pragma once
#include <cstring>
#include <span>

#include "hcq/kernel_args.hpp"
#include "hcq/program.hpp"

namespace baregpu::hcq::amd {

/// Fills an hsa_kernel_dispatch_packet (64 bytes; HSA runtime specification 1.2, section 2.8.2).
inline void write_dispatch_packet(std::span<std::byte> out, const Kernel& kernel, GpuVa kernargs, Dim3 groups,
                                  Dim3 block, uint32_t dynamic_lds) {
  struct Packet {
    uint16_t header, setup, workgroup[3], reserved0;
    uint32_t grid[3], private_size, group_size;
    uint64_t kernel_object, kernarg, reserved2, completion_signal;
  };
  static_assert(sizeof(Packet) == 64);
  constexpr uint16_t kKernelDispatch = 2;
  const uint16_t dims = groups.z * block.z > 1 ? 3 : groups.y * block.y > 1 ? 2 : 1;
  const Packet p{.header = kKernelDispatch,
                 .setup = dims,
                 .workgroup = {uint16_t(block.x), uint16_t(block.y), uint16_t(block.z)},
                 .reserved0 = 0,
                 .grid = {groups.x * block.x, groups.y * block.y, groups.z * block.z},
                 .private_size = kernel.info->private_segment_size,
                 .group_size = kernel.info->group_segment_size + dynamic_lds,
                 .kernel_object = kernel.descriptor.value,
                 .kernarg = kernargs.value,
                 .reserved2 = 0,
                 .completion_signal = 0};
  std::memcpy(out.data(), &p, sizeof p);
}

}  // namespace baregpu::hcq::amd
