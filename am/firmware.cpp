#include "am/firmware.hpp"

#include <fmt/format.h>

#include "drivers/base/bits.hpp"
#include "drivers/base/reader.hpp"

// Header layouts: Linux amdgpu_ucode.h.
namespace baregpu::am {
namespace {

/// The 32 bytes that start every file.
struct Header {
  uint32_t size_bytes, header_size_bytes;
  uint16_t header_major, header_minor, ip_major, ip_minor;
  uint32_t ucode_version, ucode_size, ucode_offset, crc32;
};
static_assert(sizeof(Header) == 32);

Header header(const ByteReader& r) {
  Header h = r.at<Header>(0);
  if (h.size_bytes != r.size())
    r.fail(fmt::format("header says {} bytes, the file has {} (truncated?)", h.size_bytes, r.size()));
  return h;
}

[[noreturn]] void unknown_version(const ByteReader& r, const Header& h, const char* known) {
  r.fail(fmt::format("header version {}.{} is not known (known: {})", h.header_major, h.header_minor, known));
}

std::span<const std::byte> piece(const ByteReader& r, uint64_t offset, uint64_t size, const char* part) {
  if (size == 0) r.fail(fmt::format("{} is empty", part));
  if (offset > r.size() || size > r.size() - offset)
    r.fail(fmt::format("{} of {} bytes at {} is beyond the file's {} bytes", part, size, offset, r.size()));
  return r.range(offset, size);
}

void add(FirmwareSet& out, FwType type, const std::string& name, const char* part, std::span<const std::byte> bytes) {
  out.pieces.push_back({type, name + " (" + part + ")", bytes});
}

std::string version_name(const char* ip, IpVersion v, const char* rest) {
  return fmt::format("{}_{}_{}_{}{}.bin", ip, v.major, v.minor, v.revision, rest);
}

}  // namespace

void parse_sos(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  uint64_t descriptors;
  if (h.header_major == 2 && h.header_minor == 0)
    descriptors = 36;
  else if (h.header_major == 2 && h.header_minor == 1)
    descriptors = 40;
  else
    unknown_version(r, h, "2.0, 2.1");
  const uint32_t count = r.at<uint32_t>(32);
  if (count == 0 || count > 64) r.fail(fmt::format("psp_fw_bin_count is {}", count));
  struct Desc {
    uint32_t type, version, offset, size;
  };
  for (uint32_t i = 0; i < count; ++i) {
    Desc d = r.at<Desc>(descriptors + i * sizeof(Desc));
    auto bytes =
        piece(r, uint64_t{h.ucode_offset} + d.offset, d.size, fmt::format("piece {} (type {})", i, d.type).c_str());
    out.sos.emplace(SosPiece(d.type), bytes);
  }
}

void parse_smu(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  if (h.header_major != 1) unknown_version(r, h, "1.0");
  out.smu = {FwType::kSmu, name, piece(r, h.ucode_offset, h.ucode_size, "SMU code")};
}

void parse_sdma(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  if (h.header_major != 2) unknown_version(r, h, "2.0");
  const uint32_t ctx_size = r.at<uint32_t>(36), ctl_offset = r.at<uint32_t>(48), ctl_size = r.at<uint32_t>(52);
  add(out, FwType::kSdmaTh1, name, "control thread", piece(r, ctl_offset, ctl_size, "control thread"));
  add(out, FwType::kSdmaTh0, name, "context thread", piece(r, h.ucode_offset, ctx_size, "context thread"));
}

void parse_mec(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  if (h.header_major == 2) {
    const uint32_t size = r.at<uint32_t>(36), data_size = r.at<uint32_t>(44), data_offset = r.at<uint32_t>(48);
    out.mec_start = join32(r.at<uint32_t>(52), r.at<uint32_t>(56));
    add(out, FwType::kRs64Mec, name, "code", piece(r, h.ucode_offset, size, "MEC code"));
    add(out, FwType::kRs64MecStack, name, "stack", piece(r, data_offset, data_size, "MEC stack"));
  } else if (h.header_major == 1) {
    const uint64_t jt_offset = uint64_t{r.at<uint32_t>(36)} * 4, jt_size = uint64_t{r.at<uint32_t>(40)} * 4;
    if (jt_size > h.ucode_size) r.fail("jump table is larger than the code");
    add(out, FwType::kCpMec, name, "code", piece(r, h.ucode_offset, h.ucode_size - jt_size, "MEC code"));
    add(out, FwType::kCpMecMe1, name, "jump table", piece(r, h.ucode_offset + jt_offset, jt_size, "MEC jump table"));
  } else {
    unknown_version(r, h, "1.0, 2.0");
  }
}

void parse_imu(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  if (h.header_major != 1) unknown_version(r, h, "1.0");
  const uint32_t iram = r.at<uint32_t>(32), dram = r.at<uint32_t>(40);
  add(out, FwType::kImuI, name, "instructions", piece(r, h.ucode_offset, iram, "IMU instructions"));
  add(out, FwType::kImuD, name, "data", piece(r, uint64_t{h.ucode_offset} + iram, dram, "IMU data"));
}

void parse_rlc(std::span<const std::byte> file, const std::string& name, FirmwareSet& out) {
  ByteReader r(file, "firmware file " + name);
  Header h = header(r);
  if (h.header_major != 2 || h.header_minor > 4) unknown_version(r, h, "2.0 to 2.4");
  // {size, offset} pairs at fixed places; each minor version appends to the one before.
  auto part = [&](FwType type, uint64_t size_at, const char* what) {
    uint32_t size = r.at<uint32_t>(size_at), offset = r.at<uint32_t>(size_at + 4);
    add(out, type, name, what, piece(r, offset, size, what));
  };
  if (h.header_minor == 1) {
    part(FwType::kRlcSrmCntl, 116, "save/restore control");
    part(FwType::kRlcGpmMem, 132, "GPM memory");
    part(FwType::kRlcSrmMem, 148, "SRM memory");
  }
  if (h.header_minor >= 2) {
    part(FwType::kRlcIram, 156, "RLC IRAM");
    part(FwType::kRlcDram, 164, "RLC DRAM");
  }
  if (h.header_minor >= 3) {  // Linux tests for >= 3; a driver that tests for 3 alone loses both on 2.4 files
    part(FwType::kRlcP, 180, "RLC_P");
    part(FwType::kRlcV, 196, "RLC_V");
  }
  add(out, FwType::kRlcG, name, "RLC_G", piece(r, h.ucode_offset, h.ucode_size, "RLC_G"));
}

std::vector<std::string> firmware_names(IpVersion mp0, IpVersion mp1, IpVersion sdma, IpVersion gc) {
  return {version_name("psp", mp0, "_sos"), version_name("smu", mp1, ""),   version_name("sdma", sdma, ""),
          version_name("gc", gc, "_mec"),   version_name("gc", gc, "_imu"), version_name("gc", gc, "_rlc")};
}

FirmwareSet load_firmware(const FirmwareFolders& folders, IpVersion mp0, IpVersion mp1, IpVersion sdma, IpVersion gc) {
  FirmwareSet set;
  using Parse = void (*)(std::span<const std::byte>, const std::string&, FirmwareSet&);
  static constexpr Parse kParsers[] = {parse_sos, parse_smu, parse_sdma, parse_mec, parse_imu, parse_rlc};
  unsigned i = 0;
  for (const std::string& name : firmware_names(mp0, mp1, sdma, gc)) {
    set.files.emplace_back(name, std::make_unique<std::vector<std::byte>>(folders.load(name)));
    kParsers[i++](*set.files.back().second, name, set);
  }
  return set;
}

}  // namespace baregpu::am
