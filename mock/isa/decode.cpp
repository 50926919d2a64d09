#include "mock/isa/decode.hpp"

#include <vector>

namespace baregpu::mock::isa {
namespace {

// Opcode spaces of the VOP3 encoding: VOPC from 0, VOP2 from 0x100, VOP1 from 0x180, its own from 0x200 (RDNA3
// ISA 16.6).
constexpr unsigned kVop2InVop3 = 0x100, kVop1InVop3 = 0x180;

struct Tables {
  std::array<std::vector<const OpRow*>, 17> by_format;
  explicit Tables(unsigned generation) {
    for (auto& t : by_format) t.resize(1024);
    for (auto rows :
         {salu_rows(), vop1_rows(), vop2_rows(), vopc_rows(), vop3_rows(), vop3p_rows(), ds_rows(), memory_rows()}) {
      for (const OpRow& row : rows) {
        const int opcode = row.opcode[generation];
        if (opcode < 0) continue;
        by_format[unsigned(row.format)][unsigned(opcode)] = &row;
        auto& vop3 = by_format[unsigned(Format::kVop3)];
        if (row.flags & kNoE64) continue;
        if (row.format == Format::kVopc) vop3[unsigned(opcode)] = &row;
        if (row.format == Format::kVop2) vop3[kVop2InVop3 + unsigned(opcode)] = &row;
        if (row.format == Format::kVop1) vop3[kVop1InVop3 + unsigned(opcode)] = &row;
      }
    }
  }
  const OpRow* find(Format format, unsigned opcode) const { return by_format[unsigned(format)][opcode]; }
};

const Tables& tables() {
  static const Tables kTables(0);
  return kTables;
}

constexpr uint32_t bits(uint32_t w, unsigned high, unsigned low) { return (w >> low) & ((2u << (high - low)) - 1); }

bool valid_source(unsigned code) {
  return code <= 208 || (code >= kSrcSharedBase && code <= kSrcPrivateLimit) ||
         (code >= kSrcInlineFloat && code <= 248) || (code >= kSrcVccz && code <= kSrcScc) || code == kSrcLiteral ||
         code >= kSrcVgpr;
}

class Decoder {
 public:
  explicit Decoder(std::span<const uint32_t> words) : words_(words) { i_.words[0] = words[0]; }
  Inst run() {
    const uint32_t w = words_[0];
    if (!(w >> 31))
      vop12();
    else if (w >> 30 == 2)
      scalar_alu();
    else
      switch (w >> 26) {
        case 0x32: vopd(); break;
        case 0x33: vop3p(); break;
        case 0x35: vop3(); break;
        case 0x36: ds(); break;
        case 0x37: flat(); break;
        case 0x38: mubuf(); break;
        case 0x3d: smem(); break;
        default: fail();
      }
    if (failed_ || !i_.row) i_ = Inst{.size = i_.size, .words = i_.words};
    return i_;
  }

 private:
  void fail() { failed_ = true; }  // the row stays: what follows may look at it
  bool second() {
    i_.size = 2;
    if (words_.size() < 2) {
      i_.size = 1;
      fail();
      return false;
    }
    i_.words[1] = words_[1];
    return true;
  }
  bool take(uint32_t& out) {
    if (words_.size() <= i_.size) {
      fail();
      return false;
    }
    out = words_[i_.size++];
    return true;
  }
  void literal() {
    if (i_.has_literal) return;
    if (take(i_.literal)) i_.has_literal = true;
  }
  void source(unsigned n, unsigned code) {
    i_.src[n] = uint16_t(code);
    if (!valid_source(code)) fail();
    if (code == kSrcLiteral) literal();
  }
  void look(Format table, unsigned opcode) {
    if (!failed_) i_.row = tables().find(table, opcode);
  }

