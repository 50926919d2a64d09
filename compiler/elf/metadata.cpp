#include "compiler/elf/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "drivers/base/error.hpp"

namespace baregpu::compiler {
namespace {

struct KindRow {
  std::string_view name;
  ArgKind kind;
};
constexpr KindRow kKinds[] = {
    {"by_value", ArgKind::kByValue},
    {"global_buffer", ArgKind::kGlobalBuffer},
    {"dynamic_shared_pointer", ArgKind::kDynamicSharedPointer},
    {"sampler", ArgKind::kSampler},
    {"image", ArgKind::kImage},
    {"pipe", ArgKind::kPipe},
    {"queue", ArgKind::kQueue},
    {"hidden_block_count_x", ArgKind::kHiddenBlockCountX},
    {"hidden_block_count_y", ArgKind::kHiddenBlockCountY},
    {"hidden_block_count_z", ArgKind::kHiddenBlockCountZ},
    {"hidden_group_size_x", ArgKind::kHiddenGroupSizeX},
    {"hidden_group_size_y", ArgKind::kHiddenGroupSizeY},
    {"hidden_group_size_z", ArgKind::kHiddenGroupSizeZ},
    {"hidden_remainder_x", ArgKind::kHiddenRemainderX},
    {"hidden_remainder_y", ArgKind::kHiddenRemainderY},
    {"hidden_remainder_z", ArgKind::kHiddenRemainderZ},
    {"hidden_global_offset_x", ArgKind::kHiddenGlobalOffsetX},
    {"hidden_global_offset_y", ArgKind::kHiddenGlobalOffsetY},
    {"hidden_global_offset_z", ArgKind::kHiddenGlobalOffsetZ},
    {"hidden_grid_dims", ArgKind::kHiddenGridDims},
    {"hidden_printf_buffer", ArgKind::kHiddenPrintfBuffer},
    {"hidden_hostcall_buffer", ArgKind::kHiddenHostcallBuffer},
    {"hidden_multigrid_sync_arg", ArgKind::kHiddenMultigridSyncArg},
    {"hidden_heap_v1", ArgKind::kHiddenHeapV1},
    {"hidden_default_queue", ArgKind::kHiddenDefaultQueue},
    {"hidden_completion_action", ArgKind::kHiddenCompletionAction},
    {"hidden_dynamic_lds_size", ArgKind::kHiddenDynamicLdsSize},
    {"hidden_private_base", ArgKind::kHiddenPrivateBase},
    {"hidden_shared_base", ArgKind::kHiddenSharedBase},
    {"hidden_queue_ptr", ArgKind::kHiddenQueuePtr},
    {"hidden_none", ArgKind::kHiddenNone},
};

class Reader {
 public:
  Reader(const MsgPack& map, std::string where) : map_(map), where_(std::move(where)) {
    if (map.type != MsgPack::Type::kMap) fail("is not a map");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw ParseError({.device = {}, .what = where_ + ": " + why, .source = {}, .hint = {}});
  }
  std::string text(const char* key) const {
    const MsgPack* v = map_.find(key);
    if (!v) return "";
    if (v->type != MsgPack::Type::kString) fail(std::string(key) + " is not text");
    return std::string(v->text);
  }
  uint32_t number(const char* key, uint32_t otherwise) const {
    const MsgPack* v = map_.find(key);
    return v ? as_number(*v, key) : otherwise;
  }
  uint32_t as_number(const MsgPack& v, const char* key) const {
    if (v.type != MsgPack::Type::kUnsigned || v.number > 0xffffffff) fail(std::string(key) + " is not a 32-bit number");
    return uint32_t(v.number);
  }
  bool flag(const char* key) const {
    const MsgPack* v = map_.find(key);
    return v && v->number != 0;
  }
  const MsgPack* find(const char* key) const { return map_.find(key); }

 private:
  const MsgPack& map_;
  std::string where_;
};

KernelArg parse_arg(const MsgPack& m, const std::string& where) {
  const Reader r(m, where);
  KernelArg a;
  a.name = r.text(".name");
  a.type_name = r.text(".type_name");
  a.offset = r.number(".offset", ~0u);
  a.size = r.number(".size", 0);
  if (a.offset == ~0u || a.size == 0) r.fail("has no .offset or .size");
  const std::string kind = r.text(".value_kind");
  for (const KindRow& k : kKinds)
    if (k.name == kind) a.kind = k.kind;
  if (a.kind == ArgKind::kUnknown) r.fail("unknown .value_kind '" + kind + "'");
  const std::string access = r.text(".access");
  a.is_const = r.flag(".is_const");
  a.is_restrict = r.flag(".is_restrict");
  a.read_only = access == "read_only";
  a.write_only = access == "write_only";
  return a;
}

}  // namespace

KernelInfo parse_kernel_metadata(const MsgPack& kernel, const std::string& file) {
  KernelInfo k;
  k.name = Reader(kernel, file + ": kernel").text(".name");
  const Reader r(kernel, fmt::format("{}: kernel '{}'", file, k.name));
  if (k.name.empty()) r.fail("has no .name");
  const std::string symbol = r.text(".symbol");
  if (!symbol.empty() && symbol != k.name + ".kd")
    k.name = symbol.ends_with(".kd") ? symbol.substr(0, symbol.size() - 3) : k.name;
  k.kernarg_size = r.number(".kernarg_segment_size", 0);
  k.kernarg_align = r.number(".kernarg_segment_align", 8);
  if (k.kernarg_align == 0 || k.kernarg_align > 4096 || (k.kernarg_align & (k.kernarg_align - 1)))
    r.fail("has a bad .kernarg_segment_align");
  k.max_flat_workgroup_size = r.number(".max_flat_workgroup_size", 1024);
  k.sgpr_count = r.number(".sgpr_count", 0);
  k.vgpr_count = r.number(".vgpr_count", 0);
  k.sgpr_spills = r.number(".sgpr_spill_count", 0);
  k.vgpr_spills = r.number(".vgpr_spill_count", 0);
  if (const MsgPack* size = r.find(".reqd_workgroup_size")) {
    if (size->type != MsgPack::Type::kArray || size->items.size() != 3)
      r.fail(".reqd_workgroup_size is not three numbers");
    for (unsigned i = 0; i < 3; ++i) k.reqd_workgroup_size[i] = r.as_number(size->items[i], ".reqd_workgroup_size");
  }
  if (const MsgPack* args = r.find(".args")) {
    if (args->type != MsgPack::Type::kArray) r.fail(".args is not a list");
    for (const MsgPack& a : args->items)
      k.args.push_back(parse_arg(a, fmt::format("{}: kernel '{}': argument {}", file, k.name, k.args.size())));
    std::stable_sort(k.args.begin(), k.args.end(), [](const KernelArg& a, const KernelArg& b) {
      return std::pair(is_hidden(a.kind), a.offset) < std::pair(is_hidden(b.kind), b.offset);
    });
  }
  return k;
}

}  // namespace baregpu::compiler
