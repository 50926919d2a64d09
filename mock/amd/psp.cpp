#include "mock/amd/psp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "drivers/base/bits.hpp"
#include "mock/amd/firmware.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

constexpr uint32_t kReady = 1u << 31;

// Boot pieces in their order, with the sos_bin_types whose bytes are accepted (psp_v13_0.c, psp_gfx_if.h). Before MP0
// 14 drivers send the key database again for the SPL command; the SPL piece itself is accepted too.
struct BootStep {
  uint32_t command;
  unsigned rank;
  std::array<uint32_t, 2> pieces;
  const char* name;
};
constexpr BootStep kBootSteps[] = {
    {0x80000, 1, {3, 3}, "KDB"},       {0x10000000, 2, {3, 5}, "SPL"},   {0x10000, 3, {2, 2}, "SYS_DRV"},
    {0xb0000, 4, {7, 7}, "SOC_DRV"},   {0xd0000, 5, {8, 8}, "INTF_DRV"}, {0xc0000, 6, {9, 9}, "DBG_DRV"},
    {0xe0000, 7, {10, 10}, "RAS_DRV"}, {0x20000, 8, {1, 1}, "SOS"},
};
constexpr unsigned kSosRank = 8;
// Pieces without which the chain of trust does not hold.
constexpr unsigned kNeedsBefore[] = {0, 0, 1, 2, 3, 3, 3, 3, 3};

// Ring control commands and statuses (psp_gfx_if.h; the error numbers are those of GlobalPlatform's TEE API).
constexpr uint32_t kInitRing = 0x20000, kDestroyRings = 0x30000, kMode1 = 0x70000;
constexpr uint32_t kOk = 0, kUnknownCommand = 0x100, kBadParameters = 0xffff0006, kBadState = 0xffff0007,
                   kSecurity = 0xffff000f;
constexpr uint32_t kCmdSetupTmr = 5, kCmdLoadIpFw = 6, kCmdDestroyTmr = 7, kCmdLoadToc = 0x20, kCmdAutoload = 0x21;
constexpr uint32_t kFwSmu = 18, kFwToc = 24;
constexpr size_t kFrame = 64, kCommandSize = 1024, kCmdIdAt = 8, kPayloadAt = 28, kResponseAt = 864;

// What the RLC hands out in its autoload: everything that compute on gfx11 needs.
constexpr uint32_t kAutoloadNeeds[] = {8, 7, 25, 26, 48, 68, 69, 71, 72, 89, 94};
constexpr uint32_t kLoadable[] = {7,  8,  18, 20, 21, 22, 25, 26, 27, 28, 29, 48, 65, 66, 68, 69, 71,
                                  72, 76, 77, 78, 79, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97};

}  // namespace

Psp::Psp(Machine& machine) : m_(machine) {
  RegisterFile& r = m_.regs;
  r.on_read("MP0_SMN_C2PMSG_35", [this] { return (ready_ ? kReady : 0u) | boot_status_; });
  r.on_write("MP0_SMN_C2PMSG_35", [this](uint32_t v) { boot_command(v); });
  r.on_read("MP0_SMN_C2PMSG_81", [this] { return sos_alive_ ? 1u : 0u; });
  r.read_only("MP0_SMN_C2PMSG_81");
  r.on_read("MP0_SMN_C2PMSG_58", [this] { return sos_alive_ ? 0x00310008u : 0u; });
  r.on_write("MP0_SMN_C2PMSG_64", [this](uint32_t v) { ring_control(v); });
  r.on_write("MP0_SMN_C2PMSG_67", [this](uint32_t v) { ring_wptr(v); });
}

void Psp::reset(bool stalled) {
  stalled_ = stalled;
  ready_ = broken_ = sos_alive_ = ring_ = tmr_ = false;
  boot_step_ = 0;
  boot_status_ = wptr_ = done_wptr_ = tmr_needed_ = 0;
  loaded_.clear();
  m_.regs.set_gc_gate(true);
  if (!stalled) m_.defer([this] { ready_ = true; });
}

void Psp::set_running() {
  ready_ = sos_alive_ = true;
  boot_step_ = kSosRank;
  m_.regs.set("MP0_SMN_C2PMSG_64", kReady);
  // The other driver's ring is still registered.
  ring_ = true;
  m_.regs.set("MP0_SMN_C2PMSG_71", 0x1000);
  m_.regs.set("MP0_SMN_C2PMSG_69", lo32(kFbBase + 0x100000));
  m_.regs.set("MP0_SMN_C2PMSG_70", hi32(kFbBase + 0x100000));
}

