// BAR5's register file: values by dword address, names and behaviour from tables and block handlers.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mock/amd/chips.hpp"
#include "mock/amd/rules.hpp"

namespace baregpu::mock {

/// Registers of one chip. Addresses are absolute dwords. Thread: the card's lock.
class RegisterFile {
 public:
  using Read = std::function<uint32_t()>;
  using Write = std::function<void(uint32_t)>;

  RegisterFile(const Chip& chip, Rules& rules);

  /// Address of a register by its vendor name. @throws Error for a name that no table of this chip has.
  uint32_t dword(std::string_view name) const;
  bool has(std::string_view name) const { return by_name_.contains(std::string(name)); }
  /// Adds a register that no table lists.
  void add(uint32_t dword, const char* name, am::HwIp ip);

  void on_read(std::string_view name, Read f) { regs_.at(dword(name)).read = std::move(f); }
  void on_write(std::string_view name, Write f) { regs_.at(dword(name)).write = std::move(f); }
  void on_read(uint32_t dword, Read f) { regs_.at(dword).read = std::move(f); }
  void on_write(uint32_t dword, Write f) { regs_.at(dword).write = std::move(f); }
  void read_only(std::string_view name);
  /// The value at power-on and after a reset; 0 where not given.
  void set_reset_value(std::string_view name, uint32_t value);
  /// GC registers answer 0 and lose writes while this is set; `exempt` ones answer.
  void set_gc_gate(bool closed) { gc_closed_ = closed; }
  bool gc_gate() const { return gc_closed_; }
  void exempt_from_gate(std::string_view name) { regs_.at(dword(name)).exempt = true; }

  /// Access as the bus or an engine makes it: handlers run, gates and notes apply.
  uint32_t access_read(uint32_t dword);
  void access_write(uint32_t dword, uint32_t value);
  /// The stored value, without side effects.
  uint32_t get(std::string_view name) const { return regs_.at(dword(name)).value; }
  void set(std::string_view name, uint32_t v) { regs_.at(dword(name)).value = v; }
  uint32_t get(uint32_t dword) const { return regs_.at(dword).value; }
  void set(uint32_t dword, uint32_t v) { regs_.at(dword).value = v; }
  /// The stored value itself; the reference stays valid.
  uint32_t& value(std::string_view name) { return regs_.at(dword(name)).value; }
  bool known(uint32_t dword) const { return regs_.contains(dword); }
  /// "GCVM_L2_CNTL", or "?" for an address without a register.
  std::string name(uint32_t dword) const;
  bool is_gc(uint32_t dword) const;
  /// Back to the power-on values.
  void reset();
  void reset_gc();

 private:
  struct Reg {
    std::string name;
    am::HwIp ip = am::HwIp::Gc;
    uint32_t value = 0, reset_value = 0;
    bool read_only = false, exempt = false;
    Read read;
    Write write;
  };
  void add_table(const am::RegTable* table, const std::vector<uint32_t>& bases);

  Rules& rules_;
  std::unordered_map<uint32_t, Reg> regs_;
  std::unordered_map<std::string, uint32_t> by_name_;
  bool gc_closed_ = false;
};

}  // namespace baregpu::mock
