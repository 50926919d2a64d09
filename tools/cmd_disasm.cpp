// baregpu disasm: what is in a code object: kernels, their arguments and resources, their instructions.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "compiler/compiler.hpp"
#include "tools/cli.hpp"

namespace baregpu::tools {
namespace {

struct DisasmOptions {
  Global global;
  std::string file, arch = "gfx1100";
  unsigned optimization = 3;
  bool wave64 = false;
};

nlohmann::json to_json(const KernelInfo& k) {
  nlohmann::json args = nlohmann::json::array();
  for (const KernelArg& a : k.args)
    args.push_back({{"name", a.name},
                    {"type", a.type_name},
                    {"offset", a.offset},
                    {"size", a.size},
                    {"hidden", is_hidden(a.kind)}});
  return {{"kernel", k.name},
          {"vgprs", k.vgpr_count},
          {"sgprs", k.sgpr_count},
          {"lds_bytes", k.group_segment_size},
          {"scratch_bytes", k.private_segment_size},
          {"kernarg_bytes", k.kernarg_size},
          {"wave", k.wave32 ? 32 : 64},
          {"args", args}};
}

int run_disasm(const DisasmOptions& o) {
  const DeviceSpec spec = o.global.spec();
  compiler::CompileOptions c;
  c.arch = spec.arch.empty() ? o.arch : spec.arch;
  c.optimization = o.optimization;
  c.wave64 = o.wave64;
  const std::vector<std::byte> object = compiler::compile_file_to_object(o.file, c);
  const ProgramImage image = compiler::load_code_object(object, o.file);
  const std::string text = compiler::disassemble(object, o.file);
  if (o.global.json) {
    nlohmann::json kernels = nlohmann::json::array();
    for (const KernelInfo& k : image.kernels) kernels.push_back(to_json(k));
    fmt::print("{}\n",
               nlohmann::json{{"file", o.file}, {"arch", image.arch}, {"kernels", kernels}, {"text", text}}.dump());
  } else {
    fmt::print("{}", text);
  }
  return kDone;
}

}  // namespace

void setup_disasm(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<DisasmOptions>();
  CLI::App* c =
      app.add_subcommand("disasm", "kernels, arguments, resources and instructions of a code object or source file");
  o->global.add_to(*c);
  c->add_option("FILE", o->file, "code object, or a source file that is compiled first")->required();
  c->add_option("--arch", o->arch, "architecture to compile a source file for")->capture_default_str();
  c->add_option("-O", o->optimization, "optimization level")->check(CLI::Range(0, 3))->capture_default_str();
  c->add_flag("--wave64", o->wave64, "compile for 64 lanes a wave");
  c->callback([o, &exit_code] { exit_code = guarded(o->global, [&] { return run_disasm(*o); }); });
}

}  // namespace baregpu::tools
