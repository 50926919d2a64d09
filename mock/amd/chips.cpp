#include "mock/amd/chips.hpp"

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"

namespace baregpu::mock {
namespace {

// Device ids: pci.ids (0x744c Navi31 XTX, 0x747e Navi32 XTX, 0x7480 Navi33). IP versions: the blobs of these chips as
// the Linux driver reports them; WGP, SE and L2 counts: RDNA 3 products (RX 7900 XTX 6 SE x 2 SA x 4 WGP, RX 7800 XT 3
// SE x 2 SA x 5 WGP, RX 7600 2 SE x 2 SA x 4 WGP; L2 6, 4 and 2 MiB in 256 KiB channels).
constexpr Chip kChips[] = {
    {.arch = "gfx1100",
     .model = "Navi31 [Radeon RX 7900 XTX] (mock)",
     .target = isa::Target::kGfx1100,
     .device_id = 0x744c,
     .subsystem_id = 0x0e3b,
     .pci_revision = 0xc8,
     .vram_size = 24 * GiB,
     .gc = {11, 0, 0},
     .mp = {13, 0, 0},
     .sdma = {6, 0, 0},
     .mmhub = {3, 0, 0},
     .nbio = {4, 3, 0},
     .hdp = {6, 0, 0},
     .osssys = {6, 0, 0},
     .num_se = 6,
     .wgp_per_sa = 4,
     .sa_per_se = 2,
     .rb_per_se = 8,
     .gl2c = 24},
    {.arch = "gfx1101",
     .model = "Navi32 [Radeon RX 7800 XT] (mock)",
     .target = isa::Target::kGfx1101,
     .device_id = 0x747e,
     .subsystem_id = 0x0e3b,
     .pci_revision = 0xc8,
     .vram_size = 16 * GiB,
     .gc = {11, 0, 3},
     .mp = {13, 0, 10},
     .sdma = {6, 0, 3},
     .mmhub = {3, 0, 0},
     .nbio = {4, 3, 0},
     .hdp = {6, 0, 0},
     .osssys = {6, 0, 0},
     .num_se = 3,
     .wgp_per_sa = 5,
     .sa_per_se = 2,
     .rb_per_se = 8,
     .gl2c = 16},
    {.arch = "gfx1102",
     .model = "Navi33 [Radeon RX 7600] (mock)",
     .target = isa::Target::kGfx1102,
     .device_id = 0x7480,
     .subsystem_id = 0x0e3b,
     .pci_revision = 0xcf,
     .vram_size = 8 * GiB,
     .gc = {11, 0, 2},
     .mp = {13, 0, 7},
     .sdma = {6, 0, 2},
     .mmhub = {3, 0, 2},
     .nbio = {4, 3, 0},
     .hdp = {6, 0, 0},
     .osssys = {6, 0, 0},
     .num_se = 2,
     .wgp_per_sa = 4,
     .sa_per_se = 2,
     .rb_per_se = 8,
     .gl2c = 8},
};

}  // namespace

std::span<const Chip> amd_chips() { return kChips; }

const Chip& find_chip(const std::string& arch) {
  std::string names;
  for (const Chip& c : kChips) {
    if (arch == c.arch) return c;
    names += std::string(names.empty() ? "" : ", ") + c.arch;
  }
  throw UsageError(
      {.device = {}, .what = "there is no mock of '" + arch + "'", .source = {}, .hint = "known: " + names});
}

// Segment bases: sienna_cichlid_ip_offset.h and tinygrad's mock blob (NBIO segment 5). The order is mixed on purpose
// and blocks that no driver here needs are listed too, as in real blobs.
std::vector<IpBlock> ip_blocks(const Chip& c) {
  const std::vector<uint32_t> gc = {0x1260, 0xa000, 0x1c000, 0x2402c00};
  return {
      {1, 0, c.mp, {0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00}},
      {3, 0, {13, 0, 2}, {0x16600, 0x2400c00}},
      {4, 0, {13, 0, 6}, {0x16800, 0x16a00, 0x440000, 0x2401000}},
      {5, 0, {13, 0, 0}, {0x17400, 0x2401400}},
      {6, 0, {13, 0, 2}, {0x16c00, 0x2401800}},
      {150, 0, {8, 10, 0}, {0x14000, 0x2425800}},
      {150, 1, {8, 10, 0}, {0x54000, 0x2425c00}},
      {11, 0, c.gc, gc},
      {12, 0, {4, 0, 0}, {0x7800, 0x7e00, 0x2403000}},
      {271, 0, {3, 2, 0}, {0x12, 0xc0, 0x34c0, 0x9000, 0x2403c00}},
      {42, 0, c.sdma, gc},
      {43, 0, c.sdma, gc},
      {34, 0, c.mmhub, {0x1a000, 0x2408800}},
      {35, 0, {3, 0, 0}, {0xc00, 0x2408c00}},
      {40, 0, c.osssys, {0x10a0, 0x240a000}},
      {41, 0, c.hdp, {0xf20, 0x240a400}},
      {46, 0, {4, 3, 0}, {0x7000, 0x240b800}},
      {250, 0, {1, 0, 0}, {}},  // an id that no list knows, without bases
      {108, 0, c.nbio, {0x0, 0x14, 0xd20, 0x10400, 0x241b000, 0x4040000}},
      {255, 0, c.mp, {0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00}},
  };
}

}  // namespace baregpu::mock
