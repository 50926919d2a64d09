// Firmware: containers, boot loader, ring commands, refusals; SMU mailbox; mode1 reset.
#include <filesystem>
#include <fstream>

#include "tests/mock/amd/rig.hpp"

using namespace rig;

namespace {

using Bytes = std::vector<uint8_t>;
constexpr uint64_t kMsg = 0x800000, kRing = 0x900000, kCmd = 0x910000, kFenceAt = 0x911000, kTmr = 0x2000000;

struct Firmware {
  std::string folder;
  Bytes file(const std::string& name) const {
    std::ifstream in(folder + "/" + name, std::ios::binary);
    REQUIRE(in);
    return Bytes(std::istreambuf_iterator<char>(in), {});
  }
};
uint32_t u32(const Bytes& b, size_t at) {
  return b.at(at) | b.at(at + 1) << 8 | b.at(at + 2) << 16 | uint32_t(b.at(at + 3)) << 24;
}
Bytes part(const Bytes& b, size_t at, size_t n) {
  REQUIRE(at + n <= b.size());
  return Bytes(b.begin() + long(at), b.begin() + long(at + n));
}

struct PspRig : Rig {
  Firmware fw;
  uint32_t wptr = 0, fence = 0, status = 0, tmr_size = 0;
  explicit PspRig(mock::MockOptions o = cold()) : Rig(o), fw{card->firmware_folder()} {}

  Bytes sos_piece(uint32_t type) {
    Bytes f = fw.file("psp_13_0_0_sos.bin");
    for (uint32_t i = 0; i < u32(f, 32); ++i)
      if (u32(f, 36 + 16 * i) == type) return part(f, u32(f, 24) + u32(f, 36 + 16 * i + 8), u32(f, 36 + 16 * i + 12));
    FAIL("no piece " << type);
    return {};
  }
  void put(uint64_t at, const Bytes& b) { vram.mmio().write_block(at, std::as_bytes(std::span(b))); }
  bool ready() { return poll(kPsp35, 0x80000000, 0x80000000); }
  /// One boot loader step; the error bits afterwards.
  uint32_t boot(uint32_t command, const Bytes& piece, bool flush_hdp = true) {
    put(kMsg, piece);
    if (flush_hdp) flush();
    w(kPsp36, uint32_t((kFb + kMsg) >> 20));
    w(kPsp35, command);
    REQUIRE(ready());
    return r(kPsp35) & 0xff;
  }
  void boot_all() {
    REQUIRE(ready());
    const std::pair<uint32_t, uint32_t> steps[] = {{0x80000, 3}, {0x10000000, 3}, {0x10000, 2},  {0xb0000, 7},
                                                   {0xd0000, 8}, {0xc0000, 9},    {0xe0000, 10}, {0x20000, 1}};
    for (auto [command, type] : steps) CHECK(boot(command, sos_piece(type)) == 0);
    REQUIRE(poll(kPsp81, ~0u, 1));
  }
  bool create_ring(uint64_t base = kFb + kRing, uint32_t size = 0x10000) {
    if (!poll(kPsp64, 0x80000000, 0x80000000)) return false;
    w(kPsp69, lo(base)), w(kPsp70, hi(base)), w(kPsp71, size), w(kPsp64, 0x20000);
    return poll(kPsp64, 0x8000ffff, 0x80000000);
  }
  uint32_t command(uint32_t id, std::vector<uint32_t> payload) {
    for (unsigned i = 0; i < 256; ++i) put32(kCmd + 4 * i, 0);
    put32(kCmd + 8, id);
    for (size_t i = 0; i < payload.size(); ++i) put32(kCmd + 28 + 4 * i, payload[i]);
    put32(kCmd + 864, 0xdead);
    for (unsigned i = 0; i < 16; ++i) put32(kRing + 4 * (wptr + i), 0);
    const uint32_t frame[] = {lo(kFb + kCmd), hi(kFb + kCmd), 0, lo(kFb + kFenceAt), hi(kFb + kFenceAt), ++fence};
    for (unsigned i = 0; i < 6; ++i) put32(kRing + 4 * (wptr + i), frame[i]);
    flush();
    wptr = (wptr + 16) % 0x4000;
    w(kPsp67, wptr);
    REQUIRE(wait32(kFenceAt, fence));
    tmr_size = v32(kCmd + 864 + 16);
    return status = v32(kCmd + 864);
  }
  uint32_t load(uint32_t type, const Bytes& b) {
    put(kMsg, b);
    return command(6, {lo(kFb + kMsg), hi(kFb + kMsg), uint32_t(b.size()), type});
  }
  uint32_t load_toc() {
    Bytes toc = sos_piece(4);
    put(kMsg, toc);
    return command(0x20, {lo(kFb + kMsg), hi(kFb + kMsg), uint32_t(toc.size())});
  }
  uint32_t setup_tmr(uint64_t at, uint32_t size) {
    return command(5, {lo(kFb + at), hi(kFb + at), size, 2, lo(at), hi(at)});
  }
  /// All images that the RLC hands out: {type, bytes}.
  std::vector<std::pair<uint32_t, Bytes>> images() {
    Bytes sdma = fw.file("sdma_6_0_0.bin"), mec = fw.file("gc_11_0_0_mec.bin"), imu = fw.file("gc_11_0_0_imu.bin"),
          rlc = fw.file("gc_11_0_0_rlc.bin");
    CHECK(u32(sdma, 8) == 2);  // header v2.0
    CHECK(u32(rlc, 8) == (3u << 16 | 2));
    return {{72, part(sdma, u32(sdma, 48), u32(sdma, 52))}, {71, part(sdma, u32(sdma, 24), u32(sdma, 36))},
            {89, part(mec, u32(mec, 24), u32(mec, 36))},    {94, part(mec, u32(mec, 48), u32(mec, 44))},
            {68, part(imu, u32(imu, 24), u32(imu, 32))},    {69, part(imu, u32(imu, 24) + u32(imu, 32), u32(imu, 40))},
            {26, part(rlc, u32(rlc, 160), u32(rlc, 156))},  {48, part(rlc, u32(rlc, 168), u32(rlc, 164))},
            {25, part(rlc, u32(rlc, 184), u32(rlc, 180))},  {7, part(rlc, u32(rlc, 200), u32(rlc, 196))},
            {8, part(rlc, u32(rlc, 24), u32(rlc, 20))}};
  }
  Bytes smu() {
    Bytes f = fw.file("smu_13_0_0.bin");
    return part(f, u32(f, 24), u32(f, 20));
  }
  void up_to_tmr() {
    boot_all();
    REQUIRE(create_ring());
    CHECK(load_toc() == 0);
    CHECK(load(18, smu()) == 0);
    CHECK(setup_tmr(kTmr, 0x1300000) == 0);
  }
  uint32_t smu_send(uint32_t id, uint32_t param) {
    w(kSmuResp, 0), w(kSmuParam, param), w(kSmuMsg, id);
    for (int i = 0; i < 20; ++i)
      if (uint32_t v = r(kSmuResp)) return v;
    return 0;
  }
};

}  // namespace

