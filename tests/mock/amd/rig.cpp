#include "tests/mock/amd/rig.hpp"

namespace rig {
namespace {

class FakeExecutor final : public mock::isa::Executor {
 public:
  explicit FakeExecutor(std::shared_ptr<FakeCores> cores) : cores_(std::move(cores)) {}
  mock::isa::DispatchResult run(const mock::isa::DispatchInfo& d, mock::isa::AddressSpace& m,
                                const std::atomic<bool>& stop) override {
    cores_->last = d;
    ++cores_->runs;
    if (cores_->run) return cores_->run(d, m, stop);
    mock::isa::DispatchResult r;
    r.completed = true;
    return r;
  }
  void invalidate_code() override { ++cores_->invalidations; }

 private:
  std::shared_ptr<FakeCores> cores_;
};

}  // namespace

mock::MockOptions Rig::amdgpu() {
  mock::MockOptions o;
  o.card = mock::CardState::kAmdgpu;
  return o;
}
mock::MockOptions Rig::cold() { return {}; }

Rig::Rig(mock::MockOptions options) : cores(std::make_shared<FakeCores>()) {
  card = mock::make_amd_card(options, [this](auto, auto&) { return std::make_unique<FakeExecutor>(cores); });
  dev = card->open("MOCK");
  dev->set_bus_master(true);
  vram = dev->map_bar(0, BarCaching::kWriteCombined);
  bells = dev->map_bar(2, BarCaching::kUncached);
  mmio = dev->map_bar(5, BarCaching::kUncached);
}

bool Rig::poll(uint32_t dword, uint32_t mask, uint32_t want) {
  for (int i = 0; i < 20; ++i)
    if ((r(dword) & mask) == want) return true;
  return false;
}

bool Rig::wait(const std::function<bool()>& done, int ms) {
  for (auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
       std::chrono::steady_clock::now() < end;) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return done();
}

bool Rig::broke(const std::string& rule) const {
  for (const mock::Violation& v : card->violations())
    if (v.rule == rule) return true;
  return false;
}

std::string Rig::notes() const {
  std::string out;
  for (const mock::Violation& v : card->violations()) out += v.rule + ": " + v.detail + "\n";
  return out;
}

void Rig::setup_memory(uint32_t context0_cntl) {
  const uint64_t size = uint64_t{r(kMemsize)} << 20;
  for (uint64_t table : {kRoot, kPdb1, kPdb0, kPtb})
    for (unsigned i = 0; i < 512; ++i) put64(table + 8 * i, 0);
  put64(kRoot, kPdb1 | 1);  // VALID only: tables carry no rights
  put64(kPdb1, kPdb0 | 1);
  put64(kPdb0, kPtb | 1);
  for (unsigned i = 0; i < 64; ++i) map(i, (kPages + i * 4096ull) | kLeaf);
  for (unsigned i = 0; i < 64 * 512; ++i) put64(kPages + 8 * i, 0);
  for (unsigned i = 0; i < 512; ++i) put64(kDefaultPage + 8 * i, 0);
  flush();
  for (uint32_t delta : {0u, 0x1a700u - 0x281cu}) {  // the MM hub has the same layout (mmhub_3_0_0), except below
    const bool mm = delta != 0;
    auto at = [&](uint32_t gc, uint32_t mm_dword) { return mm ? mm_dword : gc; };
    w(at(kGcApertureLow, 0x1a8f1), uint32_t(kFb >> 18));
    w(at(kGcApertureHigh, 0x1a8f2), uint32_t((kFb + size) >> 18));
    w(at(kGcDefaultLo, 0x1a70f), lo(kDefaultPage >> 12));
    w(at(kGcDefaultHi, 0x1a710), 0);
    w(at(kGcL1, kMmL1), 0x1859);
    w(at(kGcL2Cntl, 0x1a700), 0x80801);
    w(at(kGcStartLo, 0x1a7cb), lo(kVa >> 12));
    w(at(kGcStartHi, 0x1a7cc), hi(kVa >> 12));
    w(at(kGcEndLo, 0x1a7eb), 0xffffffff);
    w(at(kGcEndHi, 0x1a7ec), 0x7);
    w(at(0x2951, 0x1a7a9), 0xffffffff);  // INVALIDATE_ENG17_ADDR_RANGE
    w(at(0x2952, 0x1a7aa), 0x1f);
    w(at(kGcBaseLo, 0x1a7ab), lo(kRoot | 1));
    w(at(kGcBaseHi, 0x1a7ac), 0);
    w(at(kGcContext0, 0x1a740), context0_cntl);
  }
  REQUIRE(invalidate_gc());
}

bool Rig::invalidate_gc(uint32_t request) {
  w(kGcReq, request);
  return poll(kGcAck, 1, 1);
}

void Rig::setup_ih(uint32_t size_log2) {
  ih_size_ = 4u << size_log2;
  ih_rptr_ = 0;
  w(kIhCntl, 0);
  w(kIhBase, lo((kFb + kIhRing) >> 8));
  w(kIhBaseHi, hi((kFb + kIhRing) >> 8));
  w(kIhWptr, 0);
  w(kIhRptr, 0);
  // MC_SPACE 4, RPTR_REARM, MC_SNOOP, ENABLE_INTR, WPTR_OVERFLOW_ENABLE, size, RB_ENABLE; the clear bit pulsed first.
  w(kIhCntl, 0xc0310000 | size_log2 << 1);
  w(kIhCntl, 0x40330001 | size_log2 << 1);
}

std::vector<Rig::Iv> Rig::interrupts() {
  std::vector<Iv> out;
  const uint32_t wptr = r(kIhWptr) & 0x3fffc;
  while (ih_rptr_ != wptr) {
    const uint64_t at = kIhRing + ih_rptr_;
    const uint32_t head = v32(at);
    out.push_back({head & 0xff, head >> 8 & 0xff, v32(at + 16), v32(at + 20)});
    ih_rptr_ = (ih_rptr_ + 32) % ih_size_;
  }
  w(kIhRptr, ih_rptr_);
  return out;
}

void Rig::route_doorbells() {
  w(kDoorbellAperEn, 1);
  rsmu_write(kS2aEntry0, 0x30000007);      // GFX: awid 3
  rsmu_write(kS2aEntry0 + 8, 0x3009001d);  // SDMA: awid 0xe, dwords 0x200..0x203
}

void Rig::start_mec() {
  w(kGrbmGfxCntl, 0x4);  // ME 1, pipe 0
  w(kMecStartLo, 0x100000);
  w(kMecStartHi, 0);
  w(kGrbmGfxCntl, 0);
  w(kMecCntl, 0x10000);  // PIPE0_RESET
  w(kMecCntl, 0);
  w(kMecCntl, 0x4000000);  // PIPE0_ACTIVE, no HALT
  w(kShMemConfig, 0xc00c);
  w(kShMemBases, 0x10002);
  w(kMecRangeLower, 0);
  w(kMecRangeUpper, 0xf8);
}

void Rig::setup_compute(uint32_t eop_control) {
  route_doorbells();
  start_mec();
  for (unsigned i = 0; i < 512; ++i) put32(kMqd + 4 * i, 0);
  put32(kMqd, 0xc0310800);
  for (unsigned i : {0x17u, 0x18u, 0x1au, 0x1bu, 0x2cu, 0x2du, 0x2eu, 0x2fu}) put32(kMqd + 4 * i, 0xffffffff);
  flush();
  w(kGrbmGfxCntl, 0x4);
  auto hqd = [&](unsigned word, uint32_t v) { w(kHqd + word - 0x80, v); };
  hqd(0x80, lo(kFb + kMqd));
  hqd(0x81, hi(kFb + kMqd));
  hqd(0x88, lo(page(kRingPage) >> 8));
  hqd(0x89, hi(page(kRingPage) >> 8));
  hqd(0x8b, lo(page(kPointerPage) + 0x80));
  hqd(0x8c, hi(page(kPointerPage)));
  hqd(0x8f, 0x40000018);  // doorbell 3, enabled
  hqd(0x91, 0x509);       // 1024 dwords
  hqd(0xa2, 0x100);
  hqd(0xa5, lo(page(kEopPage) >> 8));
  hqd(0xa6, hi(page(kEopPage) >> 8));
  hqd(0xa7, eop_control);
  w(kHqdActive, 1);
  w(kGrbmGfxCntl, 0);
  compute_put = 0;
}

void Rig::submit(const std::vector<uint32_t>& dwords, bool flush_hdp) {
  for (uint32_t d : dwords) put32(data(kRingPage, compute_put++ % 1024 * 4), d);
  if (flush_hdp) flush();
  ring(3, compute_put);
}

void Rig::setup_sdma(uint32_t ring_log2_dwords) {
  route_doorbells();
  w(kSdmaF32, 0);
  w(kSdmaCntl, 1);
  w(kSdmaRbCntl, 0);
  w(kSdmaRptr, 0), w(kSdmaRptr + 1, 0), w(kSdmaWptr, 0), w(kSdmaWptr + 1, 0);
  w(kSdmaRbBase, lo(page(kSdmaRingPage) >> 8));
  w(kSdmaRbBaseHi, hi(page(kSdmaRingPage) >> 8));
  w(kSdmaRptrAddrLo, lo(page(kPointerPage) + 0x100));
  w(kSdmaRptrAddrHi, hi(page(kPointerPage)));
  w(kSdmaDoorbellOffset, 0x200 << 2);
  w(kSdmaDoorbell, 1u << 28);
  w(kSdmaRbCntl, 0x00841001 | ring_log2_dwords << 1);
  w(kSdmaIbCntl, 1);
  sdma_put = 0;
}

void Rig::submit_sdma(const std::vector<uint32_t>& dwords) {
  const uint64_t bytes = 4ull << (r(kSdmaRbCntl) >> 1 & 31);
  for (uint32_t d : dwords) {
    put32(data(kSdmaRingPage, sdma_put % bytes), d);
    sdma_put += 4;
  }
  flush();
  ring(0x100, sdma_put);
}

std::vector<uint32_t> release(uint64_t va, uint32_t value, uint32_t int_sel) {
  // Event 20, index 5; GCR: GLM_WB, GLM_INV, GLV_INV, GL1_INV, GL2_INV, GL2_WB, SEQ. Data select 1 = 32 bits.
  return {pm4(0x49, 7), 20 | 5 << 8 | 0x70f000, 1u << 29 | int_sel << 24, lo(va), hi(va), value, 0, 0xabc};
}

std::vector<uint32_t> dispatch(uint64_t code_va, uint32_t groups) {
  return {pm4(0x76, 3),
          0x20c,
          lo(code_va >> 8),
          hi(code_va >> 8),  // COMPUTE_PGM
          pm4(0x76, 3),
          0x212,
          0x00ac0041,
          0x84,  // RSRC1, RSRC2 (2 user SGPRs)
          pm4(0x76, 2),
          0x228,
          0,  // RSRC3
          pm4(0x76, 2),
          0x218,
          0,  // TMPRING_SIZE
          pm4(0x76, 3),
          0x240,
          lo(page(kDataPage)),
          hi(page(kDataPage)),  // USER_DATA_0, 1
          pm4(0x76, 9),
          0x204,
          0,
          0,
          0,
          64,
          1,
          1,
          0,
          0,  // START, NUM_THREAD
          pm4(0x15, 4),
          groups,
          1,
          1,
          0x8005,  // DISPATCH_DIRECT, wave32
          pm4(0x46, 1),
          0x407};  // CS_PARTIAL_FLUSH
}

std::vector<uint32_t> operator+(std::vector<uint32_t> a, const std::vector<uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace rig
