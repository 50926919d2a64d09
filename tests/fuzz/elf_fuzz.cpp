// Code objects: refused with an Error that names the file, or loaded to an image whose every offset lies inside it.
#include <elf.h>

#include <cstring>

#include "compiler/compiler.hpp"
#include "drivers/base/error.hpp"
#include "tests/fuzz/corpus.hpp"

namespace baregpu::fuzz {
namespace {

/// The least that the loader takes: one kernel that is a lone s_endpgm, one relocation of each kind that it knows.
/// Layout from LLVM "User Guide for AMDGPU Backend": ELF header, note record, kernel descriptor.
Bytes minimal_object(uint8_t abi_version, uint32_t machine) {
  constexpr uint64_t kNote = 0x200, kDescriptor = 0x400, kSymbols = 0x480, kStrings = 0x500, kRela = 0x540,
                     kData = 0x600, kCode = 0x1000, kHeaders = 0x1100;
  Bytes out(kHeaders + 6 * sizeof(Elf64_Shdr));
  auto put = [&](uint64_t at, const auto& value) { std::memcpy(out.data() + at, &value, sizeof value); };
  auto put_text = [&](uint64_t at, const std::string& s) { std::memcpy(out.data() + at, s.data(), s.size()); };

  Elf64_Ehdr eh{};
  std::memcpy(eh.e_ident, ELFMAG, SELFMAG);
  eh.e_ident[EI_CLASS] = ELFCLASS64;
  eh.e_ident[EI_DATA] = ELFDATA2LSB;
  eh.e_ident[EI_VERSION] = EV_CURRENT;
  eh.e_ident[EI_OSABI] = 64;  // ELFOSABI_AMDGPU_HSA
  eh.e_ident[EI_ABIVERSION] = abi_version;
  eh.e_type = ET_DYN;
  eh.e_machine = 224;  // EM_AMDGPU
  eh.e_version = EV_CURRENT;
  eh.e_flags = machine;
  eh.e_phoff = sizeof eh;
  eh.e_shoff = kHeaders;
  eh.e_ehsize = sizeof eh;
  eh.e_phentsize = sizeof(Elf64_Phdr);
  eh.e_phnum = 2;
  eh.e_shentsize = sizeof(Elf64_Shdr);
  eh.e_shnum = 6;
  put(0, eh);
  put(sizeof eh, Elf64_Phdr{PT_LOAD, PF_R, 0, 0, 0, kCode, kCode, 0x1000});
  put(sizeof eh + sizeof(Elf64_Phdr), Elf64_Phdr{PT_LOAD, PF_R | PF_X, kCode, kCode, kCode, 0x100, 0x1000, 0x1000});

  const std::string metadata =
      std::string("\x81\xae") + "amdhsa.kernels" +
      "\x91\x84\xa5.name\xa1k\xa7.symbol\xa4k.kd\xb5.kernarg_segment_size\x08\xa5.args\x91\x83\xa7.offset" +
      std::string(1, '\0') + "\xa5.size\x08\xab.value_kind\xadglobal_buffer";
  put(kNote, Elf64_Nhdr{7, Elf64_Word(metadata.size()), 32});
  put_text(kNote + sizeof(Elf64_Nhdr), "AMDGPU");
  put_text(kNote + sizeof(Elf64_Nhdr) + 8, metadata);
  put(kDescriptor + 8, uint32_t{8});                    // kernarg_size
  put(kDescriptor + 16, int64_t(kCode - kDescriptor));  // kernel_code_entry_byte_offset
  put(kDescriptor + 56, uint16_t{1 << 10});             // ENABLE_WAVEFRONT_SIZE32
  put_text(kStrings, std::string("\0k.kd\0k\0", 8));
  put(kSymbols + sizeof(Elf64_Sym),
      Elf64_Sym{1, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), STV_PROTECTED, 1, kDescriptor, 64});
  put(kSymbols + 2 * sizeof(Elf64_Sym), Elf64_Sym{6, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_PROTECTED, 1, kCode, 4});
  unsigned n = 0;
  for (const uint32_t type :
       {13u, 3u, 5u, 0u, 4u, 10u, 11u}) {  // RELATIVE64, ABS64, REL64, NONE, REL32, REL32_LO, REL32_HI
    put(kRela + sizeof(Elf64_Rela) * n, Elf64_Rela{kData + 8 * n, ELF64_R_INFO(type == 13 ? 0 : 1, type), 4});
    ++n;
  }
  put(kCode, uint32_t{0xbfb00000});  // s_endpgm, gfx11

