#include "am/register_block.hpp"

#include <fmt/format.h>

#include <thread>

#include "drivers/base/error.hpp"

namespace baregpu::am {
namespace {

// NBIO segment 1 + 0 and + 1 (RSMU_INDEX/RSMU_DATA); fixed on every chip since they must work before discovery.
constexpr uint32_t kRsmuIndex = 0x14, kRsmuData = 0x15;

}  // namespace

uint32_t RegisterIo::raw_read(uint32_t dword) {
  ++accesses_;
  if (uint64_t{dword} * 4 + 4 <= bar5_.size()) return bar5_.read32(uint64_t{dword} * 4);
  accesses_ += 2;
  bar5_.write32(kRsmuIndex * 4, dword * 4);
  // Read back so that the posted index write has arrived before the data access (Linux nbio_v4_3 does the same).
  (void)bar5_.read32(kRsmuIndex * 4);
  return bar5_.read32(kRsmuData * 4);
}

void RegisterIo::raw_write(uint32_t dword, uint32_t value) {
  ++accesses_;
  if (uint64_t{dword} * 4 + 4 <= bar5_.size()) return bar5_.write32(uint64_t{dword} * 4, value);
  accesses_ += 2;
  bar5_.write32(kRsmuIndex * 4, dword * 4);
  (void)bar5_.read32(kRsmuIndex * 4);
  bar5_.write32(kRsmuData * 4, value);
}

uint32_t RegisterIo::read(uint32_t dword, const char* name) {
  uint32_t value = raw_read(dword);
  if (value == 0xffffffff) check_alive(dword, name);
  if (trace_) trace_('R', name, dword, value);
  return value;
}

void RegisterIo::check_alive(uint32_t dword, const char* name) {
  // Some registers may hold all ones. Config space tells an unplugged card; a card that keeps config space but does not
  // decode memory (D3, hung bus) is told by a register that never reads so while it lives: VRAM size in MiB.
  constexpr uint32_t kRccConfigMemsize = 0xde3;
  const char* what = pci_.config_read(0, 2) == 0xffff                                          ? "the PCI vendor id"
                     : dword != kRccConfigMemsize && raw_read(kRccConfigMemsize) == 0xffffffff ? "RCC_CONFIG_MEMSIZE"
                                                                                               : nullptr;
  if (!what) return;
  throw TransportError({.device = pci_.name(),
                        .what = fmt::format("device not responding at {}", name),
                        .source = fmt::format("register {:#x} and {} read all ones", dword, what),
                        .hint = "it was unplugged, lost power or is in reset; re-seat it or reset the slot"},
                       "device_lost");
}

void RegisterIo::write(uint32_t dword, uint32_t value, const char* name) {
  if (trace_) trace_('W', name, dword, value);
  raw_write(dword, value);
}

void poll_until(RegisterIo& io, const char* name, const std::function<uint32_t()>& read, uint32_t mask, uint32_t want,
                Milliseconds timeout, const std::string& what) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  auto pause = std::chrono::microseconds(10);
  for (unsigned i = 0;; ++i) {
    uint32_t value = read();
    if ((value & mask) == want) return;
    if (std::chrono::steady_clock::now() >= deadline)
      throw TimeoutError(
          {.device = io.device(),
           .what = fmt::format("{} did not happen within {} ms", what, timeout.count()),
           .source = fmt::format("{} = {:#010x}, expected {:#x} under mask {:#x}", name, value, want, mask),
           .hint = "try again with --reset (AM_RESET=1), which resets the GPU first"});
    if (i >= 8) {  // the first reads come back to back: most bits are set within microseconds
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(2000));
    }
  }
}

RegisterBlock::RegisterBlock(RegisterIo& io, HwIp ip, IpVersion version, std::vector<uint32_t> bases, unsigned instance)
    : io_(&io), ip_(ip), version_(version), table_(find_reg_table(ip, version)), bases_(std::move(bases)) {
  (void)instance;
  if (!table_)
    throw UnsupportedError({.device = io.device(),
                            .what = fmt::format("no register table for {} {}", ip_name(ip), version.str()),
                            .source = {},
                            .hint = "this chip generation is not supported"});
}

uint32_t RegisterBlock::address_of(uint16_t reg) const {
  const RegRow* row = table_->find(reg);
  if (!row)
    throw UnsupportedError(
        {.device = io_->device(),
         .what = fmt::format("{} {} has no register {}", ip_name(ip_), version_.str(), reg_name(reg)),
         .source = table_->name,
         .hint = {}});
  if (row->segment >= bases_.size())
    throw ParseError({.device = io_->device(),
                      .what = fmt::format("IP discovery gives {} {} bases, {} is in segment {}", bases_.size(),
                                          ip_name(ip_), row->name, row->segment),
                      .source = {},
                      .hint = {}});
  return bases_[row->segment] + row->offset;
}

const FieldRow& RegisterBlock::field(uint16_t reg, uint8_t index) const {
  const RegRow* row = table_->find(reg);
  if (row)
    for (const FieldRow& f : table_->fields_of(*row))
      if (f.id == index) return f;
  throw UnsupportedError(
      {.device = io_->device(),
       .what = fmt::format("{} {}: register {} has no field #{}", ip_name(ip_), version_.str(), reg_name(reg), index),
       .source = table_->name,
       .hint = {}});
}

RegisterBlock::Encoded RegisterBlock::encode_fields(uint16_t reg, std::initializer_list<FieldValue> fields) const {
  Encoded e;
  for (const FieldValue& v : fields) {
    const FieldRow& f = field(reg, v.index);
    if (v.value & ~width_mask(f))
      throw Error({.device = io_->device(),
                   .what = fmt::format("value {:#x} does not fit {}.{} ({} bits)", v.value, reg_name(reg), f.name,
                                       f.hi - f.lo + 1),
                   .source = {},
                   .hint = {}});
    e.value |= v.value << f.lo;
    e.mask |= width_mask(f) << f.lo;
  }
  return e;
}

}  // namespace baregpu::am
