#include "mock/amd/registers.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

namespace baregpu::mock {

RegisterFile::RegisterFile(const Chip& chip, Rules& rules) : rules_(rules) {
  using am::HwIp;
  for (const IpBlock& ip : ip_blocks(chip)) {
    if (ip.instance != 0) continue;
    for (HwIp kind : {HwIp::Gc, HwIp::Mmhub, HwIp::Nbio, HwIp::Mp0, HwIp::Mp1, HwIp::Hdp, HwIp::Osssys})
      if (am::hw_id(kind) == ip.hw_id) add_table(am::find_reg_table(kind, ip.version), ip.bases);
  }
}

void RegisterFile::add_table(const am::RegTable* table, const std::vector<uint32_t>& bases) {
  if (!table) return;
  for (const am::RegRow& row : table->rows) {
    if (row.segment >= bases.size()) continue;
    uint32_t at = bases[row.segment] + row.offset;
    by_name_.try_emplace(row.name, at);  // two names of one address are both valid
    auto [it, fresh] = regs_.try_emplace(at);
    if (fresh) it->second.name = row.name, it->second.ip = table->ip;
  }
}

void RegisterFile::add(uint32_t dword, const char* name, am::HwIp ip) {
  by_name_.try_emplace(name, dword);
  auto [it, fresh] = regs_.try_emplace(dword);
  if (fresh) it->second.name = name, it->second.ip = ip;
}

uint32_t RegisterFile::dword(std::string_view name) const {
  auto it = by_name_.find(std::string(name));
  if (it == by_name_.end()) throw Error(fmt::format("mock: no register '{}' in this chip's tables", name));
  return it->second;
}

void RegisterFile::read_only(std::string_view name) { regs_.at(dword(name)).read_only = true; }

void RegisterFile::set_reset_value(std::string_view name, uint32_t value) {
  Reg& r = regs_.at(dword(name));
  r.value = r.reset_value = value;
}

std::string RegisterFile::name(uint32_t dword) const {
  auto it = regs_.find(dword);
  return it == regs_.end() ? "?" : it->second.name;
}

bool RegisterFile::is_gc(uint32_t dword) const {
  auto it = regs_.find(dword);
  return it != regs_.end() && it->second.ip == am::HwIp::Gc;
}

uint32_t RegisterFile::access_read(uint32_t dword) {
  auto it = regs_.find(dword);
  if (it == regs_.end()) {
    rules_.broken("unknown-register", fmt::format("read of dword {:#x}", dword));
    return 0;
  }
  Reg& r = it->second;
  if (gc_closed_ && r.ip == am::HwIp::Gc && !r.exempt) return 0;
  return r.read ? r.read() : r.value;
}

void RegisterFile::access_write(uint32_t dword, uint32_t value) {
  auto it = regs_.find(dword);
  if (it == regs_.end()) {
    rules_.broken("unknown-register", fmt::format("write of {:#x} to dword {:#x}", value, dword));
    return;
  }
  Reg& r = it->second;
  if (gc_closed_ && r.ip == am::HwIp::Gc &&
      rules_.broken("gc-in-reset", fmt::format("{} = {:#x} before the RLC autoload was complete", r.name, value)))
    return;
  if (r.read_only) {
    rules_.broken("read-only-register", fmt::format("write of {:#x} to {}", value, r.name));
    return;
  }
  if (r.write)
    r.write(value);
  else
    r.value = value;
}

void RegisterFile::reset() {
  for (auto& [dword, r] : regs_) r.value = r.reset_value;
}

void RegisterFile::reset_gc() {
  for (auto& [dword, r] : regs_)
    if (r.ip == am::HwIp::Gc) r.value = r.reset_value;
}

}  // namespace baregpu::mock
