// Kernels on the executor alone: compiled here, run over host memory.
#pragma once
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compiler/compiler.hpp"
#include "drivers/base/bits.hpp"
#include "mock/isa/executor.hpp"

namespace baregpu::test {

using mock::isa::Access;
using mock::isa::DispatchInfo;
using mock::isa::DispatchResult;
using mock::isa::FaultKind;
using mock::isa::Translation;

/// Regions at made-up addresses with unmapped space between them.
class FlatSpace final : public mock::isa::AddressSpace {
 public:
  Translation translate(uint64_t va, Access) override {
    auto it = regions_.upper_bound(va);
    if (it == regions_.begin()) return {};
    const auto& [start, r] = *--it;
    if (va >= start + r.bytes->size()) return {};
    return {r.bytes->data(), start, start + r.bytes->size(), true, r.writable, true, true};
  }
  uint64_t generation() const override { return generation_; }
  uint64_t add(size_t size, bool writable = true) {
    next_ += 0x1000'0000;
    regions_[next_] = {std::make_unique<std::vector<std::byte>>(size), writable};
    ++generation_;
    return next_;
  }
  std::byte* at(uint64_t va) { return regions_.at(va).bytes->data(); }
  size_t size(uint64_t va) { return regions_.at(va).bytes->size(); }

 private:
  struct Region {
    std::unique_ptr<std::vector<std::byte>> bytes;
    bool writable;
  };
  std::map<uint64_t, Region> regions_;
  uint64_t next_ = 0x2000'0000'0000, generation_ = 1;
};

struct Options {
  unsigned optimization = 3;
  bool wave64 = false;
  unsigned threads = 2;
};

class Machine {
 public:
  Machine(compiler::SourceKind kind, const std::string& source, Options o = {})
      : executor_(mock::isa::make_executor(mock::isa::Target::kGfx1100, {.threads = o.threads})) {
    compiler::CompileOptions c;
    c.arch = "gfx1100";
    c.optimization = o.optimization;
    c.wave64 = o.wave64;
    image_ = compiler::load_code_object(compiler::compile(kind, source, "test", c), "test");
    code_ = space.add(image_.bytes.size());
    for (const ImageReloc& r : image_.relocs) {
      const uint64_t v = code_ + uint64_t(r.addend);
      std::memcpy(image_.bytes.data() + r.offset, &v, 8);
    }
    std::memcpy(space.at(code_), image_.bytes.data(), image_.bytes.size());
    args_ = space.add(8192);
    scratch_ = space.add(64 << 20);
  }
  template <class T>
  uint64_t buffer(const std::vector<T>& v) {
    const uint64_t va = space.add(v.size() * sizeof(T));
    std::memcpy(space.at(va), v.data(), v.size() * sizeof(T));
    return va;
  }
  template <class T>
  std::vector<T> read(uint64_t va) {
    std::vector<T> v(space.size(va) / sizeof(T));
    std::memcpy(v.data(), space.at(va), v.size() * sizeof(T));
    return v;
  }
  /// Arguments are 64-bit words (addresses) or the values' own bytes, in the kernel's order.
  template <class... A>
  DispatchResult run(const std::string& name, std::array<uint32_t, 3> groups, std::array<uint32_t, 3> block,
                     A... values) {
    const KernelInfo* k = image_.find(name);
    REQUIRE(k);
    std::byte* a = space.at(args_);
    std::memset(a, 0, 8192);
    size_t n = 0;
    (std::memcpy(a + k->args.at(n++).offset, &values, sizeof values), ...);
    for (const KernelArg& arg : k->args) {
      auto put = [&](auto v) { std::memcpy(a + arg.offset, &v, sizeof v); };
      switch (arg.kind) {
        case ArgKind::kHiddenBlockCountX: put(groups[0]); break;
        case ArgKind::kHiddenBlockCountY: put(groups[1]); break;
        case ArgKind::kHiddenBlockCountZ: put(groups[2]); break;
        case ArgKind::kHiddenGroupSizeX: put(uint16_t(block[0])); break;
        case ArgKind::kHiddenGroupSizeY: put(uint16_t(block[1])); break;
        case ArgKind::kHiddenGroupSizeZ: put(uint16_t(block[2])); break;
        case ArgKind::kHiddenPrivateBase: put(uint32_t{2} << 16); break;
        case ArgKind::kHiddenSharedBase: put(uint32_t{1} << 16); break;
        default: break;
      }
    }
    // An hsa_kernel_dispatch_packet for kernels that want one.
    const uint64_t packet = args_ + 4096;
    for (int i = 0; i < 3; ++i) {
      const uint16_t w = uint16_t(block[size_t(i)]);
      const uint32_t g = groups[size_t(i)] * block[size_t(i)];
      std::memcpy(space.at(args_) + 4096 + 4 + 2 * i, &w, 2);
      std::memcpy(space.at(args_) + 4096 + 12 + 4 * i, &g, 4);
    }
    DispatchInfo d;
    d.code_va = code_ + k->code_offset;
    d.rsrc1 = k->rsrc1;
    d.rsrc2 = (k->rsrc2 & ~(0x1ffu << 15)) | uint32_t(div_up(k->group_segment_size, 512)) << 15;
    d.rsrc3 = k->rsrc3;
    unsigned s = 0;
    auto pair = [&](uint64_t v) { d.user_data[s++] = lo32(v), d.user_data[s++] = hi32(v); };
    if (k->properties & 1) s += 4;
    if (k->properties & 2) pair(packet);
    if (k->properties & 4) pair(packet);
    if (k->properties & 8) pair(args_);
    d.groups = groups;
    d.group_size = block;
    d.wave32 = k->wave32;
    const uint32_t wave_bytes = uint32_t(
        align_up(std::max(k->private_segment_size, k->uses_dynamic_stack ? 4096u : 0u) * (k->wave32 ? 32u : 64u), 256));
    d.tmpring_size = wave_bytes / 256 << 12 | 64;
    d.scratch_base = scratch_;
    d.shared_aperture = uint64_t{1} << 48;
    d.private_aperture = uint64_t{2} << 48;
    return executor_->run(d, space, stop);
  }
  /// run() that must end well.
  template <class... A>
  void ok(const std::string& name, std::array<uint32_t, 3> groups, std::array<uint32_t, 3> block, A... values) {
    const DispatchResult r = run(name, groups, block, values...);
    CAPTURE(name, r.fault.text);
    REQUIRE(r.completed);
  }
  const ProgramImage& image() const { return image_; }
  uint64_t code() const { return code_; }
  mock::isa::Executor& executor() { return *executor_; }

  FlatSpace space;
  std::atomic<bool> stop{false};

 private:
  std::unique_ptr<mock::isa::Executor> executor_;
  ProgramImage image_;
  uint64_t code_ = 0, args_ = 0, scratch_ = 0;
};

}  // namespace baregpu::test
