#include "mock/amd/device.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "drivers/base/bits.hpp"
#include "drivers/base/error.hpp"
#include "mock/amd/host_access.hpp"
#include "mock/amd/machine.hpp"

namespace baregpu::mock {
namespace {

[[noreturn]] void fail(const std::string& name, std::string what, std::string hint = {}) {
  throw TransportError({.device = name, .what = std::move(what), .source = {}, .hint = std::move(hint)});
}

/// BAR0: VRAM behind the HDP.
class VramBar final : public MmioBackend {
 public:
  explicit VramBar(Machine& m) : m_(m) {}
  uint32_t read32(uint64_t at) override { return read<uint32_t>(at); }
  uint64_t read64(uint64_t at) override { return read<uint64_t>(at); }
  void write32(uint64_t at, uint32_t v) override { write(at, std::as_bytes(std::span(&v, 1))); }
  void write64(uint64_t at, uint64_t v) override { write(at, std::as_bytes(std::span(&v, 1))); }
  void read_block(uint64_t at, std::span<std::byte> out) override {
    auto lock = m_.bus_lock();
    ++m_.counters.bar0_reads;
    uint64_t size = m_.memory.vram_size();
    // Beyond the end of VRAM (a BAR is a power of two), and for virtual functions everywhere, nothing answers.
    if (!m_.answers() || m_.options.card == CardState::kVf || at >= size || out.size() > size - at) {
      note("read", at);
      std::ranges::fill(out, std::byte{0xff});
      return;
    }
    m_.tick();
    m_.memory.cpu_read(at, out);
  }
  void write_block(uint64_t at, std::span<const std::byte> in) override { write(at, in); }

 private:
  void note(const char* what, uint64_t at) {
    if (!m_.in_reset() && !m_.config.decode()) m_.rules.broken("decode-off", fmt::format("{} of VRAM {:#x}", what, at));
  }
  template <class T>
  T read(uint64_t at) {
    // A short read is most often a poll: on a busy host the engine that it waits for may need this processor.
    sched_yield();
    T v{};
    read_block(at, std::as_writable_bytes(std::span(&v, 1)));
    return v;
  }
  void write(uint64_t at, std::span<const std::byte> in) {
    auto lock = m_.bus_lock();
    ++m_.counters.bar0_writes;
    uint64_t size = m_.memory.vram_size();
    if (!m_.answers() || m_.options.card == CardState::kVf || at >= size || in.size() > size - at)
      return note("write", at);
    m_.memory.cpu_write(at, in);
  }
  Machine& m_;
};

/// BAR5: registers, aligned dwords only.
class RegisterBar final : public MmioBackend {
 public:
  explicit RegisterBar(Machine& m) : m_(m) {}
  uint32_t read32(uint64_t at) override {
    auto lock = m_.bus_lock();
    return m_.mmio_read(uint32_t(at / 4));
  }
  void write32(uint64_t at, uint32_t v) override {
    auto lock = m_.bus_lock();
    m_.mmio_write(uint32_t(at / 4), v);
  }
  uint64_t read64(uint64_t at) override {
    refuse(at, 8);
    return 0xdeadbeef'00000000ull | read32(at);  // the high half is garbage
  }
  void write64(uint64_t at, uint64_t v) override {
    refuse(at, 8);
    write32(at, lo32(v));
  }
  void read_block(uint64_t at, std::span<std::byte> out) override {
    refuse(at, out.size());
    std::ranges::fill(out, std::byte{0xff});
  }
  void write_block(uint64_t at, std::span<const std::byte> in) override { refuse(at, in.size()); }