  void scalar_alu() {
    const uint32_t w = words_[0];
    if (bits(w, 31, 23) == 0x17d) {
      look(i_.encoding = Format::kSop1, bits(w, 15, 8));
      if (!i_.row) return;
      i_.dst = uint16_t(bits(w, 22, 16));
      if (!(i_.row->flags & kNoSrc)) source(0, bits(w, 7, 0));
    } else if (bits(w, 31, 23) == 0x17e) {
      look(i_.encoding = Format::kSopc, bits(w, 22, 16));
      source(0, bits(w, 7, 0));
      source(1, bits(w, 15, 8));
    } else if (bits(w, 31, 23) == 0x17f) {
      look(i_.encoding = Format::kSopp, bits(w, 22, 16));
      i_.imm = int16_t(w);
    } else if (bits(w, 31, 28) == 0xb) {
      look(i_.encoding = Format::kSopk, bits(w, 27, 23));
      i_.dst = uint16_t(bits(w, 22, 16));
      i_.imm = int16_t(w);
      if (bits(w, 27, 23) == 0x13) literal();  // unused opcode space: s_setreg_imm32 on gfx11
    } else {
      look(i_.encoding = Format::kSop2, bits(w, 29, 23));
      i_.dst = uint16_t(bits(w, 22, 16));
      source(0, bits(w, 7, 0));
      source(1, bits(w, 15, 8));
    }
  }

  // In the 32-bit encodings a 16-bit VGPR operand names 128 registers, bit 7 chooses the high half (RDNA3 ISA 16.1).
  void halves() {
    if (is_16bit(i_.row->dst)) {
      if (i_.dst & 0x80) i_.op_sel |= 8;
      i_.dst &= 0x7f;
    }
    for (unsigned n = 0; n < i_.row->sources; ++n)
      if (is_16bit(i_.row->src[n]) && i_.src[n] >= kSrcVgpr && !(n == 2 && (i_.row->flags & kAccumulate))) {
        if (i_.src[n] & 0x80) i_.op_sel |= uint8_t(1u << n);
        i_.src[n] &= 0x17f;
      }
    if ((i_.row->flags & kAccumulate) && is_16bit(i_.row->dst)) {
      i_.src[2] = uint16_t(kSrcVgpr + i_.dst);
      if (i_.op_sel & 8) i_.op_sel |= 4;
    }
  }
  void implied(bool e64) {
    if (i_.row->flags & kAccumulate) i_.src[2] = uint16_t(kSrcVgpr + i_.dst);
    if (e64) return;
    const unsigned n = i_.row->sources;
    if ((i_.row->flags & kCarryIn) && n) i_.src[n - 1] = 106;
    i_.sdst = i_.row->flags & kCmpx ? 126 : 106;
  }
  void dpp_word(unsigned code, bool e64) {
    uint32_t w = 0;
    if (!take(w)) return;
    i_.src[0] = uint16_t(kSrcVgpr + bits(w, 7, 0));
    if (code == kSrcDpp16) {
      i_.dpp = 1;
      i_.dpp_ctrl = bits(w, 16, 8);
      i_.dpp_fi = uint8_t(bits(w, 18, 18));
      i_.dpp_bound = uint8_t(bits(w, 19, 19));
      if (!e64) {
        i_.neg = uint8_t(bits(w, 20, 20) | bits(w, 22, 22) << 1);
        i_.abs = uint8_t(bits(w, 21, 21) | bits(w, 23, 23) << 1);
      }
      i_.dpp_banks = uint8_t(bits(w, 27, 24));
      i_.dpp_rows = uint8_t(bits(w, 31, 28));
      const uint32_t c = i_.dpp_ctrl;
      const bool known = c < 0x100 || (c > 0x100 && c < 0x110) || (c > 0x110 && c < 0x120) ||
                         (c > 0x120 && c < 0x130) || c == 0x140 || c == 0x141 || (c >= 0x150 && c < 0x170);
      if (!known) fail();
    } else {
      i_.dpp = 2;
      i_.dpp_ctrl = w >> 8;
      i_.dpp_fi = code == kSrcDpp8Fi;
    }
  }
  void first_source(unsigned code, bool e64) {
    if (code == kSrcDpp16 || code == kSrcDpp8 || code == kSrcDpp8Fi)
      dpp_word(code, e64);
    else
      source(0, code);
  }

