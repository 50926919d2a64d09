#include "mock/amd/discovery.hpp"

#include <cstring>
#include <iterator>
#include <span>

namespace baregpu::mock {
namespace {

// Layouts: the Linux header discovery.h, as the hardware facts give them; all little-endian and packed.
class Blob {
 public:
  explicit Blob(size_t size) : bytes_(size) {}
  template <class T>
  void put(size_t offset, T v) {
    std::memcpy(std::span(bytes_).subspan(offset, sizeof(T)).data(), &v, sizeof(T));
  }
  uint16_t sum(size_t offset, size_t size) const {
    uint16_t s = 0;
    for (size_t i = 0; i < size; ++i) s = uint16_t(s + uint8_t(bytes_.at(offset + i)));
    return s;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

constexpr size_t kIpTable = 0x80, kBinarySize = 0x800, kGcTable = 0x500, kHarvestTable = 0x700, kHarvestSize = 136;
constexpr size_t kDieHeader = 80 + 8;  // the die need not follow its header at once

size_t put_ip_table(Blob& b, const Chip& chip) {
  const std::vector<IpBlock> blocks = ip_blocks(chip);
  size_t at = kIpTable + kDieHeader;
  b.put<uint16_t>(at, 0);  // die_id
  b.put<uint16_t>(at + 2, uint16_t(blocks.size()));
  at += 4;
  for (const IpBlock& ip : blocks) {
    b.put<uint16_t>(at, ip.hw_id);
    b.put<uint8_t>(at + 2, ip.instance);
    b.put<uint8_t>(at + 3, uint8_t(ip.bases.size()));
    b.put<uint8_t>(at + 4, ip.version.major);
    b.put<uint8_t>(at + 5, ip.version.minor);
    // VCN: the two top bits of the revision are capability flags that readers must mask.
    b.put<uint8_t>(at + 6, uint8_t(ip.version.revision | (ip.hw_id == 12 ? 0xc0 : 0)));
    b.put<uint8_t>(at + 7, 0);
    for (size_t i = 0; i < ip.bases.size(); ++i) b.put<uint32_t>(at + 8 + 4 * i, ip.bases[i]);
    at += 8 + 4 * ip.bases.size();
  }
  size_t size = at - kIpTable;
  b.put<uint32_t>(kIpTable, 0x53445049);  // "IPDS"
  b.put<uint16_t>(kIpTable + 4, 3);       // version
  b.put<uint16_t>(kIpTable + 6, uint16_t(size));
  b.put<uint32_t>(kIpTable + 8, 0x1);
  b.put<uint16_t>(kIpTable + 12, 1);  // num_dies
  b.put<uint16_t>(kIpTable + 14, 0);
  b.put<uint16_t>(kIpTable + 16, uint16_t(kIpTable + kDieHeader));  // relative to the start of the blob
  return size;
}

size_t put_gc_table(Blob& b, const Chip& c) {
  // v1.2: num_wgp, caches and limits of RDNA 3; index = (byte offset - 12) / 4.
  const uint32_t fields[] = {c.num_se, c.wgp_per_sa, 0,  c.rb_per_se, c.gl2c, 1536,        32,  32,    1792, 1024, 1,
                             32,       16,           32, 64,          1,      c.sa_per_se, 4,   4,     8,    1,    8,
                             2,        32,           1,  32,          16,     4,           256, c.gl2c};
  const size_t size = 12 + sizeof(fields);
  b.put<uint32_t>(kGcTable, 0x4347);
  b.put<uint16_t>(kGcTable + 4, 1);
  b.put<uint16_t>(kGcTable + 6, 2);
  b.put<uint32_t>(kGcTable + 8, uint32_t(size));
  for (size_t i = 0; i < std::size(fields); ++i) b.put<uint32_t>(kGcTable + 12 + 4 * i, fields[i]);
  return size;
}

void put_harvest_table(Blob& b) {
  b.put<uint32_t>(kHarvestTable, 0x56524148);  // "HARV"
  b.put<uint32_t>(kHarvestTable + 4, 1);
  // One fused-off memory controller; hw_id 0 ends the list.
  b.put<uint16_t>(kHarvestTable + 8, 150);
  b.put<uint8_t>(kHarvestTable + 10, 1);
}

void put_table_info(Blob& b, unsigned index, size_t offset, size_t size) {
  b.put<uint16_t>(12 + 8 * index, uint16_t(offset));
  b.put<uint16_t>(14 + 8 * index, b.sum(offset, size));
  b.put<uint16_t>(16 + 8 * index, uint16_t(size));
}

}  // namespace

std::vector<std::byte> discovery_blob(const Chip& chip) {
  Blob b(kBinarySize);
  size_t ip_size = put_ip_table(b, chip), gc_size = put_gc_table(b, chip);
  put_harvest_table(b);
  b.put<uint32_t>(0, 0x28211407);
  b.put<uint16_t>(4, 1);
  b.put<uint16_t>(6, 0);
  b.put<uint16_t>(10, uint16_t(kBinarySize));
  put_table_info(b, 0, kIpTable, ip_size);
  put_table_info(b, 1, kGcTable, gc_size);
  put_table_info(b, 2, kHarvestTable, kHarvestSize);
  b.put<uint16_t>(8, b.sum(10, kBinarySize - 10));
  return b.take();
}

}  // namespace baregpu::mock
