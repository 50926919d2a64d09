#include "am/discovery.hpp"

#include <fmt/format.h>

#include <numeric>

#include "drivers/base/reader.hpp"

// Layouts: Linux drivers/gpu/drm/amd/include/discovery.h and amdgpu_discovery.c.
namespace baregpu::am {
namespace {

constexpr uint32_t kBinarySignature = 0x28211407, kIpSignature = 0x53445049 /* IPDS */, kGcTableId = 0x4347 /* GC */;
constexpr uint32_t kHarvestSignature = 0x56524148 /* HARV */;
constexpr unsigned kMaxDies = 16, kMaxBases = 64;
constexpr uint16_t kVcnHwId = 12;
enum Table { kIpDiscovery = 0, kGc = 1, kHarvest = 2 };

uint16_t byte_sum(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint16_t{0},
                         [](uint16_t s, std::byte b) { return uint16_t(s + std::to_integer<uint16_t>(b)); });
}

struct TableInfo {
  uint16_t offset, checksum, size, padding;
};

TableInfo table_info(const ByteReader& r, Table t) { return r.at<TableInfo>(12 + 8 * t); }

void check_sum(const ByteReader& r, const TableInfo& t, uint64_t length, const char* name) {
  uint16_t sum = byte_sum(r.range(t.offset, length));
  if (sum != t.checksum) r.fail(fmt::format("{} table checksum is {:#06x}, table says {:#06x}", name, sum, t.checksum));
}

void parse_ips(const ByteReader& r, const TableInfo& table, Discovery& out) {
  const uint64_t base = table.offset;
  if (r.at<uint32_t>(base) != kIpSignature) r.fail("IP discovery signature is not 'IPDS'");
  const uint16_t version = r.at<uint16_t>(base + 4), size = r.at<uint16_t>(base + 6), dies = r.at<uint16_t>(base + 12);
  check_sum(r, table, size, "IP discovery");
  if (version < 1 || version > 4) r.fail(fmt::format("IP discovery version {} is not known (1..4)", version));
  if (dies == 0 || dies > kMaxDies) r.fail(fmt::format("num_dies is {}, at most {} are possible", dies, kMaxDies));
  const bool wide = version == 4 && (r.at<uint8_t>(base + 78) & 1);
  for (unsigned d = 0; d < dies; ++d) {
    uint64_t pos = r.at<uint16_t>(base + 14 + 4 * d + 2);  // die_offset counts from the start of the blob
    if (r.at<uint16_t>(pos) != d) r.fail(fmt::format("die {} has die_id {}", d, r.at<uint16_t>(pos)));
    const unsigned num_ips = r.at<uint16_t>(pos + 2);
    pos += 4;
    for (unsigned i = 0; i < num_ips; ++i) {
      IpInstance ip;
      ip.hw_id = r.at<uint16_t>(pos);
      ip.instance = r.at<uint8_t>(pos + 2);
      const unsigned bases = r.at<uint8_t>(pos + 3);
      ip.die = uint8_t(d);
      ip.version = {r.at<uint8_t>(pos + 4), r.at<uint8_t>(pos + 5), r.at<uint8_t>(pos + 6)};
      if (ip.hw_id == kVcnHwId) ip.version.revision &= 0x3f;  // bits 7:6 are capability flags there
      if (bases > kMaxBases)
        r.fail(fmt::format("die {} entry {} (hw_id {}): num_base_address {}", d, i, ip.hw_id, bases));
      pos += 8;
      for (unsigned b = 0; b < bases; ++b, pos += wide ? 8 : 4) {
        uint64_t v = wide ? r.at<uint64_t>(pos) & 0x3fffffff : r.at<uint32_t>(pos);
        ip.bases.push_back(uint32_t(v));
      }
      out.ips.push_back(std::move(ip));
    }
  }
}

void parse_gc(const ByteReader& r, const TableInfo& table, Discovery& out) {
  const uint64_t b = table.offset;
  if (r.at<uint32_t>(b) != kGcTableId) r.fail("GC info table has the wrong id");
  const uint16_t major = r.at<uint16_t>(b + 4);
  const uint32_t size = r.at<uint32_t>(b + 8);
  check_sum(r, table, size, "GC info");
  auto u = [&](unsigned off) {
    if (off + 4 > size) r.fail(fmt::format("GC info table of {} bytes lacks the field at {}", size, off));
    return r.at<uint32_t>(b + off);
  };
  GcInfo g;
  g.num_se = u(12);
  g.wave_size = u(56);
  g.max_waves_per_simd = u(60);
  g.max_scratch_slots_per_cu = u(64);
  g.lds_size_kib = u(68);
  switch (major) {
    case 1:
      g.cu_per_sa = 2 * (u(16) + u(20));  // two CUs a WGP
      g.num_gl2c = u(28);
      g.sa_per_se = u(76);
      break;
    case 2:
      g.cu_per_sa = u(16);
      g.sa_per_se = u(20);
      g.num_gl2c = u(28);
      break;
    default: r.fail(fmt::format("GC info table version {} is not known (1, 2)", major));
  }
  if (g.num_se == 0 || g.num_se > 64 || g.sa_per_se == 0 || g.sa_per_se > 16 || g.cu_per_sa == 0 || g.cu_per_sa > 64)
    r.fail(fmt::format("GC info: {} shader engines x {} arrays x {} CUs is not plausible", g.num_se, g.sa_per_se,
                       g.cu_per_sa));
  out.gc = g;
}

void parse_harvest(const ByteReader& r, const TableInfo& table, Discovery& out) {
  constexpr unsigned kEntries = 32, kHarvestBytes = 8 + 4 * kEntries;
  if (r.at<uint32_t>(table.offset) != kHarvestSignature) r.fail("harvest table signature is not 'HARV'");
  check_sum(r, table, kHarvestBytes, "harvest");
  for (unsigned i = 0; i < kEntries; ++i) {
    uint16_t id = r.at<uint16_t>(table.offset + 8 + 4 * i);
    uint8_t instance = r.at<uint8_t>(table.offset + 8 + 4 * i + 2);
    if (id == 0) break;
    for (IpInstance& ip : out.ips)
      if (ip.hw_id == id && ip.instance == instance) ip.harvested = true;
  }
}

}  // namespace

