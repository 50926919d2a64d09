// Programs and kernels on a device (public).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/program_image.hpp"
#include "hcq/buffer.hpp"

namespace baregpu::hcq {

/// A kernel that is in device memory and can be launched.
struct Kernel {
  const KernelInfo* info = nullptr;
  GpuVa code{};  ///< entry point
  GpuVa descriptor{};
  const std::string* label = nullptr;  ///< name for messages; lives as long as the device
};

/// A code object in device memory. Must not outlive its device.
class Program {
 public:
  Program(ProgramImage image, Buffer memory, std::vector<Kernel> kernels)
      : image_(std::make_unique<ProgramImage>(std::move(image))),
        memory_(std::move(memory)),
        kernels_(std::move(kernels)) {
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i].info = &image_->kernels[i];
  }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const ProgramImage& image() const { return *image_; }
  /// @throws Error listing the kernels that there are.
  const Kernel& kernel(const std::string& name) const;

 private:
  std::unique_ptr<ProgramImage> image_;
  Buffer memory_;
  std::vector<Kernel> kernels_;
};

}  // namespace baregpu::hcq
