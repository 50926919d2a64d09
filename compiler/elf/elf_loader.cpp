#include "compiler/elf/elf_loader.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "compiler/elf/metadata.hpp"
#include "drivers/base/bits.hpp"
#include "drivers/base/reader.hpp"

namespace baregpu::compiler {
namespace {

constexpr uint16_t kMachineAmdGpu = 224;
constexpr uint8_t kOsAbiHsa = 64;
constexpr uint64_t kMaxImage = uint64_t{256}
                               << 20;  // a few hundred bytes can claim this much zeroed memory, and no more
constexpr uint64_t kMaxName = 64 * 1024;
constexpr uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA

struct Mach {
  uint32_t value;
  const char* arch;
};
// e_flags, bits 7:0 (LLVM AMDGPUUsage, "AMDGPU ELF Header Enumeration Values").
constexpr Mach kMachs[] = {
    {0x2f, "gfx906"},  {0x30, "gfx908"},  {0x3f, "gfx90a"},  {0x4c, "gfx942"},  {0x4f, "gfx950"},
    {0x33, "gfx1010"}, {0x36, "gfx1030"}, {0x41, "gfx1100"}, {0x46, "gfx1101"}, {0x47, "gfx1102"},
    {0x44, "gfx1103"}, {0x43, "gfx1150"}, {0x4a, "gfx1151"}, {0x48, "gfx1200"}, {0x4e, "gfx1201"},
};

// LLVM AMDGPUUsage, "Relocation Records". The rest is for the linker, or needs the final address in 32 bits.
enum RelocType : uint32_t {
  kNone = 0,
  kAbs64 = 3,
  kRel32 = 4,
  kRel64 = 5,
  kRel32Lo = 10,
  kRel32Hi = 11,
  kRelative64 = 13
};

/// Kernel descriptor, 64 bytes.
struct Descriptor {
  uint32_t group_size, private_size, kernarg_size, reserved0;
  int64_t entry;
  uint8_t reserved1[20];
  uint32_t rsrc3, rsrc1, rsrc2;
  uint16_t properties, preload;
  uint32_t reserved2;
};
static_assert(sizeof(Descriptor) == 64);

class Loader {
 public:
  Loader(std::span<const std::byte> elf, const std::string& name) : r_(elf, name), name_(name) {}

  ProgramImage run() {
    header();
    segments();
    sections();
    relocations();
    metadata();
    kernels();
    return std::move(out_);
  }

  std::vector<CodeSymbol> functions() {
    header();
    segments();
    std::map<uint64_t, CodeSymbol> found;
    uint64_t total = 0;
    for (unsigned i = 0; i < eh_.e_shnum; ++i) {
      const Elf64_Shdr s = section(i);
      if (s.sh_type != SHT_SYMTAB && s.sh_type != SHT_DYNSYM) continue;
      r_.range(s.sh_offset, s.sh_size);
      total += s.sh_size;
      if (s.sh_entsize != sizeof(Elf64_Sym) || total > r_.size()) r_.fail("bad symbol tables");
      symbols_ = s;
      strings_ = section(s.sh_link);
      for (uint64_t k = 0; k < symbol_count(); ++k) {
        const Elf64_Sym y = symbol(k);
        if (ELF64_ST_TYPE(y.st_info) != STT_FUNC || y.st_shndx == SHN_UNDEF || !in_code(y.st_value)) continue;
        found.emplace(y.st_value, CodeSymbol{y.st_value, y.st_size, std::string(symbol_name(y))});
      }
    }
    std::vector<CodeSymbol> out;
    for (auto& [at, f] : found) out.push_back(std::move(f));
    return out;
  }