const IpInstance* Discovery::find(HwIp ip, unsigned instance) const {
  unsigned n = 0;
  for (const IpInstance& i : ips)
    if (i.hw_id == hw_id(ip) && !i.harvested && n++ == instance) return &i;
  return nullptr;
}

const IpInstance& Discovery::require(HwIp ip) const {
  if (const IpInstance* i = find(ip)) return *i;
  throw ParseError(
      {.device = {}, .what = fmt::format("IP discovery lists no {} block", ip_name(ip)), .source = {}, .hint = {}});
}

Discovery parse_discovery(std::span<const std::byte> blob) {
  ByteReader r(blob, "IP discovery blob");
  if (r.at<uint32_t>(0) != kBinarySignature)
    r.fail(fmt::format("signature is {:#010x}, expected {:#010x} (VRAM not reachable, or the VBIOS has not run)",
                       r.at<uint32_t>(0), kBinarySignature));
  const uint16_t sum = r.at<uint16_t>(8), size = r.at<uint16_t>(10);
  if (size < 60) r.fail(fmt::format("binary_size {} is smaller than the header", size));
  if (byte_sum(r.range(10, size - 10u)) != sum) r.fail("binary_checksum does not match");
  ByteReader body(r.range(0, size), "IP discovery blob");
  Discovery d;
  TableInfo ip = table_info(body, kIpDiscovery);
  if (ip.offset == 0) r.fail("it has no IP discovery table");
  parse_ips(body, ip, d);
  if (TableInfo t = table_info(body, kGc); t.offset) parse_gc(body, t, d);
  if (TableInfo t = table_info(body, kHarvest); t.offset) parse_harvest(body, t, d);
  return d;
}

}  // namespace baregpu::am
