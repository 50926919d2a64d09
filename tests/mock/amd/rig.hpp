// Drives the mock card by hand: raw registers and dwords from the hardware facts, no driver.
#pragma once
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drivers/base/error.hpp"
#include "mock/amd/card.hpp"
#include "mock/mock.hpp"

namespace rig {

using namespace baregpu;

/// Shader cores that do what a test says.
struct FakeCores {
  std::function<mock::isa::DispatchResult(const mock::isa::DispatchInfo&, mock::isa::AddressSpace&,
                                          const std::atomic<bool>&)>
      run;
  std::atomic<int> runs{0}, invalidations{0};
  mock::isa::DispatchInfo last;
};

/// Absolute dwords of Navi31 (segment base + offset of the vendor's headers, added by hand).
enum Reg : uint32_t {
  kMmIndex = 0x0,
  kMmData = 0x1,
  kMmIndexHi = 0x6,
  kRsmuIndex = 0x14,
  kRsmuData = 0x15,
  kDoorbellAperEn = 0xde0,
  kMemsize = 0xde3,
  kHdpReq = 0xe26,
  kHdpDone = 0xe27,
  kHdpFlush = 0x1fc00,
  kScratch7 = 0xc047,
  kCpStat = 0x21a0,
  kBootload = 0xee82,
  kIhCntl = 0x1120,
  kIhBase = 0x1121,
  kIhBaseHi = 0x1122,
  kIhRptr = 0x1123,
  kIhWptr = 0x1124,
  kGcL2Cntl = 0x281c,
  kGcFaultCntl = 0x2824,
  kGcFaultStatus = 0x2828,
  kGcFaultLo = 0x2829,
  kGcFaultHi = 0x282a,
  kGcDefaultLo = 0x282b,
  kGcDefaultHi = 0x282c,
  kGcApertureLow = 0x28dd,
  kGcApertureHigh = 0x28de,
  kGcL1 = 0x28df,
  kGcContext0 = 0x28e8,
  kGcReq = 0x291c,
  kGcAck = 0x292e,
  kGcBaseLo = 0x2953,
  kGcBaseHi = 0x2954,
  kGcStartLo = 0x2973,
  kGcStartHi = 0x2974,
  kGcEndLo = 0x2993,
  kGcEndHi = 0x2994,
  kMmL1 = 0x1a8f3,
  kMmReq = 0x1a774,
  kMmAck = 0x1a786,
  kMmSem = 0x1a762,
  kGrbmGfxCntl = 0xa900,
  kGrbmSoftReset = 0x2008,
  kShMemConfig = 0xa9e4,
  kShMemBases = 0xa9e3,
  kMecStartLo = 0xc900,
  kMecStartHi = 0xc938,
  kMecCntl = 0xc904,
  kMecRangeLower = 0x305c,
  kMecRangeUpper = 0x305d,
  kHqd = 0x3209,
  kHqdActive = 0x320b,
  kHqdDequeue = 0x3221,
  kSdmaCntl = 0x127c,
  kSdmaF32 = 0xf89a,
  kSdmaRbCntl = 0x12e0,
  kSdmaRbBase = 0x12e1,
  kSdmaRbBaseHi = 0x12e2,
  kSdmaRptr = 0x12e3,
  kSdmaWptr = 0x12e5,
  kSdmaRptrAddrHi = 0x12e8,
  kSdmaRptrAddrLo = 0x12e9,
  kSdmaIbCntl = 0x12ea,
  kSdmaDoorbell = 0x12f2,
  kSdmaDoorbellOffset = 0x130b,
  kPsp33 = 0x16061,
  kPsp35 = 0x16063,
  kPsp36 = 0x16064,
  kPsp64 = 0x16080,
  kPsp67 = 0x16083,
  kPsp69 = 0x16085,
  kPsp70 = 0x16086,
  kPsp71 = 0x16087,
  kPsp81 = 0x16091,
  kSmuMsg = 0x16282,
  kSmuParam = 0x16292,
  kSmuResp = 0x1629a,
  kSmuDebugMsg = 0x1628b,
};
/// Byte addresses of registers behind the RSMU window.
constexpr uint32_t kS2aEntry0 = 0x141e900;

constexpr uint64_t kFb = 0x80'0000'0000;    // frame buffer in MC space, read back from FB_LOCATION in a test
constexpr uint64_t kVa = 0x2000'0000'0000;  // start of the virtual range
// VRAM offsets of what the rig places.
constexpr uint64_t kRoot = 0x400000, kPdb1 = 0x401000, kPdb0 = 0x402000, kPtb = 0x403000, kMqd = 0x404000,
                   kDefaultPage = 0x405000, kIhRing = 0x440000, kPages = 0x500000;
constexpr uint64_t kLeaf = 0x71;                            // VALID | EXECUTABLE | READABLE | WRITEABLE
constexpr uint64_t kSystemLeaf = 0x77 | uint64_t{3} << 48;  // + SYSTEM | SNOOPED, MTYPE UC
// Pages of the virtual range, by index: the PTB maps page i to VRAM kPages + i*4096 unless a test changes it.
constexpr unsigned kRingPage = 0, kEopPage = 1, kPointerPage = 2, kSdmaRingPage = 3, kDataPage = 8, kIbPage = 16,
                   kCodePage = 20;
constexpr uint64_t page(unsigned i) { return kVa + uint64_t{i} * 4096; }
constexpr uint32_t lo(uint64_t v) { return uint32_t(v); }
constexpr uint32_t hi(uint64_t v) { return uint32_t(v >> 32); }
/// Type-3 header for `n` dwords that follow.
constexpr uint32_t pm4(uint32_t op, uint32_t n) { return 3u << 30 | (n - 1) << 16 | op << 8; }

class Rig {
 public:
  /// Opens the card with bus mastering on and the BARs mapped.
  explicit Rig(mock::MockOptions options = amdgpu());
  static mock::MockOptions amdgpu();  ///< firmware runs already: most tests need no PSP boot
  static mock::MockOptions cold();

