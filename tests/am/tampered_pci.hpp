// A PCI function whose register accesses pass through the test's hands: a driver bug made on purpose.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "drivers/pci_device.hpp"

namespace baregpu::test {

/// Sees BAR5 accesses of another PciDevice. Hooks get dword addresses.
struct Tamper {
  /// A value: the write is changed to it; nullopt: the write is dropped.
  std::function<std::optional<uint32_t>(uint32_t dword, uint32_t value)> write;
  /// A value: what the read returns instead.
  std::function<std::optional<uint32_t>(uint32_t dword)> read;
};

class TamperedPci final : public PciDevice {
 public:
  TamperedPci(std::unique_ptr<PciDevice> inner, std::shared_ptr<Tamper> tamper)
      : inner_(std::move(inner)), tamper_(std::move(tamper)) {}
  const std::string& name() const override { return inner_->name(); }
  PciId id() const override { return inner_->id(); }
  uint32_t config_read(unsigned offset, unsigned width) override { return inner_->config_read(offset, width); }
  void config_write(unsigned offset, unsigned width, uint32_t value) override {
    inner_->config_write(offset, width, value);
  }
  BarInfo bar_info(unsigned bar) override { return inner_->bar_info(bar); }
  BarMapping map_bar(unsigned bar, BarCaching caching) override {
    BarMapping m = inner_->map_bar(bar, caching);
    if (bar != 5) return m;
    auto owner = std::make_unique<Registers>(std::move(m), tamper_);
    Mmio view(*owner, owner->inner.size());
    return BarMapping(view, std::move(owner));
  }
  uint64_t resize_bar_to_largest(unsigned bar) override { return inner_->resize_bar_to_largest(bar); }
  DmaBuffer alloc_dma(uint64_t size, bool contiguous) override { return inner_->alloc_dma(size, contiguous); }
  void set_dma_bits(unsigned bits) override { inner_->set_dma_bits(bits); }
  void reset() override { inner_->reset(); }
  bool has_interrupt() const override { return inner_->has_interrupt(); }
  bool wait_interrupt(std::chrono::milliseconds t) override { return inner_->wait_interrupt(t); }
  std::vector<std::string> firmware_folders() const override { return inner_->firmware_folders(); }

 private:
  struct Registers final : BarMapping::Owner, MmioBackend {
    Registers(BarMapping m, std::shared_ptr<Tamper> t) : inner(std::move(m)), tamper(std::move(t)) {}
    uint32_t read32(uint64_t offset) override {
      if (tamper->read)
        if (auto v = tamper->read(uint32_t(offset / 4))) return *v;
      return inner.mmio().read32(offset);
    }
    void write32(uint64_t offset, uint32_t value) override {
      std::optional<uint32_t> v = value;
      if (tamper->write) v = tamper->write(uint32_t(offset / 4), value);
      if (v) inner.mmio().write32(offset, *v);
    }
    uint64_t read64(uint64_t offset) override { return inner.mmio().read64(offset); }
    void write64(uint64_t offset, uint64_t value) override { inner.mmio().write64(offset, value); }
    void read_block(uint64_t offset, std::span<std::byte> out) override { inner.mmio().read_block(offset, out); }
    void write_block(uint64_t offset, std::span<const std::byte> in) override { inner.mmio().write_block(offset, in); }
    BarMapping inner;
    std::shared_ptr<Tamper> tamper;
  };
  std::unique_ptr<PciDevice> inner_;
  std::shared_ptr<Tamper> tamper_;
};

}  // namespace baregpu::test