 private:
  void refuse(uint64_t at, size_t n) {
    m_.rules.broken("unaligned", fmt::format("{}-byte access of BAR5 at {:#x}", n, at));
  }
  Machine& m_;
};

/// Host memory with scattered bus addresses; its pages are in the card's table already.
class HostPages final : public DmaBuffer::Owner {
 public:
  HostPages(Machine& m, std::byte* host, uint64_t size, std::vector<BusAddress> pages)
      : m_(m), host_(host), size_(size), pages_(std::move(pages)) {}
  ~HostPages() override {
    auto lock = m_.bus_lock();
    for (BusAddress p : pages_) m_.memory.remove_page(p.value);
    m_.release_host(host_, size_);
  }

 private:
  Machine& m_;
  std::byte* host_;
  uint64_t size_;
  std::vector<BusAddress> pages_;
};

class MockDevice final : public PciDevice {
 public:
  MockDevice(Machine& m, std::shared_ptr<void> card, std::string name, std::string folder)
      : card_(std::move(card)), m_(m), name_(std::move(name)), folder_(std::move(folder)), vram_(m), registers_(m) {
    open_step("open");
    bool expected = false;
    if (!m_.opened.compare_exchange_strong(expected, true))
      fail(name_, "the mock card is open already", "close the other user of this card first");
    std::scoped_lock lock(m_.mutex);
    m_.config.host_enable(m_.options.interrupts);
  }
  ~MockDevice() override { m_.opened = false; }

  const std::string& name() const override { return name_; }
  PciId id() const override {
    std::scoped_lock lock(m_.mutex);
    auto word = [&](unsigned at) { return uint16_t(m_.config.read(at, 2)); };
    uint32_t cls = m_.config.read(8, 4);
    return {word(0), word(2), word(0x2c), word(0x2e), cls >> 8, uint8_t(cls)};
  }

  uint32_t config_read(unsigned offset, unsigned width) override {
    check_config(offset, width);
    std::scoped_lock lock(m_.mutex);
    ++m_.counters.config;
    if (m_.in_reset() || m_.removed()) return width == 4 ? ~0u : (1u << (8 * width)) - 1;
    m_.answers();  // a reset that is over takes effect
    return m_.config.read(offset, width);
  }
  void config_write(unsigned offset, unsigned width, uint32_t value) override {
    check_config(offset, width);
    std::scoped_lock lock(m_.mutex);
    ++m_.counters.config;
    if (m_.in_reset() || m_.removed()) return;
    m_.answers();
    m_.config.write(offset, width, value);
  }

  BarInfo bar_info(unsigned bar) override {
    std::scoped_lock lock(m_.mutex);
    uint64_t size = m_.config.bar_size(bar);
    if (size == 0) return {};
    return {BusAddress(m_.config.bar_address(bar)), size, bar != 5, bar != 5};
  }
  BarMapping map_bar(unsigned bar, BarCaching) override;
  uint64_t resize_bar_to_largest(unsigned bar) override;
  DmaBuffer alloc_dma(uint64_t size, bool contiguous) override;
  void set_dma_bits(unsigned bits) override { dma_bits_ = std::clamp(bits, 24u, 52u); }

  void reset() override {
    throw UnsupportedError({.device = name_,
                            .what = "the card has no function-level reset",
                            .source = "PCIe DEVCAP bit 28 is 0",
                            .hint = "use a mode1 reset"});
  }
  bool has_interrupt() const override { return m_.options.interrupts; }
  bool wait_interrupt(std::chrono::milliseconds timeout) override {
    return has_interrupt() ? m_.wait_msi(timeout) : PciDevice::wait_interrupt(timeout);
  }
  std::vector<std::string> firmware_folders() const override { return {folder_}; }

 private:
  struct Mapped final : BarMapping::Owner {
    explicit Mapped(MockDevice& d) : device(d) { device.change_mapped(1); }
    ~Mapped() override { device.change_mapped(-1); }
    MockDevice& device;
  };
  void change_mapped(int by) {
    std::scoped_lock lock(m_.mutex);
    mapped_ += by;
    m_.config.mapped = mapped_ != 0;
  }
  void check_config(unsigned offset, unsigned width) const {
    if ((width != 1 && width != 2 && width != 4) || offset % width || offset + width > 4096)
      throw Error({.device = name_,
                   .what = fmt::format("config access of {} bytes at {:#x}", width, offset),
                   .source = {},
                   .hint = {}});
  }
  void open_step(const char* what) {
    std::scoped_lock lock(m_.mutex);
    if (m_.faults.hit(FaultPoint::kFailOpen)) fail(name_, fmt::format("injected failure in {}", what));
  }
  uint64_t random_bus_page(uint64_t pages);

