// The loader against files made to break it.
#include <elf.h>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "compiler/compiler.hpp"
#include "compiler/elf/msgpack.hpp"
#include "drivers/base/error.hpp"

using namespace baregpu;
using namespace baregpu::compiler;

namespace {

const std::vector<std::byte>& good() {
  static const std::vector<std::byte> object = [] {
    CompileOptions o;
    o.arch = "gfx1100";
    o.use_cache = false;
    return compile(SourceKind::kOpenCl,
                   "constant int table[4] = {1, 2, 3, 4};\nkernel void k(global int* p) { p[get_global_id(0)] = "
                   "table[get_local_id(0) & 3]; }",
                   "k.cl", o);
  }();
  return object;
}

std::string error_of(const std::vector<std::byte>& bytes) {
  try {
    load_code_object(bytes, "file.co");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

template <class T>
std::vector<std::byte> with(size_t offset, T value) {
  std::vector<std::byte> b = good();
  std::memcpy(b.data() + offset, &value, sizeof value);
  return b;
}

template <class T>
T at(size_t offset) {
  T v;
  std::memcpy(&v, good().data() + offset, sizeof v);
  return v;
}

size_t section_header(uint32_t type) {
  const auto eh = at<Elf64_Ehdr>(0);
  for (unsigned i = 0; i < eh.e_shnum; ++i)
    if (at<Elf64_Shdr>(eh.e_shoff + i * sizeof(Elf64_Shdr)).sh_type == type) return eh.e_shoff + i * sizeof(Elf64_Shdr);
  FAIL("no such section");
  return 0;
}

}  // namespace

TEST_CASE("a code object cut anywhere is refused by name, without a read past its end", "[compiler][elf]") {
  REQUIRE(error_of(good()) == "");
  for (size_t n = 0; n < good().size(); ++n) {
    const std::vector<std::byte> cut(good().begin(), good().begin() + long(n));
    const std::string e = error_of(cut);
    if (e.find("file.co") == e.npos) FAIL("cut at " << n << ": '" << e << "'");
  }
}

TEST_CASE("broken headers are refused with the field's name", "[compiler][elf]") {
  const auto eh = at<Elf64_Ehdr>(0);
  const size_t ph = eh.e_phoff;
  size_t load = ph;
  while (at<Elf64_Phdr>(load).p_type != PT_LOAD) load += sizeof(Elf64_Phdr);
  struct Case {
    std::vector<std::byte> bytes;
    const char* expect;
  };
  for (const Case& c : {
           Case{{}, "empty"},
           Case{std::vector<std::byte>(27, std::byte{0x7f}), "not an ELF"},
           Case{with<uint8_t>(EI_CLASS, ELFCLASS32), "32-bit"},
           Case{with<uint8_t>(EI_DATA, ELFDATA2MSB), "big-endian"},
           Case{with<uint16_t>(offsetof(Elf64_Ehdr, e_machine), EM_X86_64), "machine 62"},
           Case{with<uint8_t>(EI_OSABI, 0), "OS ABI"},
           Case{with<uint8_t>(EI_ABIVERSION, 200), "version 200"},
           Case{with<uint8_t>(EI_ABIVERSION, 6), "version 6"},
           Case{with<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_REL), "not linked"},
           Case{with<uint32_t>(offsetof(Elf64_Ehdr, e_flags), 0xff), "e_flags"},
           Case{with<uint64_t>(offsetof(Elf64_Ehdr, e_shoff), uint64_t{1} << 40), "section header"},
           Case{with<uint64_t>(offsetof(Elf64_Ehdr, e_shoff), ~uint64_t{0} - 8), "section header"},
           Case{with<uint64_t>(offsetof(Elf64_Ehdr, e_phoff), uint64_t{1} << 40), "program header"},
           Case{with<uint16_t>(offsetof(Elf64_Ehdr, e_phentsize), 1), "size of ELF"},
           Case{with<uint16_t>(offsetof(Elf64_Ehdr, e_shnum), 0), "dynamic symbols"},
           Case{with<uint16_t>(offsetof(Elf64_Ehdr, e_phnum), 0), "loadable"},
           Case{with<uint64_t>(load + offsetof(Elf64_Phdr, p_align), 3), "alignment 3"},
           Case{with<uint64_t>(load + offsetof(Elf64_Phdr, p_memsz), uint64_t{1} << 62), "image"},
           Case{with<uint64_t>(load + offsetof(Elf64_Phdr, p_filesz), ~uint64_t{0}), "in memory"},
           Case{with<uint64_t>(load + offsetof(Elf64_Phdr, p_vaddr), uint64_t{1} << 50), "image"},
           Case{with<uint64_t>(section_header(SHT_DYNSYM) + offsetof(Elf64_Shdr, sh_size), uint64_t{1} << 50), ""},
           Case{with<uint32_t>(section_header(SHT_DYNSYM) + offsetof(Elf64_Shdr, sh_link), 999), "section 999"},
           Case{with<uint64_t>(section_header(SHT_DYNSYM) + offsetof(Elf64_Shdr, sh_entsize), 1), "symbols"},
           Case{with<uint64_t>(section_header(SHT_NOTE) + offsetof(Elf64_Shdr, sh_size), 4), "metadata"},
       }) {
    CAPTURE(c.expect);
    const std::string e = error_of(c.bytes);
    CAPTURE(e);
    CHECK(e.find("file.co") != e.npos);
    CHECK(e.find(c.expect) != e.npos);
  }
}

TEST_CASE("relocations that are unknown or point outside are refused", "[compiler][elf]") {
  std::vector<std::byte> b = good();
  const auto eh = at<Elf64_Ehdr>(0);
  size_t victim = 0;  // any other section header
  for (unsigned i = 1; i < eh.e_shnum && !victim; ++i)
    if (const size_t s = eh.e_shoff + i * sizeof(Elf64_Shdr);
        at<Elf64_Shdr>(s).sh_type == SHT_GNU_HASH || at<Elf64_Shdr>(s).sh_type == SHT_HASH)
      victim = s;
  REQUIRE(victim);
  auto shdr = at<Elf64_Shdr>(victim);
  const Elf64_Rela rela{0x100, ELF64_R_INFO(0, 255), 0};
  std::memcpy(b.data() + shdr.sh_offset, &rela, std::min<size_t>(sizeof rela, shdr.sh_size));
  shdr.sh_type = SHT_RELA;
  shdr.sh_flags = SHF_ALLOC;
  shdr.sh_size = sizeof rela;
  std::memcpy(b.data() + victim, &shdr, sizeof shdr);
  CHECK(error_of(b).find("relocation type 255") != std::string::npos);
  const Elf64_Rela outside{~uint64_t{0}, ELF64_R_INFO(0, 13), 0};
  std::memcpy(b.data() + shdr.sh_offset, &outside, sizeof outside);
  CHECK(error_of(b).find("outside the image") != std::string::npos);
  const Elf64_Rela no_symbol{0x100, ELF64_R_INFO(7777, 3), 0};
  std::memcpy(b.data() + shdr.sh_offset, &no_symbol, sizeof no_symbol);
  CHECK(error_of(b).find("symbol 7777") != std::string::npos);
  const Elf64_Rela fine{0x100, ELF64_R_INFO(0, 13), 0x40};
  std::memcpy(b.data() + shdr.sh_offset, &fine, sizeof fine);
  CHECK(load_code_object(b, "file.co").relocs.size() == 1);
}

namespace {

/// The good object with one relocation more, against its first symbol.
std::vector<std::byte> with_relocation(uint32_t type, uint64_t offset, int64_t addend) {
  std::vector<std::byte> b = good();
  const auto eh = at<Elf64_Ehdr>(0);
  for (unsigned i = 1; i < eh.e_shnum; ++i) {
    const size_t header = eh.e_shoff + i * sizeof(Elf64_Shdr);
    auto s = at<Elf64_Shdr>(header);
    if (s.sh_type != SHT_GNU_HASH) continue;
    s.sh_type = SHT_RELA;
    s.sh_size = sizeof(Elf64_Rela);
    std::memcpy(b.data() + header, &s, sizeof s);
    const Elf64_Rela rela{offset, ELF64_R_INFO(1, type), addend};
    std::memcpy(b.data() + s.sh_offset, &rela, sizeof rela);
    return b;
  }
  FAIL("no section to take");
  return b;
}

}  // namespace

TEST_CASE("distances within the image are resolved, addresses are kept for later", "[compiler][elf]") {
  const auto sym = at<Elf64_Sym>(at<Elf64_Shdr>(section_header(SHT_DYNSYM)).sh_offset + sizeof(Elf64_Sym));
  const uint64_t value = sym.st_value, place = 0x20;  // inside the ELF header: nobody reads it from the image
  auto word = [&](uint32_t type, int64_t addend) {
    const ProgramImage image = load_code_object(with_relocation(type, place, addend), "file.co");
    CHECK(image.relocs.empty());
    uint64_t v;
    std::memcpy(&v, image.bytes.data() + place, 8);
    return v;
  };
  const uint64_t distance = value + 4 - place;
  CHECK(word(5, 4) == distance);                           // REL64
  CHECK(uint32_t(word(4, 4)) == distance);                 // REL32
  CHECK(uint32_t(word(10, 4)) == uint32_t(distance));      // REL32_LO
  CHECK(uint32_t(word(11, (int64_t{5} << 32) + 4)) == 5);  // REL32_HI
  CHECK(int32_t(word(4, -0x1000000)) == int32_t(distance - 4 - 0x1000000));
  CHECK(error_of(with_relocation(4, place, int64_t{1} << 40)).find("32 bits") != std::string::npos);
  const ProgramImage image = load_code_object(with_relocation(3, place, 4), "file.co");  // ABS64
  REQUIRE(image.relocs.size() == 1);
  CHECK(image.relocs[0].offset == place);
  CHECK(image.relocs[0].addend == int64_t(value) + 4);
}

TEST_CASE("a small file cannot ask for large work", "[compiler][elf]") {
  const auto eh = at<Elf64_Ehdr>(0);
  std::vector<size_t> loads;
  for (unsigned i = 0; i < eh.e_phnum; ++i)
    if (at<Elf64_Phdr>(eh.e_phoff + i * sizeof(Elf64_Phdr)).p_type == PT_LOAD)
      loads.push_back(eh.e_phoff + i * sizeof(Elf64_Phdr));
  REQUIRE(loads.size() > 1);
  SECTION("segments over one another") {
    std::vector<std::byte> b = good();
    std::memcpy(b.data() + loads[1], b.data() + loads[0], sizeof(Elf64_Phdr));
    CHECK(error_of(b).find("overlaps") != std::string::npos);
  }
  SECTION("an image of gigabytes") {
    CHECK(error_of(with<uint64_t>(loads.back() + offsetof(Elf64_Phdr, p_memsz), uint64_t{900} << 20)).find("MiB") !=
          std::string::npos);
  }
  SECTION("many sections that all are the same relocations") {
    std::vector<std::byte> b = good();
    const size_t size = b.size(), count = 60000;
    b.resize(size + count * sizeof(Elf64_Shdr));
    std::memcpy(b.data() + size, good().data() + eh.e_shoff, eh.e_shnum * sizeof(Elf64_Shdr));
    // Relocations of type NONE, so that only their number can be wrong: an area of zeros.
    const size_t zeros = b.size();
    b.resize(zeros + 24000);
    for (size_t i = eh.e_shnum; i < count; ++i) {
      const Elf64_Shdr s{0, SHT_RELA, SHF_ALLOC, 0, zeros, 24000, 0, 0, 8, sizeof(Elf64_Rela)};
      std::memcpy(b.data() + size + i * sizeof(Elf64_Shdr), &s, sizeof s);
    }
    const uint64_t table = size;
    const uint16_t n = count;
    std::memcpy(b.data() + offsetof(Elf64_Ehdr, e_shoff), &table, sizeof table);
    std::memcpy(b.data() + offsetof(Elf64_Ehdr, e_shnum), &n, sizeof n);
    CHECK(error_of(b).find("bytes of relocations") != std::string::npos);
  }
  SECTION("a name without an end") {
    const auto strings =
        at<Elf64_Shdr>(eh.e_shoff + at<Elf64_Shdr>(section_header(SHT_DYNSYM)).sh_link * sizeof(Elf64_Shdr));
    std::vector<std::byte> b = good();
    std::fill_n(b.begin() + long(strings.sh_offset), strings.sh_size, std::byte{'x'});
    CHECK(error_of(b).find("has no end") != std::string::npos);
  }
}

TEST_CASE("random damage never does more than throw", "[compiler][elf]") {
  std::mt19937 rng(11);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> b = good();
    for (unsigned n = 1 + rng() % 6; n; --n) b[rng() % b.size()] = std::byte(rng());
    try {
      const ProgramImage image = load_code_object(b, "file.co");
      for (const KernelInfo& k : image.kernels) REQUIRE(k.code_offset < image.bytes.size());
    } catch (const Error&) {
    }
  }
}

