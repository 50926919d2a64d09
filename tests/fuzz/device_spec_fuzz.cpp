// DEV strings: refused with UsageError, or parsed to something whose text parses to the same.
#include "drivers/base/error.hpp"
#include "drivers/device_spec.hpp"
#include "tests/fuzz/corpus.hpp"

namespace baregpu::fuzz {

Seeds seeds() {
  Seeds out;
  for (const char* text : {"CPU",
                           "AMD",
                           "AMD:1",
                           "AMD:255",
                           "PCI+AMD",
                           "VFIO+AMD:0",
                           "MOCKPCI+AMD::gfx1201",
                           "MOCK+NV:PTX",
                           "NV:LLVM:sm_89",
                           "AMD:1:LLVM:gfx90a",
                           "REMOTE+AMD",
                           "USB+AMD",
                           "MOCKKFD+AMD",
                           "MOCKUSB+AMD",
                           "MOCKNVK+NV",
                           "KFD+AMD",
                           "NVK+NV:3:PTX:sm_90a",
                           "AMD::",
                           "+",
                           ":::"})
    out.emplace_back("spec" + std::to_string(out.size()), to_bytes(text));
  return out;
}

}  // namespace baregpu::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baregpu;
  DeviceSpec spec;
  try {
    spec = parse_device_spec({reinterpret_cast<const char*>(data), size});
  } catch (const UsageError&) {
    return 0;
  }
  const DeviceSpec again = parse_device_spec(spec.str());
  fuzz::require(again.iface == spec.iface && again.kind == spec.kind && again.renderer == spec.renderer &&
                    again.arch == spec.arch && again.index == spec.index,
                "parse(str()) gives the same value");
  return 0;
}
