// A register's name is a type, its place is data (tables.hpp). names.hpp has one type per register and field.
#pragma once
#include <cstdint>

namespace baregpu::am {

template <uint16_t Id>
struct RegName { static constexpr uint16_t kId = Id; };

/// A field with a value to write: GCVM_L2_CNTL::ENABLE_L2_CACHE{1}.
template <class Reg, uint8_t Index>
struct FieldName {
  using Register = Reg;
  static constexpr uint8_t kIndex = Index;
  uint32_t value = 0;
  constexpr FieldName() = default;
  constexpr explicit FieldName(uint32_t v) : value(v) {}
};

}  // namespace baregpu::am