 private:
  void header() {
    if (!is_elf(r_.range(0, r_.size()))) r_.fail(r_.size() == 0 ? "the file is empty" : "not an ELF file");
    eh_ = r_.at<Elf64_Ehdr>(0);
    if (eh_.e_ident[EI_CLASS] != ELFCLASS64) r_.fail("a 32-bit ELF file; code objects are 64-bit");
    if (eh_.e_ident[EI_DATA] != ELFDATA2LSB) r_.fail("a big-endian ELF file; code objects are little-endian");
    if (eh_.e_machine != kMachineAmdGpu)
      r_.fail(fmt::format("ELF machine {} is not AMDGPU ({})", eh_.e_machine, kMachineAmdGpu));
    if (eh_.e_ident[EI_OSABI] != kOsAbiHsa)
      r_.fail(fmt::format("ELF OS ABI {} is not AMDGPU HSA ({})", eh_.e_ident[EI_OSABI], kOsAbiHsa));
    out_.abi_version = eh_.e_ident[EI_ABIVERSION];
    if (out_.abi_version < 2 || out_.abi_version > 4)
      throw UnsupportedError(
          {.device = {},
           .what = fmt::format("{}: code object ABI version {}", name_, out_.abi_version),
           .source = "EI_ABIVERSION",
           .hint = "versions 2 to 4 (code objects V4 to V6) are supported; compile with -mcode-object-version=5"});
    if (eh_.e_type != ET_DYN) r_.fail(fmt::format("ELF type {}: it is not linked (ld.lld -shared)", eh_.e_type));
    for (const Mach& m : kMachs)
      if ((eh_.e_flags & 0xff) == m.value) out_.arch = m.arch;
    if (out_.arch.empty()) r_.fail(fmt::format("e_flags {:#x}: an architecture that is not known", eh_.e_flags));
    if (eh_.e_phentsize != sizeof(Elf64_Phdr) || (eh_.e_shnum && eh_.e_shentsize != sizeof(Elf64_Shdr)))
      r_.fail("unknown size of ELF table entries");
  }

  void segments() {
    uint64_t end = 0;
    auto program_header = [&](unsigned i) {
      return r_.at<Elf64_Phdr>(checked_index(eh_.e_phoff, i, sizeof(Elf64_Phdr), "program header"));
    };
    for (unsigned i = 0; i < eh_.e_phnum; ++i) {
      const Elf64_Phdr p = program_header(i);
      if (p.p_type != PT_LOAD) continue;
      if (p.p_filesz > p.p_memsz)
        r_.fail(fmt::format("segment {}: {} bytes in the file, {} in memory", i, p.p_filesz, p.p_memsz));
      if (p.p_align > 1 && !is_pow2(p.p_align))
        r_.fail(fmt::format("segment {}: alignment {} is not a power of two", i, p.p_align));
      if (p.p_align > 1 && (p.p_vaddr ^ p.p_offset) & (p.p_align - 1))
        r_.fail(fmt::format("segment {}: address and file offset disagree", i));
      if (p.p_vaddr > kMaxImage || p.p_memsz > kMaxImage - p.p_vaddr)
        r_.fail(fmt::format("segment {}: {} bytes at {:#x} are more than an image may have ({} MiB)", i, p.p_memsz,
                            p.p_vaddr, kMaxImage >> 20));
      r_.range(p.p_offset, p.p_filesz);
      // Ascending, says the ELF specification; with overlaps the copying would have no bound.
      if (p.p_vaddr < end) r_.fail(fmt::format("segment {} at {:#x} overlaps the one before it", i, p.p_vaddr));
      end = p.p_vaddr + p.p_memsz;
    }
    if (end == 0) r_.fail("it has no loadable segment");
    out_.bytes.resize(align_up(end, 4096));
    for (unsigned i = 0; i < eh_.e_phnum; ++i) {
      const Elf64_Phdr p = program_header(i);
      if (p.p_type != PT_LOAD) continue;
      const auto bytes = r_.range(p.p_offset, p.p_filesz);
      std::copy(bytes.begin(), bytes.end(), out_.bytes.begin() + long(p.p_vaddr));
      if (p.p_flags & PF_X) code_.push_back({p.p_vaddr, p.p_vaddr + p.p_memsz});
    }
  }

  uint64_t checked_index(uint64_t table, uint64_t index, uint64_t size, const char* what) const {
    if (table > r_.size() || index > (r_.size() - table) / size)
      r_.fail(fmt::format("{} {} is beyond the end of the file", what, index));
    return table + index * size;
  }
  Elf64_Shdr section(uint64_t i) const {
    if (i >= eh_.e_shnum) r_.fail(fmt::format("section {} does not exist ({} do)", i, eh_.e_shnum));
    return r_.at<Elf64_Shdr>(checked_index(eh_.e_shoff, i, sizeof(Elf64_Shdr), "section header"));
  }