  void vop12() {
    const uint32_t w = words_[0];
    i_.dst = uint16_t(bits(w, 24, 17));
    if (bits(w, 30, 25) == 0x3f) {
      look(i_.encoding = Format::kVop1, bits(w, 16, 9));
      if (!i_.row) return;
      if (i_.row->sources) first_source(bits(w, 8, 0), false);
    } else if (bits(w, 30, 25) == 0x3e) {
      look(i_.encoding = Format::kVopc, bits(w, 24, 17));
      if (!i_.row) return;
      i_.dst = 0;
      i_.src[1] = uint16_t(kSrcVgpr + bits(w, 16, 9));
      first_source(bits(w, 8, 0), false);
    } else {
      look(i_.encoding = Format::kVop2, bits(w, 30, 25));
      if (!i_.row) return;
      const uint16_t vsrc1 = uint16_t(kSrcVgpr + bits(w, 16, 9));
      i_.src[1] = vsrc1;
      first_source(bits(w, 8, 0), false);
      if (i_.row->flags & kMadK) {
        literal();
        i_.src[1] = kSrcLiteral;
        i_.src[2] = vsrc1;
      }
      if (i_.row->flags & kAddK) {
        literal();
        i_.src[2] = kSrcLiteral;
      }
    }
    implied(false);
    halves();
  }

  void vop3() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    i_.encoding = Format::kVop3;
    look(Format::kVop3, bits(w, 25, 16));
    if (!i_.row) return;
    i_.dst = uint16_t(bits(w, 7, 0));
    i_.clamp = uint8_t(bits(w, 15, 15));
    if (i_.row->flags & kCarryOut)
      i_.sdst = uint16_t(bits(w, 14, 8));
    else {
      i_.op_sel = uint8_t(bits(w, 14, 11));
      i_.abs = uint8_t(bits(w, 10, 8));
    }
    if ((i_.row->format == Format::kVopc || (i_.row->flags & kSgprDst)) && i_.dst > 127)
      return fail();  // no scalar register
    if (i_.row->format == Format::kVopc) {
      i_.sdst = i_.row->flags & kCmpx ? 126 : i_.dst;
      i_.dst = 0;
    }
    i_.omod = uint8_t(bits(w1, 28, 27));
    i_.neg = uint8_t(bits(w1, 31, 29));
    const unsigned n = i_.row->sources;
    if (n > 0) first_source(bits(w1, 8, 0), true);
    if (n > 1) source(1, bits(w1, 17, 9));
    if (n > 2 && !(i_.row->flags & kAccumulate)) source(2, bits(w1, 26, 18));
    implied(true);
    if ((i_.row->flags & kAccumulate) && (i_.op_sel & 8)) i_.op_sel |= 4;
  }

  void vop3p() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    if (bits(w, 25, 23)) return fail();
    look(i_.encoding = Format::kVop3p, bits(w, 22, 16));
    if (!i_.row) return;
    i_.dst = uint16_t(bits(w, 7, 0));
    i_.clamp = uint8_t(bits(w, 15, 15));
    i_.op_sel = uint8_t(bits(w, 13, 11));
    i_.op_sel_hi = uint8_t(bits(w1, 28, 27) | bits(w, 14, 14) << 2);
    i_.neg_hi = uint8_t(bits(w, 10, 8));
    i_.neg = uint8_t(bits(w1, 31, 29));
    const unsigned n = i_.row->sources;
    if (n > 0) first_source(bits(w1, 8, 0), true);
    if (n > 1) source(1, bits(w1, 17, 9));
    if (n > 2) source(2, bits(w1, 26, 18));
  }

