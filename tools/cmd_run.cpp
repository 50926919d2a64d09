// baregpu run: compile or load a kernel file, launch one kernel, print, save or check its buffers.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/compiler.hpp"
#include "drivers/base/error.hpp"
#include "tools/arg_spec.hpp"
#include "tools/cli.hpp"

namespace baregpu::tools {
namespace {

struct RunOptions {
  Global global;
  std::string file, kernel, grid = "1", block = "1";
  std::vector<std::string> args, outs, prints, expects, defines;
  unsigned optimization = 3, repeat = 1;
  bool wave64 = false, no_cache = false;
};

struct Expectation {
  std::string file;
  NpyArray array;
  double tolerance = 0;
};

struct Plan {
  std::vector<ArgSpec> args;
  std::map<unsigned, std::string> outs;
  std::map<unsigned, uint64_t> prints;  ///< elements to show
  std::map<unsigned, Expectation> expects;
  hcq::Dim3 grid, block;
};

void require_buffer(const Plan& plan, const char* option, unsigned n) {
  if (n >= plan.args.size() || plan.args[n].kind != ArgSpec::Kind::kBuffer)
    throw UsageError({.device = {},
                      .what = fmt::format("{} {}=...: --arg {} is not a buffer", option, n, n),
                      .source = {},
                      .hint = {}});
}

/// Everything that can be found wrong before a GPU is touched.
Plan make_plan(const RunOptions& o) {
  Plan plan;
  plan.grid = parse_dim3("--grid", o.grid);
  plan.block = parse_dim3("--block", o.block);
  for (const std::string& a : o.args) plan.args.push_back(parse_arg_spec(a));
  for (const std::string& text : o.outs) {
    auto [n, path] = split_index("--out", text);
    require_buffer(plan, "--out", n);
    plan.outs[n] = path;
  }
  for (const std::string& text : o.prints) {
    const size_t colon = text.find(':');
    auto [n, count] = split_index(
        "--print", colon == text.npos ? text + "=16" : text.substr(0, colon) + "=" + text.substr(colon + 1));
    require_buffer(plan, "--print", n);
    uint64_t shown;
    auto [end, ec] = std::from_chars(count.data(), count.data() + count.size(), shown);
    if (ec != std::errc() || end != count.data() + count.size())
      throw UsageError({.device = {}, .what = "--print " + text + ": not N or N:COUNT", .source = {}, .hint = {}});
    plan.prints[n] = shown;
  }
  for (const std::string& text : o.expects) {
    auto [n, rest] = split_index("--expect", text);
    require_buffer(plan, "--expect", n);
    Expectation e;
    const size_t comma = rest.rfind(',');
    e.file = rest.substr(0, comma);
    if (comma != rest.npos) {
      auto [end, ec] = std::from_chars(rest.data() + comma + 1, rest.data() + rest.size(), e.tolerance);
      if (ec != std::errc() || end != rest.data() + rest.size() || !(e.tolerance >= 0))
        throw UsageError({.device = {},
                          .what = "--expect " + text + ": the tolerance is not a number >= 0",
                          .source = {},
                          .hint = {}});
    }
    e.array = read_npy(e.file);
    plan.expects[n] = std::move(e);
  }
  return plan;
}

std::string format_element(const NpyArray& a, uint64_t i) {
  if (a.dtype == DType::kI64 || a.dtype == DType::kU64) {
    uint64_t v;
    std::memcpy(&v, a.bytes.data() + i * 8, 8);
    return a.dtype == DType::kI64 ? fmt::format("{}", int64_t(v)) : fmt::format("{}", v);
  }
  return a.dtype == DType::kF32 ? fmt::format("{}", float(element(a, i))) : fmt::format("{}", element(a, i));
}

int run_kernel(const RunOptions& o) {
  Plan plan = make_plan(o);
  hcq::DeviceOptions device_options = o.global.device_options();
  device_options.profile = true;
  auto device = open_or_mock(o.global, device_options);
  if (show_progress(o.global)) progress("compile " + o.file);
  compiler::CompileOptions c;
  c.arch = device->properties().arch;
  c.optimization = o.optimization;
  c.wave64 = o.wave64;
  c.defines = o.defines;
  c.use_cache = !o.no_cache;
  hcq::Program program = device->load(compiler::compile_file(o.file, c));
  if (show_progress(o.global)) progress({});
  if (o.kernel.empty() && program.kernels().size() != 1) (void)program.kernel("");  // lists what there is
  const hcq::Kernel& kernel = o.kernel.empty() ? program.kernels()[0] : program.kernel(o.kernel);

  std::vector<hcq::Buffer> buffers(plan.args.size());
  std::vector<hcq::Arg> args;
  for (size_t i = 0; i < plan.args.size(); ++i) {
    const ArgSpec& a = plan.args[i];
    if (a.kind == ArgSpec::Kind::kBuffer) {
      buffers[i] = device->allocator().allocate(a.data.bytes.size(), hcq::BufferKind::kDevice, false,
                                                fmt::format("argument {}", i));
      device->copy_in(buffers[i], 0, a.data.bytes);
      args.emplace_back(buffers[i]);
    } else if (a.kind == ArgSpec::Kind::kLocal) {
      args.push_back(hcq::Arg::local(a.local_bytes));
    } else {
      args.push_back(scalar_arg(a));
    }
  }
  device->synchronize();
  (void)device->take_profile();
  double best_us = 0;
  for (unsigned i = 0; i < o.repeat; ++i) {
    device->wait(device->launch(kernel, plan.grid, plan.block, args));
    for (const hcq::ProfileEvent& e : device->take_profile())
      best_us = i == 0 ? e.microseconds() : std::min(best_us, e.microseconds());
  }

  bool ok = true;
  nlohmann::json outputs = nlohmann::json::array();
  for (size_t i = 0; i < plan.args.size(); ++i) {
    const unsigned n = unsigned(i);
    if (!plan.outs.contains(n) && !plan.prints.contains(n) && !plan.expects.contains(n)) continue;
    NpyArray result = plan.args[i].data;
    device->copy_out(result.bytes, buffers[i], 0);
    nlohmann::json line{{"arg", n}};
    if (auto it = plan.expects.find(n); it != plan.expects.end()) {
      const Comparison r = compare(result, it->second.array, it->second.tolerance);
      ok &= r.ok;
      line["ok"] = r.ok;
      // JSON has no infinity; a script sees null where no distance can be given.
      line["max_abs_err"] = r.max_abs_err;
      if (!o.global.json) {
        if (r.ok)
          fmt::print("argument {}: matches {} (largest difference {})\n", n, it->second.file, r.max_abs_err);
        else
          fmt::print("argument {}: differs from {}: element {} is {}, expected {}; largest difference {}, allowed {}\n",
                     n, it->second.file, r.first_bad, r.got, r.want, r.max_abs_err, it->second.tolerance);
      }
    }
    if (auto it = plan.prints.find(n); it != plan.prints.end()) {
      const uint64_t shown = std::min(it->second, result.count());
      if (o.global.json) {
        auto& values = line["values"] = nlohmann::json::array();
        for (uint64_t e = 0; e < shown; ++e) values.push_back(element(result, e));
      } else {
        fmt::print("argument {}:", n);
        for (uint64_t e = 0; e < shown; ++e) fmt::print(" {}", format_element(result, e));
        fmt::print("{}\n", shown < result.count() ? fmt::format(" ... ({} elements)", result.count()) : "");
      }
    }
    if (auto it = plan.outs.find(n); it != plan.outs.end()) {
      write_npy(it->second, result);
      line["file"] = it->second;
      if (!o.global.json) fmt::print("argument {}: written to {}\n", n, it->second);
    }
    outputs.push_back(line);
  }
  const hcq::DeviceProperties& p = device->properties();
  if (o.global.json)
    fmt::print("{}\n", nlohmann::json{{"kernel", kernel.info->name},
                                      {"device", p.name},
                                      {"arch", p.arch},
                                      {"ok", ok},
                                      {"time_us", best_us},
                                      {"outputs", outputs}}
                           .dump());
  else
    fmt::print("{} on {} ({}): {:.2f} us{}\n", kernel.info->name, p.name, p.arch, best_us, ok ? "" : "  FAILED");
  return ok ? kDone : kFailed;
}

}  // namespace

void setup_run(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "compile or load a kernel file, run it, print or check results");
  o->global.add_to(*c);
  c->add_option("FILE", o->file, "kernel file: .cl, .hip, .ll, .bc, .s or a code object")->required();
  c->add_option("--kernel", o->kernel, "kernel to run (default: the only one)");
  c->add_option("--grid", o->grid, "workgroups: X[,Y[,Z]]")->capture_default_str();
  c->add_option("--block", o->block, "work-items in a workgroup: X[,Y[,Z]]")->capture_default_str();
  c->add_option(
       "--arg", o->args,
       "i32:5 | f32:1.5 | buf:f32:1024[:zeros|iota|rand(SEED)] | buf:f32:@in.npy | local:4096 (repeatable, in order)")
      ->allow_extra_args(false);
  c->add_option("--out", o->outs, "N=FILE.npy: save buffer argument N after the run")->allow_extra_args(false);
  c->add_option("--print", o->prints, "N[:COUNT]: print the first elements of buffer argument N")
      ->allow_extra_args(false);
  c->add_option("--expect", o->expects, "N=FILE.npy[,TOLERANCE]: compare buffer argument N; exit code 1 if it differs")
      ->allow_extra_args(false);
  c->add_option("-D,--define", o->defines, "NAME[=VALUE] for the compiler")->allow_extra_args(false);
  c->add_option("-O", o->optimization, "optimization level")->check(CLI::Range(0, 3))->capture_default_str();
  c->add_option("--repeat", o->repeat, "launches; the best time is reported")->check(CLI::Range(1, 1000000));
  c->add_flag("--wave64", o->wave64, "compile for 64 lanes a wave");
  c->add_flag("--no-cache", o->no_cache, "compile even if the result is in the cache");
  c->callback([o, &exit_code] { exit_code = guarded(o->global, [&] { return run_kernel(*o); }); });
}

}  // namespace baregpu::tools
