#include "am/psp.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>

// Sequence: Linux psp_v13_0.c and amdgpu_psp.c; structures: psp_gfx_if.h.
namespace baregpu::am {
namespace {

constexpr uint64_t kMsg1Size = 1 * MiB, kRingSize = 64 * KiB, kTmrReserved = 0x1300000;
constexpr uint32_t kReady = 0x80000000;
// Boot loader commands (psp_gfx_if.h / amdgpu_psp.h: PSP_BL__*).
struct BootStep {
  uint32_t command;
  SosPiece piece;
  const char* name;
};
constexpr uint32_t kBlLoadTosSpl = 0x10000000, kBlLoadSos = 0x20000;
constexpr BootStep kBootSteps[] = {
    {0x80000, SosPiece::kKdb, "KDB"},          {kBlLoadTosSpl, SosPiece::kSpl, "SPL"},
    {0x10000, SosPiece::kSysDrv, "SYS_DRV"},   {0xb0000, SosPiece::kSocDrv, "SOC_DRV"},
    {0xd0000, SosPiece::kIntfDrv, "INTF_DRV"}, {0xc0000, SosPiece::kDbgDrv, "DBG_DRV"},
    {0xe0000, SosPiece::kRasDrv, "RAS_DRV"},   {kBlLoadSos, SosPiece::kSos, "SOS"},
};
constexpr uint32_t kRingDestroy = 0x30000, kRingCreateKm = 2u << 16;
enum CommandId : uint32_t { kSetupTmr = 5, kLoadIpFw = 6, kLoadToc = 0x20, kAutoloadRlc = 0x21 };
constexpr uint32_t kTmrVirtPhyAddr = 1u << 1;
constexpr Milliseconds kStepTimeout{10000};
constexpr uint32_t kStatusTeeNotSupported = 0xffff000a;

/// psp_gfx_rb_frame: what the ring holds.
struct Frame {
  uint32_t cmd_lo, cmd_hi, cmd_size, fence_lo, fence_hi, fence_value, sid_lo, sid_hi;
  uint8_t vmid, frame_type;
  uint8_t reserved[30];
};
static_assert(sizeof(Frame) == 64);

}  // namespace

/// psp_gfx_cmd_resp, 1024 bytes.
struct Psp::Command {
  uint32_t buf_size, buf_version, cmd_id, resp_buf_lo, resp_buf_hi, resp_offset, resp_buf_size;
  uint32_t args[209];
  uint32_t resp[40];
};
struct Psp::Answer {
  uint32_t status, session, fw_lo, fw_hi, tmr_size;
};

void Psp::init_sw() {
  static_assert(sizeof(Command) == 1024 && offsetof(Command, args) == 28 && offsetof(Command, resp) == 864);
  msg1_ = c_.boot.allocate(kMsg1Size, 1 * MiB);
  cmd_ = c_.boot.allocate(4096);
  fence_ = c_.boot.allocate(4096);
  ring_ = c_.boot.allocate(kRingSize);
  if (!row_.boot_time_tmr) tmr_ = c_.boot.allocate(kTmrReserved, 1 * MiB);
}

void Psp::copy_to_msg1(std::span<const std::byte> bytes) {
  if (bytes.size() + 16 > kMsg1Size)
    throw Error({.device = c_.name(),
                 .what = fmt::format("firmware piece of {} bytes is larger than the PSP's 1 MiB buffer", bytes.size()),
                 .source = {},
                 .hint = {}});
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.resize(size_t(align_up(bytes.size() + 4, 16)));  // a zero word and a whole 16-byte line at the end
  c_.vram->write(msg1_, padded);
}

void Psp::bootloader_step(uint32_t command, std::span<const std::byte> bytes, const char* name) {
  c_.mp0->wait_until<MP0_SMN_C2PMSG_35>(kReady, kReady, kStepTimeout,
                                        fmt::format("PSP boot loader ready for {}", name));
  copy_to_msg1(bytes);
  soc_.flush_hdp();
  c_.mp0->write_raw<MP0_SMN_C2PMSG_36>(uint32_t(gmc_.mc(msg1_).value >> 20));
  c_.mp0->write_raw<MP0_SMN_C2PMSG_35>(command);
  if (command != kBlLoadSos)
    c_.mp0->wait_until<MP0_SMN_C2PMSG_35>(kReady, kReady, kStepTimeout,
                                          fmt::format("PSP boot loader accepting {}", name));
}

void Psp::load_sos(const FirmwareSet& fw) {
  for (const BootStep& step : kBootSteps) {
    SosPiece piece = step.command == kBlLoadTosSpl && row_.spl_sends_kdb ? SosPiece::kKdb : step.piece;
    auto it = fw.sos.find(piece);
    if (it == fw.sos.end()) continue;
    bootloader_step(step.command, it->second, step.name);
  }
  poll_until(
      c_.io, "MP0_SMN_C2PMSG_81", [&] { return sos_alive() ? 1u : 0u; }, 1, 1, kStepTimeout, "PSP secure OS start");
}

void Psp::create_ring() {
  const RegisterBlock& r = *c_.mp0;
  if (r.read<MP0_SMN_C2PMSG_71>() != 0) {  // a ring of an earlier session
    r.write_raw<MP0_SMN_C2PMSG_64>(kRingDestroy);
    std::this_thread::sleep_for(Milliseconds(20));
  }
  r.wait_until<MP0_SMN_C2PMSG_64>(kReady, kReady, kStepTimeout, "PSP ready for a ring");
  const uint64_t ring = gmc_.mc(ring_).value;
  r.write_raw<MP0_SMN_C2PMSG_69>(lo32(ring));
  r.write_raw<MP0_SMN_C2PMSG_70>(hi32(ring));
  r.write_raw<MP0_SMN_C2PMSG_71>(uint32_t(kRingSize));
  r.write_raw<MP0_SMN_C2PMSG_64>(kRingCreateKm);
  std::this_thread::sleep_for(Milliseconds(20));
  r.wait_until<MP0_SMN_C2PMSG_64>(0x8000ffff, kReady, kStepTimeout, "PSP ring creation");
}

Psp::Answer Psp::submit(const Command& command, const std::string& what) {
  const RegisterBlock& r = *c_.mp0;
  const uint32_t wptr = r.read<MP0_SMN_C2PMSG_67>();  // dwords
  if (wptr >= kRingSize / 4)
    throw Error({.device = c_.name(),
                 .what = "PSP ring write pointer is outside the ring",
                 .source = fmt::format("MP0_SMN_C2PMSG_67 = {:#x}", wptr),
                 .hint = "reset the GPU with AM_RESET=1"},
                "psp");
  ++fence_value_;
  Frame f{};
  const uint64_t cmd = gmc_.mc(cmd_).value, fence = gmc_.mc(fence_).value;
  f.cmd_lo = lo32(cmd);
  f.cmd_hi = hi32(cmd);
  f.fence_lo = lo32(fence);
  f.fence_hi = hi32(fence);
  f.fence_value = fence_value_;
  c_.vram->write(cmd_, std::as_bytes(std::span(&command, 1)));
  c_.vram->write(ring_ + uint64_t{wptr} * 4, std::as_bytes(std::span(&f, 1)));
  soc_.flush_hdp();
  r.write_raw<MP0_SMN_C2PMSG_67>(uint32_t((wptr + sizeof(Frame) / 4) % (kRingSize / 4)));
  poll_until(
      c_.io, "PSP fence", [&] { return c_.vram->read32(fence_); }, ~0u, fence_value_, kStepTimeout,
      "PSP command " + what);
  Answer a;
  static_assert(sizeof(Answer) == 20);
  c_.vram->read(cmd_ + offsetof(Command, resp), std::as_writable_bytes(std::span(&a, 1)));
  if (a.status != 0)
    throw Error({.device = c_.name(),
                 .what = fmt::format("PSP command {} failed", what),
                 .source = fmt::format("status {:#010x}{}", a.status,
                                       a.status == kStatusTeeNotSupported ? ", not supported" : ""),
                 .hint = "check that the firmware files belong to this chip and are complete"},
                "psp");
  return a;
}

uint32_t Psp::load_toc(std::span<const std::byte> toc) {
  copy_to_msg1(toc);
  Command cmd{};
  cmd.cmd_id = kLoadToc;
  const uint64_t at = gmc_.mc(msg1_).value;
  cmd.args[0] = lo32(at);
  cmd.args[1] = hi32(at);
  cmd.args[2] = uint32_t(toc.size());
  return submit(cmd, "LOAD_TOC").tmr_size;
}

void Psp::setup_tmr(uint32_t size) {
  Command cmd{};
  cmd.cmd_id = kSetupTmr;
  const uint64_t mc = gmc_.mc(tmr_).value, phys = gmc_.paddr_base() + tmr_.value;
  cmd.args[0] = lo32(mc);
  cmd.args[1] = hi32(mc);
  cmd.args[2] = size;
  cmd.args[3] = kTmrVirtPhyAddr;
  cmd.args[4] = lo32(phys);
  cmd.args[5] = hi32(phys);
  submit(cmd, "SETUP_TMR");
}

void Psp::load_ip_fw(const FwPiece& piece) {
  copy_to_msg1(piece.bytes);
  Command cmd{};
  cmd.cmd_id = kLoadIpFw;
  const uint64_t at = gmc_.mc(msg1_).value;
  cmd.args[0] = lo32(at);
  cmd.args[1] = hi32(at);
  cmd.args[2] = uint32_t(piece.bytes.size());
  cmd.args[3] = uint32_t(piece.type);
  submit(cmd, "LOAD_IP_FW of " + piece.from);
}

void Psp::init_hw(const FirmwareSet& fw, const std::function<void(const std::string&)>& step) {
  if (!sos_alive()) {
    step("PSP secure OS");
    load_sos(fw);
  }
  step("PSP ring");
  // A fence left by an earlier session must not look like an answer.
  c_.vram->zero(fence_, 4096);
  fence_value_ = 0;
  create_ring();
  uint32_t tmr_size = 0;
  if (auto toc = fw.sos.find(SosPiece::kToc); toc != fw.sos.end()) tmr_size = load_toc(toc->second);
  if (tmr_size > kTmrReserved)
    throw Error({.device = c_.name(),
                 .what = fmt::format("PSP {} asks for a trusted memory region of {} bytes, {} are reserved",
                                     c_.mp0->version().str(), tmr_size, kTmrReserved),
                 .source = {},
                 .hint = "these firmware files are newer than this version of baregpu"},
                "psp");
  step("PSP: SMU firmware");
  load_ip_fw(fw.smu);  // power management first, before the TMR (Linux psp_load_smu_fw)
  if (!(row_.boot_time_tmr && row_.autoload)) setup_tmr(tmr_size);
  for (const FwPiece& piece : fw.pieces) {
    step("PSP: " + piece.from);
    load_ip_fw(piece);
  }
  if (row_.autoload) {
    step("PSP: RLC autoload");
    Command cmd{};
    cmd.cmd_id = kAutoloadRlc;
    submit(cmd, "AUTOLOAD_RLC");
  }
}

}  // namespace baregpu::am