  void vopd() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    i_.encoding = Format::kVopd;
    if (bits(w, 25, 22) >= 16) return;
    i_.row = vopd_row(bits(w, 25, 22));
    i_.row_y = vopd_row(bits(w, 21, 17));
    if (!i_.row || !i_.row_y) return fail();
    i_.src[1] = uint16_t(kSrcVgpr + bits(w, 16, 9));
    i_.src_y[1] = uint16_t(kSrcVgpr + bits(w1, 16, 9));
    i_.dst = uint16_t(bits(w1, 31, 24));
    i_.dst_y = uint16_t(bits(w1, 23, 17) << 1 | (~i_.dst & 1));  // the pair writes one even and one odd register
    source(0, bits(w, 8, 0));
    i_.src_y[0] = uint16_t(bits(w1, 8, 0));
    if (!valid_source(i_.src_y[0])) fail();
    if (i_.src_y[0] == kSrcLiteral || ((i_.row->flags | i_.row_y->flags) & (kMadK | kAddK))) literal();
  }

  void smem() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    look(i_.encoding = Format::kSmem, bits(w, 25, 18));
    if (!i_.row) return;
    i_.srsrc = uint8_t(bits(w, 5, 0) << 1);
    i_.dst = uint16_t(bits(w, 12, 6));
    i_.dlc = bits(w, 13, 13);
    i_.glc = bits(w, 14, 14);
    i_.imm = int32_t(w1 << 11) >> 11;
    i_.saddr = uint8_t(bits(w1, 31, 25));
  }
  void ds() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    look(i_.encoding = Format::kDs, bits(w, 25, 18));
    i_.imm = int32_t(bits(w, 15, 0));
    i_.gds = bits(w, 17, 17);
    vector_fields(w1);
    i_.data1 = uint8_t(bits(w1, 23, 16));
    if (i_.gds) fail();  // no GDS in compute queues of this generation
  }
  void flat() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    constexpr Format kSegments[] = {Format::kFlat, Format::kScratch, Format::kGlobal};
    if (bits(w, 17, 16) == 3) return fail();
    look(i_.encoding = kSegments[bits(w, 17, 16)], bits(w, 24, 18));
    i_.imm = int32_t(w << 19) >> 19;
    if (i_.encoding == Format::kFlat) i_.imm = int32_t(bits(w, 11, 0));
    i_.dlc = bits(w, 13, 13);
    i_.glc = bits(w, 14, 14);
    i_.slc = bits(w, 15, 15);
    vector_fields(w1);
    i_.saddr = uint8_t(bits(w1, 22, 16));
    i_.sve = bits(w1, 23, 23);
  }
  void mubuf() {
    if (!second()) return;
    const uint32_t w = words_[0], w1 = words_[1];
    look(i_.encoding = Format::kMubuf, bits(w, 25, 18));
    i_.imm = int32_t(bits(w, 11, 0));
    i_.slc = bits(w, 12, 12);
    i_.dlc = bits(w, 13, 13);
    i_.glc = bits(w, 14, 14);
    vector_fields(w1);
    i_.dst = i_.data0;
    i_.srsrc = uint8_t(bits(w1, 20, 16) << 2);
    i_.offen = bits(w1, 22, 22);
    i_.idxen = bits(w1, 23, 23);
    i_.saddr = uint8_t(bits(w1, 31, 24));
  }
  void vector_fields(uint32_t w1) {
    i_.addr = uint8_t(bits(w1, 7, 0));
    i_.data0 = uint8_t(bits(w1, 15, 8));
    i_.dst = uint16_t(bits(w1, 31, 24));
  }

  std::span<const uint32_t> words_;
  Inst i_;
  bool failed_ = false;
};

}  // namespace

Inst decode(Target, std::span<const uint32_t> words) {
  if (words.empty()) return {};
  return Decoder(words).run();  // gfx1100, 1101 and 1102 share one instruction set (LLVM: FeatureISAVersion11_0_*)
}

uint64_t constant_value(uint16_t code, uint32_t literal, Ty ty) {
  if (code == kSrcLiteral) {
    if (ty == Ty::kF64) return uint64_t{literal} << 32;
    return ty == Ty::kI64 ? uint64_t(int64_t(int32_t(literal))) : literal;
  }
  if (code == kSrcNull) return 0;
  if (code >= 129 && code <= 192) return code - 128u;
  if (code >= 193 && code <= 208) return uint64_t(int64_t(192 - int(code)));
  constexpr uint64_t k64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                              0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                              0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
  constexpr uint32_t k32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                              0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
  constexpr uint16_t k16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
  if (code >= kSrcInlineFloat && code <= 248) {
    const unsigned n = code - kSrcInlineFloat;
    if (dwords(ty) == 2) return k64[n];
    return is_16bit(ty) ? k16[n] : k32[n];
  }
  return 0;
}

}  // namespace baregpu::mock::isa