TEST_CASE("every chip has the files that drivers of its generation ask for", "[mock][psp]") {
  const auto folder = std::filesystem::temp_directory_path() / "baregpu-fw-test";
  auto [arch, files] = GENERATE(table<const char*, std::vector<std::string>>(
      {{"gfx1100",
        {"psp_13_0_0_sos", "smu_13_0_0", "sdma_6_0_0", "gc_11_0_0_mec", "gc_11_0_0_imu", "gc_11_0_0_rlc",
         "gc_11_0_0_pfp", "gc_11_0_0_me"}},
       {"gfx1101", {"psp_13_0_10_sos", "smu_13_0_10", "sdma_6_0_3", "gc_11_0_3_mec", "gc_11_0_3_imu", "gc_11_0_3_rlc"}},
       {"gfx1102",
        {"psp_13_0_7_sos", "smu_13_0_7", "sdma_6_0_2", "gc_11_0_2_mec", "gc_11_0_2_imu", "gc_11_0_2_rlc"}}}));
  mock::write_firmware(arch, folder.string());
  for (const std::string& f : files) {
    CAPTURE(f);
    const auto path = folder / (f + ".bin");
    REQUIRE(std::filesystem::exists(path));
    Bytes b = Firmware{folder.string()}.file(f + ".bin");
    CHECK(u32(b, 0) == b.size());                // size_bytes
    CHECK(u32(b, 24) + u32(b, 20) <= b.size());  // ucode inside
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("the whole firmware sequence brings the engines out of reset", "[mock][psp]") {
  PspRig g;
  CHECK(g.r(kPsp81) == 0);
  CHECK(g.smu_send(2, 0) == 0);  // no SMU firmware yet
  CHECK(g.r(kCpStat) == 0);
  g.up_to_tmr();
  for (auto& [type, bytes] : g.images()) {
    CAPTURE(type);
    CHECK(g.load(type, bytes) == 0);
  }
  g.w(kScratch7, 0x55);  // too early
  CHECK(g.broke("gc-in-reset"));
  CHECK(g.r(kScratch7) == 0);
  g.card->clear_violations();
  CHECK(g.command(0x21, {}) == 0);
  CHECK(g.poll(kBootload, 0x80000000, 0x80000000));
  CHECK(g.poll(kCpStat, ~0u, 0));
  g.w(kScratch7, 0x55);
  CHECK(g.r(kScratch7) == 0x55);
  CHECK(g.smu_send(2, 0) == 1);
  CHECK(g.notes() == "");
}

TEST_CASE("the boot loader refuses wrong order, wrong bytes, stale bytes and haste", "[mock][psp]") {
  PspRig g;
  REQUIRE(g.ready());
  SECTION("order") {
    CHECK(g.boot(0x10000, g.sos_piece(2)) != 0);
    CHECK(g.broke("psp-order"));
    CHECK(g.boot(0x80000, g.sos_piece(3)) == 0);
    CHECK(g.boot(0x20000, g.sos_piece(1)) != 0);
    CHECK(g.r(kPsp81) == 0);
  }
  SECTION("the bytes of another piece") {
    CHECK(g.boot(0x80000, g.sos_piece(5)) != 0);
    CHECK(g.broke("unsigned-firmware"));
  }
  SECTION("a changed byte") {
    Bytes b = g.sos_piece(3);
    b[100] ^= 1;
    CHECK(g.boot(0x80000, b) != 0);
    CHECK(g.broke("unsigned-firmware"));
  }
  SECTION("no HDP flush") {
    CHECK(g.boot(0x80000, g.sos_piece(3), false) != 0);
    CHECK(g.broke("hdp-stale-read"));
  }
  SECTION("a buffer outside the frame buffer") {
    g.w(kPsp36, 1);
    g.w(kPsp35, 0x80000);
    CHECK(g.ready());
    CHECK((g.r(kPsp35) & 0xff) != 0);
    CHECK(g.broke("psp-address"));
  }
  SECTION("a second command at once") {
    g.w(kPsp36, uint32_t((kFb + kMsg) >> 20));
    g.w(kPsp35, 0x80000);
    g.w(kPsp35, 0x80000);
    CHECK_FALSE((g.poll(kPsp35, 0x80000000, 0x80000000) && g.boot(0x80000, g.sos_piece(3)) == 0));
    CHECK(g.broke("psp-busy"));
  }
  SECTION("the ring before the secure OS") {
    CHECK_FALSE(g.create_ring());
    g.w(kPsp64, 0x20000);
    CHECK(g.broke("psp-order"));
  }
}

TEST_CASE("the boot loader is gone once the secure OS lives", "[mock][psp]") {
  PspRig g;
  g.boot_all();
  g.w(kPsp35, 0x80000);
  CHECK(g.broke("psp-order"));
  CHECK(g.r(kPsp81) == 1);
}

TEST_CASE("ring commands are refused with a status", "[mock][psp]") {
  PspRig g;
  g.boot_all();
  SECTION("ring: place, size, only one") {
    CHECK_FALSE(g.create_ring(0x1000));
    CHECK(g.broke("psp-address"));
    CHECK_FALSE(g.create_ring(kFb + kRing, 100));
    CHECK(g.create_ring());
    CHECK_FALSE(g.create_ring());
    CHECK(g.broke("psp-ring"));
  }
  SECTION("write pointers that do not count whole frames") {
    REQUIRE(g.create_ring());
    g.w(kPsp67, 8);
    CHECK(g.broke("psp-ring"));
    g.card->clear_violations();
    g.w(kPsp67, 0x4000);  // the end of the ring, not wrapped
    CHECK(g.broke("psp-ring"));
  }
  SECTION("firmware before the TMR, except the SMU's") {
    REQUIRE(g.create_ring());
    CHECK(g.load(18, g.smu()) == 0);
    CHECK(g.load(8, g.images().back().second) == 0xffff0007);
    CHECK(g.broke("psp-order"));
  }
  SECTION("images") {
    REQUIRE(g.create_ring());
    CHECK(g.load_toc() == 0);
    CHECK(g.tmr_size == 0x1200000);
    CHECK(g.setup_tmr(kTmr, 0x1000000) != 0);  // smaller than asked
    CHECK(g.setup_tmr(kTmr + 4096, 0x1300000) != 0);
    CHECK(g.setup_tmr(kTmr, 0x1300000) == 0);
    CHECK(g.setup_tmr(kTmr, 0x1300000) != 0);  // twice
    Bytes rlc = g.images().back().second;
    CHECK(g.load(7, rlc) == 0xffff000f);  // right bytes, wrong type
    CHECK(g.load(99, rlc) == 0xffff0006);
    Bytes longer = rlc;
    longer.push_back(0);
    CHECK(g.load(8, longer) == 0xffff000f);
    CHECK(g.command(6, {lo(kFb + kMsg), hi(kFb + kMsg), 0, 8}) == 0xffff0006);
    CHECK(g.command(0x99, {}) == 0x100);
    CHECK(g.load(8, rlc) == 0);
    CHECK(g.command(0x21, {}) == 0xffff0007);  // the other images are missing
    CHECK(g.r(kBootload) == 0);
  }
}

TEST_CASE("the trusted memory region is closed", "[mock][psp]") {
  PspRig g;
  g.put32(kTmr + 64, 5);
  g.up_to_tmr();
  CHECK(g.v32(kTmr + 64) == 0xffffffff);
  g.put32(kTmr + 64, 6);
  CHECK(g.broke("tmr-access"));
}

TEST_CASE("an injected PSP time-out never answers", "[mock][psp]") {
  mock::MockOptions o;
  o.fault = "psp-timeout@1";
  PspRig g(o);
  REQUIRE(g.ready());
  g.w(kPsp35, 0x80000);
  CHECK_FALSE(g.ready());
}

TEST_CASE("SMU: versions, clocks, tables, errors", "[mock][smu]") {
  PspRig g(Rig::amdgpu());
  CHECK(g.smu_send(1, 41) == 1);
  CHECK(g.r(kSmuParam) == 42);  // TestMessage adds one
  CHECK(g.smu_send(2, 0) == 1);
  CHECK(g.smu_send(0x7f, 0) == 0xfe);
  CHECK(g.smu_send(0x12, 5) == 0xfd);  // no table address yet
  CHECK(g.smu_send(0xe, hi(kFb + kMsg)) == 1);
  CHECK(g.smu_send(0xf, lo(kFb + kMsg)) == 1);
  CHECK(g.smu_send(6, 0) == 1);
  CHECK(g.smu_send(0x12, 5) == 1);
  CHECK(g.v32(kMsg) != 0xa5a5a5a5);
  CHECK(g.smu_send(0x1f, 2 << 16 | 0xff) == 1);
  const uint32_t levels = g.r(kSmuParam) & 0x7fffffff;
  REQUIRE(levels > 1);
  uint32_t last = 0;
  for (uint32_t i = 0; i < levels; ++i) {
    CHECK(g.smu_send(0x1f, 2 << 16 | i) == 1);
    CHECK((g.r(kSmuParam) & 0x7fffffff) > last);
    last = g.r(kSmuParam) & 0x7fffffff;
  }
  CHECK(g.smu_send(0x1f, 2 << 16 | levels) == 0xff);
  CHECK(g.smu_send(0x1f, 0xff) == 1);
  CHECK(g.r(kSmuParam) >> 31 == 1);  // GFXCLK is fine-grained
  CHECK(g.smu_send(0x19, 2 << 16 | last) == 1);
  CHECK(g.notes() == "");
  g.w(kSmuMsg, 2);  // the old response is still there
  CHECK(g.broke("smu-mailbox"));
}

TEST_CASE("mode1: the card vanishes, comes back cold, and has lost its config space", "[mock][reset]") {
  const bool debug_mailbox = GENERATE(true, false);
  PspRig g(Rig::amdgpu());
  CHECK(g.r(kPsp81) == 1);
  g.put32(kMsg, 0x1234);
  g.flush();
  g.w(kScratch7, 0x77);
  std::vector<uint32_t> saved;
  for (unsigned at = 0; at < 64; at += 4) saved.push_back(g.dev->config_read(at, 4));
  g.dev->set_bus_master(false);
  if (debug_mailbox) {
    g.w(0x16275, 0), g.w(kSmuDebugMsg, 2);
  } else {
    g.w(kSmuResp, 0), g.w(kSmuParam, 0), g.w(kSmuMsg, 0x2f);
    for (int i = 0; i < 4; ++i) g.r(kSmuResp);
  }
  CHECK(g.r(kMemsize) == 0xffffffff);
  CHECK(g.dev->config_read(0, 4) == 0xffffffff);
  CHECK(g.notes() == "");
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  CHECK(g.dev->config_read(0, 2) == 0x1002);
  CHECK(g.dev->config_read(0x14, 4) != saved[5]);
  for (unsigned at = 0; at < 64; at += 4) g.dev->config_write(at, 4, saved[at / 4]);
  CHECK(g.poll(kMemsize, ~0u, 24 * 1024));
  CHECK(g.r(kPsp81) == 0);
  CHECK(g.ready());
  CHECK(g.r(kScratch7) == 0);
  CHECK(g.v32(kMsg) != 0x1234);
  CHECK(g.v32(0) == 0xa5a5a5a5);  // junk, not zeros
  CHECK(g.notes() == "");
}
