// .npy files (NumPy format 1.0 to 3.0), little-endian, C order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace baregpu::tools {

/// Element types of arguments and arrays.
enum class DType : uint8_t { kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kF32, kF64 };
struct DTypeInfo {
  DType type;
  const char* name;
  const char* npy;
  unsigned size;
};
std::span<const DTypeInfo> dtypes();
const DTypeInfo& dtype_info(DType t);
/// nullptr if there is no such type.
const DTypeInfo* find_dtype(std::string_view name);

struct NpyArray {
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
  uint64_t count() const { return bytes.size() / dtype_info(dtype).size; }
};

/// Parses a file's bytes. @throws ParseError naming `name` and what is wrong.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& name);
/// @throws Error if the file cannot be read, ParseError as parse_npy().
NpyArray read_npy(const std::string& path);
/// The bytes of a version 1.0 file.
std::vector<std::byte> format_npy(const NpyArray& array);
/// Writes to a temporary name beside `path` and renames. @throws Error naming the path.
void write_npy(const std::string& path, const NpyArray& array);

/// The whole file. @throws Error naming the path and the reason.
std::vector<std::byte> read_file(const std::string& path);

/// Element `i` as a double (64-bit integers beyond 2^53 lose digits: compare those as bytes).
double element(const NpyArray& array, uint64_t i);
/// float -> IEEE half, round to nearest even; and back.
uint16_t to_half(double v);
double from_half(uint16_t bits);

}  // namespace baregpu::tools
