#include "am/chips.hpp"

#include <fmt/format.h>

#include "drivers/base/error.hpp"

namespace baregpu::am {
namespace {

constexpr GcRow kGc[] = {
    {{11, 0, 0}, "Navi31", "gfx1100"},
    {{11, 0, 2}, "Navi33", "gfx1102"},
    {{11, 0, 3}, "Navi32", "gfx1101"},
};

constexpr PspRow kPsp[] = {
    {{13, 0, 0}, true, false, true},
    {{13, 0, 7}, true, false, true},
    {{13, 0, 10}, true, false, true},
};

// DEBUGSMC Mode1Reset = 2. Linux uses the normal mailbox (0x2f) on 13.0.0 where a working user-space driver uses the
// debug one on all three; the debug mailbox is taken first and the other tried when the card does not come back cold.
constexpr SmuRow kSmu[] = {
    {{13, 0, 0}, ResetMailbox::kDebug, 2, 0, 500},
    {{13, 0, 7}, ResetMailbox::kDebug, 2, 0, 500},
    {{13, 0, 10}, ResetMailbox::kDebug, 2, 0, 500},
};

template <class Row>
const Row& find_row(std::span<const Row> rows, IpVersion Row::*key, IpVersion version, const char* ip) {
  for (const Row& r : rows)
    if (r.*key == version) return r;
  std::string known;
  for (const Row& r : rows) known += (known.empty() ? "" : ", ") + (r.*key).str();
  throw UnsupportedError({.device = {},
                          .what = fmt::format("{} {} is not supported", ip, version.str()),
                          .source = {},
                          .hint = fmt::format("supported: {}", known)});
}

}  // namespace

const GcRow& gc_row(IpVersion gc) { return find_row<GcRow>(kGc, &GcRow::gc, gc, "GC"); }
const PspRow& psp_row(IpVersion mp0) { return find_row<PspRow>(kPsp, &PspRow::mp0, mp0, "PSP (MP0)"); }
const SmuRow& smu_row(IpVersion mp1) { return find_row<SmuRow>(kSmu, &SmuRow::mp1, mp1, "SMU (MP1)"); }
std::span<const GcRow> gc_rows() { return kGc; }

}  // namespace baregpu::am
