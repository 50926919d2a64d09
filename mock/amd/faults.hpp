// Faults that a test or a user asks for: MOCK_FAULT="psp-timeout@2,page-fault@17".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace baregpu::mock {

enum class FaultPoint : uint8_t {
  kAllOnes,     ///< all-ones@N: from the N-th register read on, reads return all ones (surprise removal)
  kFailOpen,    ///< fail-open@N: the N-th step of opening (open, map, resize, allocate) fails
  kHang,        ///< hang@N: the N-th packet never completes
  kPspTimeout,  ///< psp-timeout@N: the N-th PSP step (boot loader or ring command) never completes
  kSmuTimeout,  ///< smu-timeout@N: the N-th SMU message is never answered
  kPageFault,   ///< page-fault@N: the N-th engine translation finds no page
  kMsiLost,     ///< msi-lost@N: the N-th interrupt message gets lost
  kPowerCut,    ///< power-cut@N: for the SPI chip; no effect here
  kUsbUnplug,   ///< usb-unplug@N: for the USB bridge; no effect here
};

/// Counts events and says which of them fail. Thread: the card's lock.
class FaultPlan {
 public:
  /// @throws UsageError that shows the text and lists the known names.
  explicit FaultPlan(const std::string& text);
  /// Counts one event of this kind; true if it is the one that fails.
  bool hit(FaultPoint point);
  /// Counts; true from the N-th event on.
  bool hit_from(FaultPoint point);

 private:
  struct Item {
    FaultPoint point;
    uint64_t at;
    uint64_t seen = 0;
  };
  std::vector<Item> items_;
};

}  // namespace baregpu::mock