  uint32_t r(uint32_t dword) { return mmio.mmio().read32(uint64_t{dword} * 4); }
  void w(uint32_t dword, uint32_t v) { mmio.mmio().write32(uint64_t{dword} * 4, v); }
  /// Reads up to 20 times until (value & mask) == want.
  bool poll(uint32_t dword, uint32_t mask, uint32_t want);
  void rsmu_write(uint32_t byte, uint32_t v) { w(kRsmuIndex, byte), w(kRsmuData, v); }
  void flush() { w(kHdpFlush, 0); }

  // ---- memory
  uint32_t v32(uint64_t offset) { return vram.mmio().read32(offset); }
  uint64_t v64(uint64_t offset) { return vram.mmio().read64(offset); }
  void put32(uint64_t offset, uint32_t v) { vram.mmio().write32(offset, v); }
  void put64(uint64_t offset, uint64_t v) { vram.mmio().write64(offset, v); }
  static constexpr uint64_t data(unsigned page_index, uint64_t byte = 0) {
    return kPages + page_index * 4096ull + byte;
  }
  void map(unsigned page_index, uint64_t pte) { put64(kPtb + 8 * page_index, pte); }
  /// Both hubs' tables and the first 64 pages; TLBs clean.
  void setup_memory(uint32_t context0_cntl = 0x01fffe07);
  bool invalidate_gc(uint32_t request = 0x00f80001);

  // ---- queues
  void setup_ih(uint32_t size_log2 = 10);
  void start_mec();
  void setup_compute(uint32_t eop_control = 9);
  void route_doorbells();
  /// Appends dwords to the compute ring and rings doorbell 3.
  void submit(const std::vector<uint32_t>& dwords, bool flush_hdp = true);
  void ring(unsigned index, uint64_t value) { bells.mmio().write64(8 * index, value); }
  void setup_sdma(uint32_t ring_log2_dwords = 10);
  void submit_sdma(const std::vector<uint32_t>& dwords);
  uint64_t sdma_put = 0, compute_put = 0;

  // ---- results
  bool wait(const std::function<bool()>& done, int ms = 3000);
  bool wait32(uint64_t offset, uint32_t want) {
    return wait([&] { return v32(offset) == want; });
  }
  bool broke(const std::string& rule) const;
  bool wait_broke(const std::string& rule) {
    return wait([&] { return broke(rule); });
  }
  std::string notes() const;
  /// Interrupt entries since the last call: {client, source, ctx0, ctx1}.
  struct Iv {
    uint32_t client, source, ctx0, ctx1;
  };
  std::vector<Iv> interrupts();

  std::shared_ptr<FakeCores> cores;
  std::shared_ptr<mock::MockGpu> card;
  std::unique_ptr<PciDevice> dev;
  BarMapping vram, bells, mmio;

 private:
  uint32_t ih_rptr_ = 0, ih_size_ = 0;
};

// RELEASE_MEM of `value` (32 bits) with the flags of a full flush (nvd.h).
std::vector<uint32_t> release(uint64_t va, uint32_t value, uint32_t int_sel = 0);
/// The SH registers of a small dispatch, then DISPATCH_DIRECT.
std::vector<uint32_t> dispatch(uint64_t code_va, uint32_t groups);
std::vector<uint32_t> operator+(std::vector<uint32_t> a, const std::vector<uint32_t>& b);

constexpr uint64_t kDone = page(kDataPage + 1);  // the fence of Queue::run()
constexpr uint64_t kDoneAt = Rig::data(kDataPage + 1);
constexpr uint32_t kNop1 = 0xffff1000;  // NOP of one dword

/// A rig with memory, interrupts and one compute queue at doorbell 3.
struct Queue : Rig {
  explicit Queue(mock::MockOptions o = amdgpu(), uint32_t eop_control = 9) : Rig(o) {
    setup_memory();
    setup_ih();
    setup_compute(eop_control);
  }
  bool run(std::vector<uint32_t> dwords, uint32_t value, int ms = 3000) {
    submit(std::move(dwords) + release(kDone, value));
    return wait([&] { return v32(kDoneAt) == value; }, ms);
  }
  bool hangs(std::vector<uint32_t> dwords) { return !run(std::move(dwords), 0x99, 40); }
  bool active() {
    w(kGrbmGfxCntl, 4);
    bool a = r(kHqdActive) & 1;
    w(kGrbmGfxCntl, 0);
    return a;
  }
  void dequeue(uint32_t request) {
    w(kGrbmGfxCntl, 4);
    w(kHqdDequeue, request);
    for (int i = 0; i < 8; ++i) r(kHqdActive);
    w(kGrbmGfxCntl, 0);
  }
};

}  // namespace rig
