#include "hcq/program.hpp"

#include "drivers/base/error.hpp"

namespace baregpu::hcq {

const Kernel& Program::kernel(const std::string& name) const {
  std::string names;
  for (const Kernel& k : kernels_) {
    if (k.info->name == name) return k;
    names += (names.empty() ? "" : ", ") + k.info->name;
  }
  throw Error({.device = {},
               .what = "there is no kernel '" + name + "' in the program",
               .source = {},
               .hint = names.empty() ? "the program has no kernels" : "it has: " + names},
              "kernel_missing");
}

}  // namespace baregpu::hcq
