// Bring-up and shutdown of AmDevice: a linear list of steps.
#include <fmt/format.h>

#include <thread>

#include "am/am_device.hpp"
#include "drivers/base/log.hpp"
#include "drivers/env.hpp"

namespace baregpu::am {
namespace {

// Fixed places that must work before discovery has been read (dwords).
constexpr uint32_t kRccConfigMemsize = 0xde3;      // NBIO seg2 0xd20 + 0xc3: VRAM size in MiB
constexpr uint32_t kMp0C2pmsg33 = 0x16061;         // bit 31: the VBIOS has finished (Linux amdgpu_discovery.c)
constexpr uint32_t kRccIovFuncIdentifier = 0xde5;  // bit 0: SR-IOV virtual function
constexpr uint64_t kTopReserved = 64 * MiB;        // PSP and discovery at the top of VRAM
constexpr Milliseconds kVbiosTimeout{1000}, kResetTimeout{5000};

}  // namespace

const char* boot_path_name(BootPath path) {
  switch (path) {
    case BootPath::kCold: return "cold";
    case BootPath::kReset: return "reset";
    case BootPath::kPartial: return "partial";
  }
  return "?";
}

void AmDevice::step(const std::string& name) {
  if (!report_.accesses_by_step.empty()) report_.accesses_by_step.back().second = c_.io.accesses() - step_start_;
  step_start_ = c_.io.accesses();
  report_.accesses_by_step.emplace_back(name, 0);
  if (env().am_debug >= 1)
    log::message(log::Level::kWarn, "{}: {}", pci_->name(), name);
  else
    log::debug("{}: {}", pci_->name(), name);
  if (progress_) progress_(name);
}

AmDevice::AmDevice(std::unique_ptr<PciDevice> pci, BootOptions options)
    : pci_(std::move(pci)),
      // Grown before anything is mapped: a resize moves BARs.
      registers_((pci_->resize_bar_to_largest(0), pci_->map_bar(5, BarCaching::kUncached))),
      vram_bar_(pci_->map_bar(0, BarCaching::kWriteCombined)),
      doorbells_(pci_->map_bar(2, BarCaching::kUncached)),
      c_(*pci_, registers_.mmio()),
      progress_(options.progress) {
  if (options.trace)
    c_.io.set_trace(options.trace);
  else if (env().am_debug >= 2)
    c_.io.set_trace([this](char rw, const char* name, uint32_t dword, uint32_t value) {
      log::message(log::Level::kWarn, "{}: {} {} {:#x} = {:#x}", pci_->name(), rw, name, dword, value);
    });
  auto start = std::chrono::steady_clock::now();
  try {
    boot(options);
  } catch (const std::exception&) {
    // Whatever was started must not write into memory that goes away with this object.
    try {
      pci_->set_bus_master(false);
    } catch (const std::exception& e) {
      log::info("{}: bus mastering could not be switched off: {}", pci_->name(), e.what());
    }
    throw;
  }
  report_.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report_.register_accesses = c_.io.accesses();
  report_.accesses_by_step.back().second = c_.io.accesses() - step_start_;
}

void AmDevice::wait_vbios() {
  poll_until(
      c_.io, "MP0_SMN_C2PMSG_33", [&] { return c_.io.read(kMp0C2pmsg33, "MP0_SMN_C2PMSG_33"); }, 0x80000000, 0x80000000,
      kVbiosTimeout, "VBIOS initialisation");
}

void AmDevice::read_discovery() {
  step("discovery");
  // The one identity of a virtual function that is readable before anything else; all ones on a passed-through PF.
  uint32_t iov = c_.io.probe(kRccIovFuncIdentifier);
  if (iov != 0xffffffff && (iov & 1))
    throw UnsupportedError({.device = name(),
                            .what = "this is an SR-IOV virtual function; it needs its host driver's help to boot",
                            .source = fmt::format("RCC_IOV_FUNC_IDENTIFIER = {:#x}", iov),
                            .hint = "use amdgpu in this machine, or pass the physical function through"});
  wait_vbios();
  uint32_t mib = c_.io.read(kRccConfigMemsize, "RCC_CONFIG_MEMSIZE");
  if (mib == 0 || mib == 0xffffffff || mib > (1u << 20))
    throw TransportError({.device = name(),
                          .what = "the GPU does not report its memory size",
                          .source = fmt::format("RCC_CONFIG_MEMSIZE = {:#x}", mib),
                          .hint = "the VBIOS has not run; power-cycle the card"});
  c_.vram = std::make_unique<Vram>(c_.io, vram_bar_.mmio(), mib * MiB);
  std::vector<std::byte> blob(kDiscoverySize);
  c_.vram->read(VramOffset(c_.vram->size() - kDiscoveryOffsetFromTop), blob);
  c_.discovery = parse_discovery(blob);
  if (!c_.discovery.gc)
    throw ParseError({.device = name(), .what = "IP discovery has no GC info table", .source = {}, .hint = {}});
}

void AmDevice::make_blocks() {
  auto block = [&](HwIp ip) {
    const IpInstance& i = c_.discovery.require(ip);
    return std::make_unique<RegisterBlock>(c_.io, ip, i.version, i.bases);
  };
  gc_row_ = &gc_row(c_.discovery.require(HwIp::Gc).version);
  c_.nbio = block(HwIp::Nbio);
  c_.hdp = block(HwIp::Hdp);
  c_.gc = block(HwIp::Gc);
  c_.mmhub = block(HwIp::Mmhub);
  c_.mp0 = block(HwIp::Mp0);
  c_.mp1 = block(HwIp::Mp1);
  c_.osssys = block(HwIp::Osssys);
  soc_ = std::make_unique<Soc>(c_);
  gmc_ = std::make_unique<Gmc>(c_, *soc_);
  ih_ = std::make_unique<Ih>(c_, *gmc_);
  psp_ = std::make_unique<Psp>(c_, *gmc_, *soc_);
  smu_ = std::make_unique<Smu>(c_, *gmc_);
  gfx_ = std::make_unique<Gfx>(c_, *gmc_, *soc_);
  sdma_ = std::make_unique<Sdma>(c_, *soc_);
}

BootPath AmDevice::choose_path(const BootOptions& options) {
  const bool alive = psp_->sos_alive();
  if (!alive) return BootPath::kCold;
  if (!options.force_reset && !env().am_reset && c_.gc->read<SCRATCH_REG7>() == kBootLayoutVersion &&
      c_.gc->read<SCRATCH_REG6>() == 0 && c_.gc->read<GCVM_L2_PROTECTION_FAULT_STATUS>() == 0)
    return BootPath::kPartial;
  return BootPath::kReset;
}

void AmDevice::mode1_reset() {
  step("mode1 reset");
  if (!smu_->alive()) {
    // Somebody stopped between the secure OS and the SMU's firmware: nobody can reset the card, and nothing that a
    // reset would undo has been set up yet. The boot goes on from the living secure OS.
    log::warn("{}: the SMU does not answer; booting without a reset", name());
    return;
  }
  const SmuRow& row = smu_row(c_.mp1->version());
  // Config space is lost in the reset: keep the header's BARs and the command word.
  std::array<uint32_t, 16> config{};
  for (unsigned i = 0; i < config.size(); ++i) config[i] = pci_->config_read(i * 4, 4);
  pci_->set_bus_master(false);
  const ResetMailbox other = row.mode1_mailbox == ResetMailbox::kDebug ? ResetMailbox::kNormal : ResetMailbox::kDebug;
  const uint32_t other_message = other == ResetMailbox::kNormal ? uint32_t(SmuMessage::kMode1Reset) : 2;
  for (bool second : {false, true}) {
    smu_->request_mode1(second ? other : row.mode1_mailbox, second ? other_message : row.mode1_message,
                        second ? 0 : row.mode1_argument);
    std::this_thread::sleep_for(Milliseconds(row.mode1_wait_ms));
    auto deadline = std::chrono::steady_clock::now() + kResetTimeout;
    while (pci_->config_read(0, 4) != config[0] && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(Milliseconds(10));
    for (unsigned i = 0; i < config.size(); ++i)
      if (i != 1) pci_->config_write(i * 4, 4, config[i]);
    pci_->config_write(kPciCommand, 2, config[1] & 0xffff & ~uint32_t{kPciCommandBusMaster});
    // Success is what the registers say, not what the mailbox answered.
    while (c_.io.probe(kRccConfigMemsize) == 0xffffffff && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(Milliseconds(10));
    wait_vbios();
    if (!psp_->sos_alive()) return;
    log::warn("{}: mode1 reset request had no effect, trying the {} mailbox", name(),
              other == ResetMailbox::kDebug ? "debug" : "normal");
  }
  throw TimeoutError({.device = name(),
                      .what = "mode1 reset had no effect: the PSP's secure OS is still alive",
                      .source = fmt::format("MP0_SMN_C2PMSG_81 = {:#x}", c_.mp0->read<MP0_SMN_C2PMSG_81>()),
                      .hint = "power-cycle the machine"});
}

void AmDevice::boot(const BootOptions& options) {
  read_discovery();
  make_blocks();
  step("state");
  report_.path = choose_path(options);
  const bool partial = report_.path == BootPath::kPartial;
  // All files are found and cut before the card is touched: a missing one must leave it as it was.
  FirmwareSet firmware =
      load_firmware(options.firmware ? *options.firmware : FirmwareFolders(pci_->firmware_folders()), c_.mp0->version(),
                    c_.mp1->version(), c_.discovery.require(HwIp::Sdma0).version, c_.gc->version());
  mec_start_ = firmware.mec_start;
  if (report_.path == BootPath::kReset) mode1_reset();

  step("memory");
  gmc_->init_sw();
  const VramOffset root = c_.boot.allocate(4096);
  gmc_->set_root(root);
  ih_->init_sw();
  psp_->init_sw();
  smu_->init_sw();
  gfx_->init_sw();
  c_.boot.seal();
  const uint64_t vram = c_.vram->size();
  const uint64_t tables = c_.vram->large_bar() ? 0 : align_up(vram / 512, MiB);
  const uint64_t heap = BootMemory::kSize + tables;
  if (vram < heap + kTopReserved + MiB || c_.vram->window() < heap)
    throw UnsupportedError(
        {.device = name(),
         .what = fmt::format("BAR0 of {} MiB is too small: page tables need the first {} MiB of VRAM",
                             c_.vram->window() / MiB, heap / MiB),
         .source = fmt::format("VRAM has {} MiB", vram / MiB),
         .hint = "enable Resizable BAR / Above 4G decoding in the firmware setup"});
  vram_heap_ = std::make_unique<Tlsf>("VRAM of " + name(), heap, vram - kTopReserved - heap, 4096);
  if (tables) table_pool_ = std::make_unique<Tlsf>("page-table memory of " + name(), BootMemory::kSize, tables, 4096);
  Tlsf& pool = tables ? *table_pool_ : *vram_heap_;
  tables_ = std::make_unique<PageTables>(
      *c_.vram, page_table_format(c_.gc->version()), root, GpuVa(kVaBase), gmc_->paddr_base(),
      PageTables::TableMemory{[&pool] { return VramOffset(pool.allocate(4096, 4096)); },
                              [&pool](VramOffset p) { pool.free(p.value); }});

  pci_->set_bus_master(true);
  // A session is running; stays 1 if this one dies. GC registers lose writes before RLC autoload, and a card in that
  // state has a foreign SCRATCH_REG7, which leads to the full reset as well.
  if (partial) c_.gc->write_raw<SCRATCH_REG6>(1);
  step("SOC");
  soc_->init_hw();
  soc_->flush_hdp();
  step("memory controller");
  gmc_->init_mm_hub();
  step("interrupts");
  ih_->init_hw();
  if (!partial) {
    psp_->init_hw(firmware, [this](const std::string& s) { step(s); });
    step("SMU");
    smu_->init_hw();
  }
  step("GFX");
  gfx_->init_hw(partial, mec_start_);
  step("SDMA");
  sdma_->init_hw();
  gmc_->flush_tlb();
  step("clocks");
  smu_->set_clocks(true);
  if (!partial) {
    soc_->enable_clock_gating();
    gfx_->enable_clock_gating();
  }
  step("ready");
  c_.gc->write_raw<SCRATCH_REG7>(kBootLayoutVersion);
  c_.gc->write_raw<SCRATCH_REG6>(1);
  booted_ = true;
}

void AmDevice::shutdown() noexcept {
  if (!booted_) return;
  booted_ = false;
  // Bounded, and every step on its own: the first failure must not keep the rest from running.
  auto attempt = [&](const char* what, auto&& f) {
    try {
      f();
      return true;
    } catch (const std::exception& e) {
      log::warn("{}: shutdown: {}: {}", name(), what, e.what());
      return false;
    }
  };
  bool ok = !error_state_;
  ok &= attempt("SDMA", [&] { sdma_->fini_hw(); });
  ok &= attempt("GFX", [&] { gfx_->dequeue(error_state_); });
  ok &= attempt("clocks", [&] { smu_->set_clocks(false); });
  ok &= attempt("interrupts", [&] { ok &= !collect_faults().faulted; });
  attempt("state", [&] { c_.gc->write_raw<SCRATCH_REG6>(ok ? 0 : 1); });
  attempt("bus master", [&] { pci_->set_bus_master(false); });
}

AmDevice::~AmDevice() { shutdown(); }

}  // namespace baregpu::am