TEST_CASE("MessagePack values of every type, and claims larger than the file", "[compiler][msgpack]") {
  auto parse = [](std::initializer_list<int> v) {
    std::vector<std::byte> b;
    for (int x : v) b.push_back(std::byte(x));
    static std::vector<std::byte> keep;
    keep = b;
    return parse_msgpack(keep, "x");
  };
  CHECK(parse({0x7f}).number == 127);
  CHECK(parse({0xcd, 0x12, 0x34}).number == 0x1234);
  CHECK(parse({0xcf, 1, 2, 3, 4, 5, 6, 7, 8}).number == 0x0102030405060708);
  CHECK(int64_t(parse({0xff}).number) == -1);
  CHECK(int64_t(parse({0xd1, 0xff, 0x00}).number) == -256);
  CHECK(parse({0xa3, 'a', 'b', 'c'}).text == "abc");
  CHECK(parse({0xd9, 2, 'h', 'i'}).text == "hi");
  CHECK(parse({0x92, 1, 0xc0}).items.size() == 2);
  CHECK(parse({0x81, 0xa1, 'k', 5}).find("k")->number == 5);
  CHECK(parse({0xc3}).number == 1);
  CHECK(parse({0xcb, 0, 0, 0, 0, 0, 0, 0, 0}).type == MsgPack::Type::kOther);
  for (auto bad : {std::initializer_list<int>{},
                   {0xc1},
                   {0xcd, 1},
                   {0xa3, 'a'},
                   {0xdd, 0xff, 0xff, 0xff, 0xff},
                   {0xdf, 0xff, 0xff, 0xff, 0xff},
                   {0xdb, 0xff, 0xff, 0xff, 0xff},
                   {0xc6, 0xff, 0xff, 0xff, 0xff},
                   {0x92, 1},
                   {0x81, 0xa1, 'k'},
                   {0xc9, 0xff, 0xff, 0xff, 0xff, 0}})
    CHECK_THROWS_AS(parse(bad), ParseError);
  CHECK_THROWS_AS(parse_msgpack(std::vector<std::byte>(100000, std::byte{0x91}), "deep"), ParseError);
}
