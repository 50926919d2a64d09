// DEV strings: [IFACE+]KIND[:INDEX][:RENDERER][:ARCH] (public).
#pragma once
#include <string>
#include <string_view>

namespace baregpu {

/// A parsed device selection. Examples: "AMD", "PCI+AMD", "MOCKPCI+AMD::gfx1201", "AMD:1", "MOCK+NV:PTX", "CPU".
struct DeviceSpec {
  std::string iface;     ///< "" = choose; upper case: PCI VFIO USB KFD NVK REMOTE MOCKPCI MOCKKFD MOCKUSB MOCKNVK MOCK
  std::string kind;      ///< AMD, NV or CPU
  std::string renderer;  ///< "" = default, else e.g. "PTX", "LLVM"
  std::string arch;      ///< "" = what the device is; "gfx1100", "sm_89"
  unsigned index = 0;    ///< n-th device of that interface and kind

  /// The canonical text; parse(str()) gives the same value.
  std::string str() const;
};

/// Parses a DEV string. The part after the first colon is an index if it is all digits ("AMD:1", "AMD:1:LLVM:gfx1100").
/// @throws UsageError that shows the text, the part that is wrong and the accepted values.
DeviceSpec parse_device_spec(std::string_view text);

}  // namespace baregpu