  void sections() {
    for (unsigned i = 0; i < eh_.e_shnum; ++i) {
      const Elf64_Shdr s = section(i);
      if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) continue;
      r_.range(s.sh_offset, s.sh_size);
      if (s.sh_type == SHT_DYNSYM) {
        if (symbols_.sh_type) r_.fail("it has two dynamic symbol tables");
        if (s.sh_entsize != sizeof(Elf64_Sym)) r_.fail("unknown size of symbols");
        symbols_ = s;
        strings_ = section(s.sh_link);
        if (strings_.sh_type != SHT_STRTAB) r_.fail("the symbol table's string table is none");
      }
    }
    if (!symbols_.sh_type) r_.fail("it has no dynamic symbols, so no kernels can be found");
  }
  uint64_t symbol_count() const { return symbols_.sh_size / sizeof(Elf64_Sym); }
  Elf64_Sym symbol(uint64_t i) const {
    if (i >= symbol_count()) r_.fail(fmt::format("symbol {} does not exist ({} do)", i, symbol_count()));
    return r_.at<Elf64_Sym>(symbols_.sh_offset + i * sizeof(Elf64_Sym));
  }
  std::string_view symbol_name(const Elf64_Sym& s) const {
    if (s.st_name >= strings_.sh_size) r_.fail(fmt::format("symbol name {} is beyond the string table", s.st_name));
    const auto rest = r_.range(strings_.sh_offset + s.st_name, std::min(strings_.sh_size - s.st_name, kMaxName));
    const auto* text = reinterpret_cast<const char*>(rest.data());
    const size_t length = ::strnlen(text, rest.size());
    if (length == rest.size()) r_.fail(fmt::format("symbol name {} has no end", s.st_name));
    return {text, length};
  }

  void relocations() {
    uint64_t total = 0;
    for (unsigned i = 0; i < eh_.e_shnum; ++i) {
      const Elf64_Shdr s = section(i);
      if (s.sh_type == SHT_REL && (s.sh_flags & SHF_ALLOC)) r_.fail("relocations without addends");
      if (s.sh_type != SHT_RELA || !(s.sh_flags & SHF_ALLOC)) continue;
      // Sections that all name the same bytes could otherwise ask for thousands of times the file's size.
      total += s.sh_size;
      if (total > r_.size()) r_.fail(fmt::format("{} bytes of relocations in a file of {}", total, r_.size()));
      for (uint64_t k = 0; k < s.sh_size / sizeof(Elf64_Rela); ++k)
        relocation(r_.at<Elf64_Rela>(s.sh_offset + k * sizeof(Elf64_Rela)));
    }
  }
  void relocation(const Elf64_Rela& rel) {
    const uint32_t type = uint32_t(ELF64_R_TYPE(rel.r_info));
    if (type == kNone) return;
    if (rel.r_offset > out_.bytes.size() - 8)
      r_.fail(fmt::format("relocation at {:#x} is outside the image", rel.r_offset));
    auto symbol_value = [&] {
      const Elf64_Sym s = symbol(ELF64_R_SYM(rel.r_info));
      if (s.st_shndx == SHN_UNDEF) r_.fail(fmt::format("the symbol '{}' is not defined in it", symbol_name(s)));
      return uint64_t{s.st_value};
    };
    // The image keeps its shape wherever it goes, so distances within it are known now.
    auto distance = [&] { return symbol_value() + uint64_t(rel.r_addend) - rel.r_offset; };
    auto store = [&](const auto& v) { std::memcpy(out_.bytes.data() + rel.r_offset, &v, sizeof v); };
    switch (type) {
      case kRelative64: out_.relocs.push_back({rel.r_offset, rel.r_addend}); return;
      case kAbs64: out_.relocs.push_back({rel.r_offset, int64_t(symbol_value() + uint64_t(rel.r_addend))}); return;
      case kRel64: store(distance()); return;
      case kRel32Lo: store(lo32(distance())); return;
      case kRel32Hi: store(hi32(distance())); return;
      case kRel32: {
        const int64_t v = int64_t(distance());
        if (v != int32_t(v))
          r_.fail(fmt::format("relocation at {:#x}: the distance {:#x} does not fit 32 bits", rel.r_offset, v));
        store(int32_t(v));
        return;
      }
      default:
        throw UnsupportedError({.device = {},
                                .what = fmt::format("{}: relocation type {} at {:#x}", name_, type, rel.r_offset),
                                .source = {},
                                .hint = {}});
    }
  }

  void metadata() {
    for (unsigned i = 0; i < eh_.e_shnum; ++i) {
      const Elf64_Shdr s = section(i);
      if (s.sh_type != SHT_NOTE) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= s.sh_size;) {
        const auto n = r_.at<Elf64_Nhdr>(s.sh_offset + at);
        const uint64_t name_at = at + sizeof n, desc_at = name_at + align_up(n.n_namesz, 4),
                       next = desc_at + align_up(n.n_descsz, 4);
        if (desc_at + n.n_descsz > s.sh_size)
          r_.fail(fmt::format("a note of {} bytes is larger than its section", n.n_descsz));
        const auto owner = r_.range(s.sh_offset + name_at, n.n_namesz);
        if (n.n_type == kNoteMetadata && owner.size() == 7 && std::memcmp(owner.data(), "AMDGPU", 7) == 0) {
          metadata_ = parse_msgpack(r_.range(s.sh_offset + desc_at, n.n_descsz), name_);
          return;
        }
        at = next;
      }
    }
    r_.fail("it has no AMDGPU metadata note");
  }