  const Elf64_Shdr sections[] = {
      {},
      {0, SHT_NOTE, SHF_ALLOC, kNote, kNote, sizeof(Elf64_Nhdr) + 8 + ((metadata.size() + 3) & ~uint64_t{3}), 0, 0, 4,
       0},
      {0, SHT_DYNSYM, SHF_ALLOC, kSymbols, kSymbols, 3 * sizeof(Elf64_Sym), 3, 1, 8, sizeof(Elf64_Sym)},
      {0, SHT_STRTAB, SHF_ALLOC, kStrings, kStrings, 8, 0, 0, 1, 0},
      {0, SHT_RELA, SHF_ALLOC, kRela, kRela, n * sizeof(Elf64_Rela), 2, 0, 8, sizeof(Elf64_Rela)},
      {0, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCode, kCode, 4, 0, 0, 256, 0}};
  for (unsigned i = 0; i < 6; ++i) put(kHeaders + i * sizeof(Elf64_Shdr), sections[i]);
  return out;
}

}  // namespace

Seeds seeds() {
  Seeds out = {{"minimal-v4", minimal_object(2, 0x41)},
               {"minimal-v5", minimal_object(3, 0x46)},
               {"minimal-v6", minimal_object(4, 0x4e)}};
  for (const auto& [name, bytes] : out)  // a seed that is refused at the first field would not lead anywhere
    require(compiler::load_code_object(bytes, name).relocs.size() == 2, "the files made by hand are good");
  compiler::CompileOptions o;
  o.use_cache = false;
  for (const char* arch : {"gfx1100", "gfx1201", "gfx942"}) try {
      o.arch = arch;
      out.emplace_back(
          std::string("compiled-") + arch,
          compiler::compile(compiler::SourceKind::kOpenCl,
                            "constant int table[4] = {1, 2, 3, 4};\nkernel void k(global int* p, local int* q, int n) "
                            "{ q[get_local_id(0)] = n; p[get_global_id(0)] = table[n & 3]; }\n"
                            "kernel void l(global float* p) { *p += 1.0f; }",
                            "seed.cl", o));
    } catch (const Error&) {
      // Without clang the files made by hand have to do.
    }
  return out;
}

}  // namespace baregpu::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baregpu;
  using fuzz::require;
  ProgramImage image;
  try {
    image = compiler::load_code_object({reinterpret_cast<const std::byte*>(data), size}, "fuzz.co");
  } catch (const Error& e) {
    require(std::string(e.what()).find("fuzz.co") != std::string::npos, "an error names the file");
    return 0;
  }
  const uint64_t bytes = image.bytes.size();
  require(bytes > 0 && bytes % 4096 == 0, "an image is whole pages");
  require(!image.arch.empty() && image.abi_version >= 2 && image.abi_version <= 4, "an image says what it is for");
  for (const ImageReloc& r : image.relocs) require(r.offset <= bytes - 8, "relocations lie inside the image");
  require(image.relocs.size() <= size / sizeof(Elf64_Rela), "relocations are no more than the file has room for");
  for (const KernelInfo& k : image.kernels) {
    require(image.find(k.name) == &k, "kernels have names of their own");
    require(k.descriptor_offset % 64 == 0 && k.descriptor_offset <= bytes - 64, "descriptors lie inside the image");
    require(k.code_offset % 256 == 0 && k.code_offset < bytes, "entry points lie inside the image");
    for (const KernelArg& a : k.args)
      require(uint64_t{a.offset} + a.size <= k.kernarg_size, "arguments lie inside the segment");
  }
  return 0;
}
