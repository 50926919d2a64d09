// Typed access to one IP block's registers: names are types (regs/names.hpp), places come from discovery and the
// tables.
#pragma once
#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "am/regs/names.hpp"
#include "am/regs/tables.hpp"
#include "drivers/pci_device.hpp"

namespace baregpu::am {

using Milliseconds = std::chrono::milliseconds;

/// Dword-addressed registers of one GPU behind BAR5, indirect where BAR5 does not reach.
/// Thread: one at a time (the indirect path is two transactions).
class RegisterIo {
 public:
  RegisterIo(PciDevice& pci, Mmio bar5) : pci_(pci), bar5_(bar5) {}

  /// Reads a register. All ones are checked against places that never read so: a device that is gone throws
  /// TransportError("device_lost") naming `name`.
  uint32_t read(uint32_t dword, const char* name);
  void write(uint32_t dword, uint32_t value, const char* name);
  /// A read that may return all ones (during a reset).
  uint32_t probe(uint32_t dword) { return bar5_.read32(uint64_t{dword} * 4); }

  const std::string& device() const { return pci_.name(); }
  uint64_t accesses() const { return accesses_; }
  /// Sees every access: ('R' or 'W', name, dword address, value). Empty = off.
  using TraceHook = std::function<void(char, const char*, uint32_t, uint32_t)>;
  void set_trace(TraceHook hook) { trace_ = std::move(hook); }

 private:
  uint32_t raw_read(uint32_t dword);
  void check_alive(uint32_t dword, const char* name);
  void raw_write(uint32_t dword, uint32_t value);
  PciDevice& pci_;
  Mmio bar5_;
  uint64_t accesses_ = 0;
  TraceHook trace_;
};

/// Polls `read` until (value & mask) == want. Spins briefly, then sleeps between reads.
/// @throws TimeoutError naming `name` and the last value.
void poll_until(RegisterIo& io, const char* name, const std::function<uint32_t()>& read, uint32_t mask, uint32_t want,
                Milliseconds timeout, const std::string& what);

/// One instance of one IP block.
class RegisterBlock {
 public:
  /// `bases` in dwords, from discovery. @throws UnsupportedError if no table fits the version.
  RegisterBlock(RegisterIo& io, HwIp ip, IpVersion version, std::vector<uint32_t> bases, unsigned instance = 0);

  IpVersion version() const { return version_; }
  HwIp ip() const { return ip_; }
  RegisterIo& io() const { return *io_; }

  template <class R>
  bool has() const {
    return table_->find(R::kId) != nullptr;
  }
  /// Absolute dword address; `delta` steps through register arrays. @throws UnsupportedError if this version lacks it.
  template <class R>
  uint32_t address(uint32_t delta = 0) const {
    return address_of(R::kId) + delta;
  }

  template <class R>
  uint32_t read(uint32_t delta = 0) const {
    return io_->read(address<R>(delta), reg_name(R::kId));
  }
  template <class R>
  void write_raw(uint32_t value, uint32_t delta = 0) const {
    io_->write(address<R>(delta), value, reg_name(R::kId));
  }
  /// Whole-register write: named fields set, all others 0.
  template <class F, class... Fs>
  void write(F first, Fs... rest) const {
    static_assert((std::is_same_v<typename F::Register, typename Fs::Register> && ...), "fields of one register");
    write_raw<typename F::Register>(encode<F>({{F::kIndex, first.value}, {Fs::kIndex, rest.value}...}).value);
  }
  /// Read-modify-write: other fields kept.
  template <class F, class... Fs>
  void update(F first, Fs... rest) const {
    static_assert((std::is_same_v<typename F::Register, typename Fs::Register> && ...), "fields of one register");
    Encoded e = encode<F>({{F::kIndex, first.value}, {Fs::kIndex, rest.value}...});
    using R = typename F::Register;
    write_raw<R>((read<R>() & ~e.mask) | e.value);
  }
  /// A register value from its fields (MQD images, packets).
  template <class F, class... Fs>
  uint32_t value_of(F first, Fs... rest) const {
    static_assert((std::is_same_v<typename F::Register, typename Fs::Register> && ...), "fields of one register");
    return encode<F>({{F::kIndex, first.value}, {Fs::kIndex, rest.value}...}).value;
  }
  template <class F>
  uint32_t get(uint32_t raw) const {
    const FieldRow& f = field(F::Register::kId, F::kIndex);
    return (raw >> f.lo) & width_mask(f);
  }
  template <class F>
  uint32_t read_field() const {
    return get<F>(read<typename F::Register>());
  }

  /// Polls until (register & mask) == want. @throws TimeoutError.
  template <class R>
  void wait_until(uint32_t mask, uint32_t want, Milliseconds timeout, const std::string& what) const {
    poll_until(
        *io_, reg_name(R::kId), [this] { return read<R>(); }, mask, want, timeout, what);
  }
  template <class F>
  void wait_field(uint32_t want, Milliseconds timeout, const std::string& what) const {
    const FieldRow& f = field(F::Register::kId, F::kIndex);
    wait_until<typename F::Register>(width_mask(f) << f.lo, want << f.lo, timeout, what);
  }

 private:
  struct FieldValue {
    uint8_t index;
    uint32_t value;
  };
  struct Encoded {
    uint32_t value = 0, mask = 0;
  };
  static uint32_t width_mask(const FieldRow& f) { return uint32_t((uint64_t{1} << (f.hi - f.lo + 1)) - 1); }
  template <class F>
  Encoded encode(std::initializer_list<FieldValue> fields) const {
    return encode_fields(F::Register::kId, fields);
  }
  Encoded encode_fields(uint16_t reg, std::initializer_list<FieldValue> fields) const;
  uint32_t address_of(uint16_t reg) const;
  const FieldRow& field(uint16_t reg, uint8_t index) const;

  RegisterIo* io_;
  HwIp ip_;
  IpVersion version_;
  const RegTable* table_;
  std::vector<uint32_t> bases_;
};

}  // namespace baregpu::am