  std::shared_ptr<void> card_;
  Machine& m_;
  std::string name_, folder_;
  VramBar vram_;
  RegisterBar registers_;
  int mapped_ = 0;
  unsigned dma_bits_ = 44;
};

BarMapping MockDevice::map_bar(unsigned bar, BarCaching) {
  open_step("map_bar");
  BarInfo info = bar_info(bar);
  if (info.size == 0) fail(name_, fmt::format("BAR{} is absent or unassigned", bar));
  Mmio view;
  if (bar == 0)
    view = Mmio(vram_, info.size);
  else if (bar == 5)
    view = Mmio(registers_, info.size);
  else
    view = Mmio(m_.nbio.doorbells(), info.size);
  if (bar == 2) {
    std::scoped_lock lock(m_.mutex);
    m_.start_engines();
  }
  return {view, std::make_unique<Mapped>(*this)};
}

uint64_t MockDevice::resize_bar_to_largest(unsigned bar) {
  open_step("resize_bar");
  std::scoped_lock lock(m_.mutex);
  if (bar != 0 || !m_.config.resizable()) return m_.config.bar_size(bar);
  if (mapped_ != 0) {
    m_.rules.broken("rebar-mapped", fmt::format("{} mappings exist", mapped_));
    fail(name_, "BAR0 cannot be resized while BARs are mapped", "resize before mapping");
  }
  m_.config.host_resize_bar0(m_.config.largest_bar0());
  return m_.config.bar_size(0);
}

uint64_t MockDevice::random_bus_page(uint64_t pages) {
  const uint64_t limit = (uint64_t{1} << dma_bits_) / Memory::kPage - pages;
  for (;;) {
    uint64_t first = 0x100 + m_.random() % (limit - 0x100);
    bool free = true;
    for (uint64_t i = 0; i < pages && free; ++i) free = !m_.memory.has_page((first + i) * Memory::kPage);
    if (free) return first * Memory::kPage;
  }
}

DmaBuffer MockDevice::alloc_dma(uint64_t size, bool contiguous) {
  open_step("alloc_dma");
  size = align_up(std::max<uint64_t>(size, 1), Memory::kPage);
  if (contiguous && size > 2 * MiB) fail(name_, fmt::format("{} bytes of contiguous memory", size), "at most 2 MiB");
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    throw OutOfMemoryError(
        {.device = name_, .what = fmt::format("{} bytes of host memory", size), .source = {}, .hint = {}});
  std::vector<BusAddress> pages;
  {
    std::scoped_lock lock(m_.mutex);
    const uint64_t count = size / Memory::kPage;
    // Pages of one buffer must not repeat; with 2^32 of them and seeds that is checked, not hoped.
    uint64_t base = contiguous ? random_bus_page(count) : 0;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t bus = contiguous ? base + i * Memory::kPage : random_bus_page(1);
      m_.memory.add_page(bus, static_cast<std::byte*>(p) + i * Memory::kPage);
      pages.emplace_back(bus);
    }
  }
  auto owner = std::make_unique<HostPages>(m_, static_cast<std::byte*>(p), size, pages);
  return {Mmio(p, size), std::move(pages), std::move(owner)};
}

}  // namespace

std::unique_ptr<PciDevice> open_mock_device(Machine& machine, std::shared_ptr<void> card, std::string name,
                                            std::string folder) {
  return std::make_unique<MockDevice>(machine, std::move(card), std::move(name), std::move(folder));
}

}  // namespace baregpu::mock
