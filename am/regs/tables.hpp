// Register tables as data, by IP version. Shared by driver and mock: data only, no logic.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace baregpu::am {

/// IP version as discovery gives it.
struct IpVersion {
  uint8_t major = 0, minor = 0, revision = 0;
  constexpr auto operator<=>(const IpVersion&) const = default;
  std::string str() const;
};

/// IP blocks that have register tables. Values are our own; hw_id() gives discovery's number.
enum class HwIp : uint8_t { Gc, Sdma0, Mmhub, Nbio, Mp0, Mp1, Hdp, Osssys };
constexpr unsigned kHwIpCount = 8;
/// discovery hw_id of the block (hwid.tsv: GC 11, SDMA0 42, MMHUB 34, NBIF 108, MP0 255, MP1 1, HDP 41, OSSSYS 40).
uint16_t hw_id(HwIp ip);
const char* ip_name(HwIp ip);

struct FieldRow { const char* name; uint8_t id; uint8_t lo, hi; };
struct RegRow {
  const char* name;
  uint16_t id;           ///< RegName<id>
  uint8_t segment;       ///< index into the IP's base addresses
  uint32_t offset;       ///< dwords from that base
  uint16_t first_field, field_count;  // into RegTable::fields
};
struct RegTable {
  const char* name;      ///< "gc_11_0_0"
  HwIp ip;
  IpVersion version;
  std::span<const RegRow> rows;      ///< sorted by id
  std::span<const FieldRow> fields;

  std::span<const FieldRow> fields_of(const RegRow& r) const { return fields.subspan(r.first_field, r.field_count); }
  const RegRow* find(uint16_t id) const;
  const RegRow* find(std::string_view name) const;
};

std::span<const RegTable> all_reg_tables();
const char* reg_name(uint16_t id);
/// The newest table of the same major with version <= the chip's, or nullptr (Sdma0 of gfx11 is in the GC table).
const RegTable* find_reg_table(HwIp ip, IpVersion version);

}  // namespace baregpu::am
