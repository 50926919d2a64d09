#include "am/regs/tables.hpp"

#include <algorithm>

namespace baregpu::am {

std::string IpVersion::str() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(revision);
}

uint16_t hw_id(HwIp ip) {
  switch (ip) {
    case HwIp::Gc: return 11;
    case HwIp::Sdma0: return 42;
    case HwIp::Mmhub: return 34;
    case HwIp::Nbio: return 108;
    case HwIp::Mp0: return 255;
    case HwIp::Mp1: return 1;
    case HwIp::Hdp: return 41;
    case HwIp::Osssys: return 40;
  }
  return 0;
}

const char* ip_name(HwIp ip) {
  switch (ip) {
    case HwIp::Gc: return "GC";
    case HwIp::Sdma0: return "SDMA0";
    case HwIp::Mmhub: return "MMHUB";
    case HwIp::Nbio: return "NBIO";
    case HwIp::Mp0: return "MP0";
    case HwIp::Mp1: return "MP1";
    case HwIp::Hdp: return "HDP";
    case HwIp::Osssys: return "OSSSYS";
  }
  return "?";
}

const RegRow* RegTable::find(uint16_t id) const {
  auto it = std::lower_bound(rows.begin(), rows.end(), id, [](const RegRow& r, uint16_t v) { return r.id < v; });
  return it != rows.end() && it->id == id ? &*it : nullptr;
}

const RegRow* RegTable::find(std::string_view name) const {
  for (const RegRow& r : rows)
    if (name == r.name) return &r;
  return nullptr;
}

const RegTable* find_reg_table(HwIp ip, IpVersion version) {
  const RegTable* best = nullptr;
  for (const RegTable& t : all_reg_tables())
    if (t.ip == ip && t.version.major == version.major && t.version <= version && (!best || t.version > best->version))
      best = &t;
  return best;
}

}  // namespace baregpu::am