  void kernels() {
    const MsgPack* list = metadata_.find("amdhsa.kernels");
    if (!list || list->type != MsgPack::Type::kArray) r_.fail("its metadata lists no kernels");
    struct Found {
      uint64_t at;
      bool used;
    };
    std::unordered_map<std::string_view, Found> descriptors;
    for (uint64_t i = 0; i < symbol_count(); ++i) {
      const Elf64_Sym s = symbol(i);
      if (s.st_shndx == SHN_UNDEF) continue;
      const std::string_view name = symbol_name(s);
      if (name.ends_with(".kd")) descriptors.emplace(name, Found{s.st_value, false});
    }
    for (const MsgPack& m : list->items) {
      KernelInfo k = parse_kernel_metadata(m, name_);
      const std::string wanted = k.name + ".kd";
      const auto d = descriptors.find(wanted);
      if (d == descriptors.end()) r_.fail(fmt::format("the kernel '{}' has no descriptor symbol '{}'", k.name, wanted));
      if (std::exchange(d->second.used, true)) r_.fail(fmt::format("the kernel '{}' is in it twice", k.name));
      descriptor(d->second.at, k);
      out_.kernels.push_back(std::move(k));
    }
  }

  void descriptor(uint64_t at, KernelInfo& k) {
    if (at % 64 || at > out_.bytes.size() - 64)
      r_.fail(fmt::format("kernel '{}': descriptor at {:#x} is misaligned or outside the image", k.name, at));
    Descriptor d;
    std::memcpy(&d, out_.bytes.data() + at, sizeof d);
    const uint64_t entry = at + uint64_t(d.entry);
    if (!in_code(entry) || entry % 256)
      r_.fail(fmt::format("kernel '{}': entry point {:#x} is misaligned or not in code", k.name, entry));
    k.descriptor_offset = at;
    k.code_offset = entry;
    k.group_segment_size = d.group_size;
    k.private_segment_size = d.private_size;
    if (d.kernarg_size > 64 * 1024) r_.fail(fmt::format("kernel '{}': {} bytes of arguments", k.name, d.kernarg_size));
    if (d.kernarg_size < k.kernarg_size)
      r_.fail(fmt::format("kernel '{}': descriptor says {} bytes of arguments, metadata {}", k.name, d.kernarg_size,
                          k.kernarg_size));
    k.kernarg_size = d.kernarg_size;
    for (const KernelArg& a : k.args)
      if (uint64_t{a.offset} + a.size > k.kernarg_size)
        r_.fail(fmt::format("kernel '{}': an argument of {} bytes at {} is outside its {} bytes of arguments", k.name,
                            a.size, a.offset, k.kernarg_size));
    k.rsrc1 = d.rsrc1;
    k.rsrc2 = d.rsrc2;
    k.rsrc3 = d.rsrc3;
    k.properties = d.properties;
    k.kernarg_preload = d.preload;
    k.wave32 = d.properties & (1 << 10);
    k.uses_dynamic_stack = d.properties & (1 << 11);
  }

  bool in_code(uint64_t at) const {
    return std::any_of(code_.begin(), code_.end(), [&](const auto& c) { return at >= c.first && at < c.second; });
  }

  ByteReader r_;
  const std::string& name_;
  Elf64_Ehdr eh_{};
  Elf64_Shdr symbols_{}, strings_{};
  std::vector<std::pair<uint64_t, uint64_t>> code_;
  MsgPack metadata_;
  ProgramImage out_;
};

}  // namespace

bool is_elf(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(Elf64_Ehdr) && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

ProgramImage load_code_object(std::span<const std::byte> elf, const std::string& name) {
  return Loader(elf, name).run();
}

std::vector<CodeSymbol> function_symbols(std::span<const std::byte> elf, const std::string& name) {
  return Loader(elf, name).functions();
}

void check_arch(const ProgramImage& image, const std::string& device_arch, const std::string& name) {
  if (image.arch != device_arch)
    throw Error({.device = {},
                 .what = fmt::format("{} is for {}, the device is {}", name, image.arch, device_arch),
                 .source = {},
                 .hint = "compile it for " + device_arch},
                "arch");
}

}  // namespace baregpu::compiler