// PSP addresses are MC addresses in the frame buffer; others go through the MM hub's page tables (tinygrad's USB
// transport).
bool Psp::read(uint64_t mc, std::span<std::byte> out) {
  if (!m_.in_fb(mc, out.size())) return m_.mm.read(mc, out, Client::kPsp, "PSP");
  m_.memory.vram_read(mc - kFbBase, out, "PSP");
  return true;
}

bool Psp::write(uint64_t mc, std::span<const std::byte> in) {
  if (!m_.in_fb(mc, in.size())) return m_.mm.write(mc, in, Client::kPsp, "PSP");
  m_.memory.vram_write(mc - kFbBase, in, "PSP");
  return true;
}

void Psp::boot_command(uint32_t command) {
  if (stalled_ || broken_) return;
  if (sos_alive_) {  // the boot loader is gone
    m_.rules.broken("psp-order", fmt::format("boot loader command {:#x} while the secure OS runs", command));
    return;
  }
  if (!ready_ &&
      m_.rules.broken("psp-busy", fmt::format("boot loader command {:#x} before C2PMSG_35 bit 31", command))) {
    broken_ = true;
    return;
  }
  ready_ = false;
  boot_status_ = 0;
  if (m_.faults.hit(FaultPoint::kPspTimeout)) return;
  m_.defer([this, command] { finish_boot_command(command); });
}

void Psp::finish_boot_command(uint32_t command) {
  const BootStep* step = nullptr;
  for (const BootStep& s : kBootSteps)
    if (s.command == command) step = &s;
  auto refuse = [&](const char* rule, uint32_t status, const std::string& why) {
    bool strict = m_.rules.broken(rule, why);
    ready_ = true;
    if (strict) boot_status_ = status;
    return strict;
  };
  if (!step) {
    refuse("psp-order", 0x08, fmt::format("unknown boot loader command {:#x}", command));
    return;
  }
  uint64_t mc = uint64_t{m_.regs.get("MP0_SMN_C2PMSG_36")} << 20;
  constexpr uint64_t kWindow = MiB;
  if (!m_.in_fb(mc, kWindow)) {
    Mapping map = m_.mm.lookup(mc, "PSP");
    if (map.status != Mapping::Status::kOk) {
      refuse("psp-address", 0x04,
             fmt::format("{}: buffer {:#x} is neither in the frame buffer nor mapped", step->name, mc));
      return;
    }
  }
  // Only the image is read: bytes of the window that nobody wrote must not count as stale.
  std::array<std::byte, 32> head;
  read(mc, head);
  uint32_t size = 0;
  std::memcpy(&size, &head[8], 4);
  size = uint32_t(std::clamp<uint64_t>(size, 32, kWindow));
  std::vector<std::byte> bytes(size);
  read(mc, bytes);
  std::optional<ImageInfo> image = verify_image(m_.chip, bytes);
  const bool right =
      image && (image->kind == (kBootPiece | step->pieces[0]) || image->kind == (kBootPiece | step->pieces[1]));
  if (!right) {
    if (refuse("unsigned-firmware", 0x10,
               fmt::format("{}: {}", step->name,
                           image ? fmt::format("image of kind {:#x}", image->kind) : "signature does not match")))
      return;
  }
  // A driver that died half-way starts again with the key database; everything else keeps its place.
  const bool restart = step->rank == 1;
  if ((step->rank < boot_step_ && !restart) || boot_step_ < kNeedsBefore[step->rank]) {
    if (refuse("psp-order", 0x20, fmt::format("{} after step {}", step->name, boot_step_))) return;
  }
  boot_step_ = step->rank;
  boot_status_ = 0;
  if (step->rank != kSosRank) {
    ready_ = true;
    return;
  }
  m_.defer([this] {
    sos_alive_ = true;
    ready_ = true;
    m_.regs.set("MP0_SMN_C2PMSG_64", kReady);
  });
}

