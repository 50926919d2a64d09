// What the fuzz targets share: where an input breaks a rule, and the inputs they start from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace baregpu::fuzz {

using Bytes = std::vector<std::byte>;
using Seeds = std::vector<std::pair<std::string, Bytes>>;

/// The inputs that a target starts from, by file name. Each target defines it.
Seeds seeds();

/// Stops the run, so that libFuzzer keeps the input, if a promise about the code under test does not hold.
void require(bool holds, const char* promise);

Bytes to_bytes(const std::string& text);

}  // namespace baregpu::fuzz
