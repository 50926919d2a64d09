// Firmware files of linux-firmware's amdgpu folder: finding, unpacking, cutting into the pieces that the PSP takes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "am/regs/tables.hpp"

namespace baregpu::am {

/// PSP firmware types of LOAD_IP_FW (Linux psp_gfx_if.h: GFX_FW_TYPE_*).
enum class FwType : uint32_t {
  kCpMec = 4,
  kCpMecMe1 = 5,
  kRlcV = 7,
  kRlcG = 8,
  kSmu = 18,
  kRlcGpmMem = 20,
  kRlcSrmMem = 21,
  kRlcSrmCntl = 22,
  kRlcP = 25,
  kRlcIram = 26,
  kRlcDram = 48,
  kImuI = 68,
  kImuD = 69,
  kSdmaTh0 = 71,
  kSdmaTh1 = 72,
  kRs64Mec = 89,
  kRs64MecStack = 94,
};

/// Pieces of the sos file (Linux amdgpu_ucode.h: enum psp_fw_type).
enum class SosPiece : uint32_t {
  kSos = 1,
  kSysDrv = 2,
  kKdb = 3,
  kToc = 4,
  kSpl = 5,
  kRl = 6,
  kSocDrv = 7,
  kIntfDrv = 8,
  kDbgDrv = 9,
  kRasDrv = 10
};

/// Where firmware files come from: the first folder that has NAME, NAME.xz or NAME.zst wins.
class FirmwareFolders {
 public:
  /// `first` are searched before AM_FIRMWARE_PATH and /lib/firmware/amdgpu.
  explicit FirmwareFolders(std::vector<std::string> first = {});
  /// Only these folders (tests).
  static FirmwareFolders only(std::vector<std::string> folders);
  /// The unpacked bytes. @throws Error naming the file, every folder searched and the package that has it; ParseError
  /// if it does not unpack or is larger than 64 MiB.
  std::vector<std::byte> load(const std::string& name) const;
  /// Path of the file that load() would take, or "".
  std::string find(const std::string& name) const;
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
};

struct FwPiece {
  FwType type;
  std::string from;                  ///< file and part, for messages
  std::span<const std::byte> bytes;  ///< points into FirmwareSet::files
};

/// Everything that one boot loads, in PSP order.
struct FirmwareSet {
  std::map<SosPiece, std::span<const std::byte>> sos;
  FwPiece smu;                  ///< loaded before the trusted memory region is set up
  std::vector<FwPiece> pieces;  ///< LOAD_IP_FW order; ends with RLC_G
  uint64_t mec_start = 0;       ///< RS64 program counter start
  std::vector<std::pair<std::string, std::unique_ptr<std::vector<std::byte>>>> files;
};

/// The files of a gfx11 chip (versions from discovery). @throws Error as FirmwareFolders::load, ParseError naming the
/// file.
FirmwareSet load_firmware(const FirmwareFolders& folders, IpVersion mp0, IpVersion mp1, IpVersion sdma, IpVersion gc);

/// Names of the files that load_firmware() reads.
std::vector<std::string> firmware_names(IpVersion mp0, IpVersion mp1, IpVersion sdma, IpVersion gc);

/// Cuts single files (each is bounds-checked; fuzzed). Sections append to `out`.
void parse_sos(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);
void parse_smu(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);
void parse_sdma(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);
void parse_mec(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);
void parse_imu(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);
void parse_rlc(std::span<const std::byte> file, const std::string& name, FirmwareSet& out);

/// Unpacks .xz / .zst by content; other bytes come back as they are. @throws ParseError naming `name`.
std::vector<std::byte> unpack_firmware(std::vector<std::byte> bytes, const std::string& name);

}  // namespace baregpu::am