void Psp::ring_control(uint32_t v) {
  if (!sos_alive_) {
    m_.rules.broken("psp-order", fmt::format("ring command {:#x} without a secure OS", v));
    return;
  }
  m_.regs.set("MP0_SMN_C2PMSG_64", v & ~kReady);
  if (m_.faults.hit(FaultPoint::kPspTimeout)) return;
  m_.defer([this, v] {
    uint32_t status = 0;
    if (v == kDestroyRings) {
      ring_ = false;
      m_.regs.set("MP0_SMN_C2PMSG_71", 0);
    } else if (v == kInitRing) {
      uint64_t base = join32(m_.regs.get("MP0_SMN_C2PMSG_69"), m_.regs.get("MP0_SMN_C2PMSG_70"));
      uint32_t size = m_.regs.get("MP0_SMN_C2PMSG_71");
      if (ring_ && m_.rules.broken("psp-ring", "a ring exists already")) {
        status = 0x0007;
      } else if (size < kFrame || size % kFrame || base % 4096) {
        m_.rules.broken("psp-ring", fmt::format("ring at {:#x} of {:#x} bytes", base, size));
        status = 0x0006;
      } else if (!m_.in_fb(base, size)) {
        m_.rules.broken("psp-address", fmt::format("ring at {:#x} is not in the frame buffer", base));
        status = 0x0006;
      } else {
        ring_ = true;
        wptr_ = done_wptr_ = 0;
        m_.regs.set("MP0_SMN_C2PMSG_67", 0);
      }
    } else if (v == kMode1) {
      m_.mode1_reset();
      return;
    } else {
      status = 0x0100;
    }
    m_.regs.set("MP0_SMN_C2PMSG_64", kReady | status);
  });
}

void Psp::ring_wptr(uint32_t v) {
  m_.regs.set("MP0_SMN_C2PMSG_67", v);
  if (!ring_) {
    m_.rules.broken("psp-ring", fmt::format("write pointer {:#x} without a ring", v));
    return;
  }
  const uint32_t ring_dwords = m_.regs.get("MP0_SMN_C2PMSG_71") / 4, step = kFrame / 4;
  if (v % step || v >= ring_dwords) {
    if (m_.rules.broken("psp-ring", fmt::format("write pointer {:#x} of a ring of {:#x} dwords", v, ring_dwords)))
      return;
    v %= ring_dwords;
  }
  wptr_ = v;
  if (m_.faults.hit(FaultPoint::kPspTimeout)) return;
  m_.defer([this, ring_dwords] {
    while (done_wptr_ != wptr_) {
      run_frame(done_wptr_);
      done_wptr_ = (done_wptr_ + kFrame / 4) % ring_dwords;
    }
  });
}

void Psp::run_frame(uint32_t wptr) {
  uint64_t ring = join32(m_.regs.get("MP0_SMN_C2PMSG_69"), m_.regs.get("MP0_SMN_C2PMSG_70"));
  std::array<uint32_t, kFrame / 4> frame;
  read(ring + 4 * uint64_t{wptr}, std::as_writable_bytes(std::span(frame)));
  uint64_t buffer = join32(frame[0], frame[1]), fence = join32(frame[3], frame[4]);
  if (!m_.in_fb(buffer, kCommandSize) || !m_.in_fb(fence, 4)) {
    if (m_.rules.broken("psp-address", fmt::format("frame with command buffer {:#x}, fence {:#x}", buffer, fence)))
      return;
  }
  std::array<std::byte, kCommandSize> bytes;
  // The command is as long as its payload; the rest of the page may be old.
  read(buffer, std::span(bytes).first(kPayloadAt + 64));
  uint32_t id;
  std::memcpy(&id, &bytes[kCmdIdAt], 4);
  std::memset(&bytes[kResponseAt], 0, 96);
  uint32_t status = execute(id, bytes.data());
  std::memcpy(&bytes[kResponseAt], &status, 4);
  write(buffer + kResponseAt, std::span(bytes).subspan(kResponseAt, 96));
  write(fence, std::as_bytes(std::span(&frame[5], 1)));  // last: who sees it may read the response
}

uint32_t Psp::execute(uint32_t id, std::byte* buffer) {
  std::array<uint32_t, 8> p;
  std::memcpy(p.data(), buffer + kPayloadAt, sizeof(p));
  switch (id) {
    case kCmdLoadToc: return load_toc(p.data(), buffer + kResponseAt);
    case kCmdLoadIpFw: return load_ip_fw(p.data());
    case kCmdSetupTmr: return setup_tmr(p.data());
    case kCmdAutoload: return autoload();
    case kCmdDestroyTmr:
      m_.memory.set_tmr(0, 0);
      tmr_ = false;
      return kOk;
    default: m_.rules.broken("psp-order", fmt::format("unknown ring command {:#x}", id)); return kUnknownCommand;
  }
}

uint32_t Psp::load_toc(const uint32_t* p, std::byte* response) {
  uint64_t at = join32(p[0], p[1]);
  uint32_t size = p[2];
  if (size < 64 || size > MiB || !m_.in_fb(at, size)) {
    m_.rules.broken("psp-address", fmt::format("LOAD_TOC of {:#x} bytes at {:#x}", size, at));
    return kBadParameters;
  }
  std::vector<std::byte> bytes(size);
  read(at, bytes);
  auto image = verify_image(m_.chip, bytes);
  if (!image || image->kind != kFwToc) {
    if (m_.rules.broken("unsigned-firmware", "LOAD_TOC: not a signed table of contents")) return kSecurity;
  }
  tmr_needed_ = kTmrSize;
  std::memcpy(response + 16, &tmr_needed_, 4);
  return kOk;
}

uint32_t Psp::load_ip_fw(const uint32_t* p) {
  uint64_t at = join32(p[0], p[1]);
  const uint32_t size = p[2], type = p[3];
  if (std::find(std::begin(kLoadable), std::end(kLoadable), type) == std::end(kLoadable)) {
    m_.rules.broken("psp-order", fmt::format("LOAD_IP_FW of unknown type {}", type));
    return kBadParameters;
  }
  if (type != kFwSmu && !tmr_) {
    if (m_.rules.broken("psp-order", fmt::format("LOAD_IP_FW type {} before the TMR is set up", type)))
      return kBadState;
  }
  if (size == 0 || size > 16 * MiB || !m_.in_fb(at, size)) {
    m_.rules.broken("psp-address", fmt::format("LOAD_IP_FW type {}: {:#x} bytes at {:#x}", type, size, at));
    return kBadParameters;
  }
  std::vector<std::byte> bytes(size);
  read(at, bytes);
  auto image = verify_image(m_.chip, bytes);
  if (!image || image->kind != type || image->size != size) {
    if (m_.rules.broken("unsigned-firmware",
                        fmt::format("LOAD_IP_FW type {}: {}", type,
                                    image ? fmt::format("image of kind {:#x}, {:#x} bytes", image->kind, image->size)
                                          : "signature does not match")))
      return kSecurity;
  }
  loaded_.insert(type);
  if (type == kFwSmu) m_.smu.set_running();
  return kOk;
}

uint32_t Psp::setup_tmr(const uint32_t* p) {
  uint64_t mc = join32(p[0], p[1]), phys = join32(p[4], p[5]);
  const uint32_t size = p[2], flags = p[3];
  auto refuse = [&](const char* rule, uint32_t status, const std::string& why) {
    return m_.rules.broken(rule, "SETUP_TMR: " + why) ? status : kOk;
  };
  if (tmr_)
    if (uint32_t s = refuse("psp-order", kBadState, "a TMR exists already")) return s;
  if (!is_aligned(mc, MiB) || !m_.in_fb(mc, size))
    if (uint32_t s = refuse("psp-address", kBadParameters, fmt::format("{:#x} bytes at {:#x}", size, mc))) return s;
  if (flags & 2 && phys != mc - kFbBase)  // virt_phy_addr: the physical address is given too
    if (uint32_t s = refuse("psp-address", kBadParameters, fmt::format("physical address {:#x} of {:#x}", phys, mc)))
      return s;
  if (tmr_needed_ == 0 || size < tmr_needed_)
    if (uint32_t s = refuse("psp-order", kBadParameters,
                            fmt::format("{:#x} bytes, the table of contents asks for {:#x}", size, tmr_needed_)))
      return s;
  tmr_ = true;
  if (m_.in_fb(mc, size)) m_.memory.set_tmr(mc - kFbBase, size);
  return kOk;
}

uint32_t Psp::autoload() {
  std::string missing;
  for (uint32_t type : kAutoloadNeeds)
    if (!loaded_.contains(type)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", type);
  if (!missing.empty() && m_.rules.broken("psp-order", "AUTOLOAD_RLC without firmware types " + missing))
    return kBadState;
  m_.gfx.start_autoload();
  return kOk;
}

}  // namespace baregpu::mock
