// baregpu bench: figures as a table, or one JSON object a line.
#include <fmt/format.h>
#include <time.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/compiler.hpp"
#include "drivers/base/error.hpp"
#include "tools/cli.hpp"
#include "tools/kernels.hpp"

namespace baregpu::tools {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }
double thread_cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

struct BenchOptions {
  Global global;
  std::vector<std::string> names;
  unsigned rounds = 5;
};

struct Figure {
  std::string bench, name, variant;
  double value = 0;
  std::string unit;
  std::optional<std::pair<std::string, double>> versus;  ///< what with, and the ratio value / it
};

class Report {
 public:
  Report(bool json) : json_(json) {
    if (!json_) fmt::print("{:<8}{:<28}{:<12}{:>12}  {:<14}{}\n", "bench", "case", "variant", "value", "unit", "ratio");
  }
  void add(const hcq::DeviceProperties& p, const Figure& f) {
    if (json_) {
      nlohmann::json line{{"bench", f.bench},     {"case", f.name},   {"device", p.name}, {"arch", p.arch},
                          {"variant", f.variant}, {"value", f.value}, {"unit", f.unit}};
      if (f.versus) line["vs"] = f.versus->first, line["ratio"] = f.versus->second;
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:<8}{:<28}{:<12}{:>12.5g}  {:<14}{}\n", f.bench, f.name, f.variant, f.value, f.unit,
                 f.versus ? fmt::format("{:.3g} x {}", f.versus->second, f.versus->first) : "");
    }
    std::fflush(stdout);
  }

 private:
  bool json_;
};

hcq::Program compile(hcq::Device& device, const char* source, const char* name) {
  compiler::CompileOptions c;
  c.arch = device.properties().arch;
  return device.load(
      compiler::load_code_object(compiler::compile(compiler::SourceKind::kOpenCl, source, name, c), name));
}

/// Full boots, then the short boot that a second process gets.
void bench_boot(const BenchOptions& o, Report& report) {
  for (const bool full : {true, false}) {
    hcq::DeviceOptions options = o.global.device_options();
    // The first boot finds the card as it is; the others are the same each time, and the fastest one counts.
    std::optional<hcq::DeviceProperties> best;
    for (unsigned i = 0; i < o.rounds; ++i) {
      options.force_reset = full && i > 0;
      const hcq::DeviceProperties p = open_or_mock(o.global, options)->properties();
      auto both = [&](const std::string& name, const hcq::DeviceProperties& d) {
        report.add(d, {"boot", name, d.boot_path, d.boot_ms, "ms", {}});
        report.add(d, {"boot", name + "_accesses", d.boot_path, double(d.boot_register_accesses), "accesses", {}});
      };
      if (full && i == 0) both("first", p);
      if ((!full || i > 0) && (!best || p.boot_ms < best->boot_ms)) best = p;
      if (i + 1 == o.rounds && best) both(full ? "full" : "partial", *best);
    }
  }
}

/// CPU time of this thread from the call to the doorbell store; the queue's consumer runs on other threads.
void bench_submit(hcq::Device& device, const BenchOptions& o, Report& report) {
  constexpr unsigned kBatch = 256;
  hcq::Program program = compile(device, kEmptySource, "empty.cl");
  const hcq::Kernel& kernel = program.kernel("empty");
  hcq::Buffer buffer = device.allocator().allocate(4096);
  const hcq::Arg args[] = {buffer, 1};
  double launch = 1e9, bound = 1e9, round_trip = 1e9;
  hcq::Buffer kernargs = device.allocator().allocate(4096, hcq::BufferKind::kDeviceUncached, true, "kernel arguments");
  // A bound list may not be patched while it runs, so each submission of a batch has its own.
  struct Bound {
    std::unique_ptr<hcq::CommandList> list;
    hcq::PatchSlot value;
  };
  std::vector<Bound> lists(64);
  for (Bound& b : lists) {
    b.list = device.compute().make_list();
    b.list->exec(kernel, kernargs.va(), {1}, {32}, 0);
    b.value = b.list->signal(device.timeline().last().signal, 0);
    b.list->bind(device.allocator());
  }
  for (unsigned round = 0; round < o.rounds; ++round) {
    device.synchronize();
    double start = thread_cpu_seconds();
    for (unsigned i = 0; i < kBatch; ++i) device.launch(kernel, {1}, {32}, args);
    launch = std::min(launch, (thread_cpu_seconds() - start) / kBatch);
    device.synchronize();

    start = thread_cpu_seconds();
    for (Bound& b : lists) {
      const hcq::TimelinePoint p = device.timeline().next();
      b.list->set(b.value, p.value);
      device.compute().submit(*b.list, p);
    }
    bound = std::min(bound, (thread_cpu_seconds() - start) / double(lists.size()));
    device.synchronize();

    const auto wall = Clock::now();
    for (unsigned i = 0; i < 32; ++i) device.wait(device.launch(kernel, {1}, {32}, args));
    round_trip = std::min(round_trip, seconds_since(wall) / 32);
  }
  const auto& p = device.properties();
  report.add(p, {"submit", "launch_cpu", "pm4", launch * 1e9, "ns", {}});
  report.add(p, {"submit", "bound_list_cpu", "pm4", bound * 1e9, "ns", {}});
  report.add(p, {"submit", "launch_round_trip", "pm4", round_trip * 1e6, "us", {}});
}

void bench_copy(hcq::Device& device, const BenchOptions& o, Report& report) {
  for (const uint64_t size : {uint64_t{4} << 10, uint64_t{1} << 20, uint64_t{64} << 20}) {
    std::vector<std::byte> host(size), from(size);
    for (uint64_t i = 0; i < size; ++i) host[i] = std::byte(i * 131 + (i >> 12));
    hcq::Buffer a = device.allocator().allocate(size), b = device.allocator().allocate(size);
    double in = 1e9, on = 1e9, out = 1e9, memcpy_time = 1e9;
    for (unsigned round = 0; round < o.rounds; ++round) {
      auto start = Clock::now();
      std::memcpy(from.data(), host.data(), size);
      asm volatile("" ::"r"(from.data()) : "memory");
      memcpy_time = std::min(memcpy_time, seconds_since(start));
      start = Clock::now();
      device.copy_in(a, 0, host);
      device.synchronize();
      in = std::min(in, seconds_since(start));
      start = Clock::now();
      device.wait(device.copy(b, 0, a, 0, size));
      on = std::min(on, seconds_since(start));
      start = Clock::now();
      device.copy_out(from, b, 0);
      out = std::min(out, seconds_since(start));
      if (host != from) throw Error("copied bytes differ");
    }
    auto line = [&](const char* what, double t) {
      report.add(device.properties(), {"copy", fmt::format("{}_{}", what, size), "sdma", double(size) / t * 1e-9,
                                       "GB/s", std::pair{std::string("memcpy"), memcpy_time / t}});
    };
    line("host_to_device", in);
    line("device_to_device", on);
    line("device_to_host", out);
  }
}

/// The same tiled product on the host, 16 columns at a time, as the figure to compare with.
double host_matmul_seconds(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c, unsigned n,
                           unsigned rounds) {
  double best = 1e9;
  for (unsigned round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (unsigned r = 0; r < n; ++r)
      for (unsigned x = 0; x < n; x += 16) {
        float sum[16] = {};
        for (unsigned k = 0; k < n; ++k)
          for (unsigned i = 0; i < 16; ++i) sum[i] += a[r * n + k] * b[k * n + x + i];
        for (unsigned i = 0; i < 16; ++i) c[r * n + x + i] = sum[i];
      }
    asm volatile("" ::"r"(c.data()) : "memory");
    best = std::min(best, seconds_since(start));
  }
  return best;
}

void bench_emu(hcq::Device& device, const BenchOptions& o, Report& report) {
  const auto& p = device.properties();
  hcq::Program matmul = compile(device, kMatmulSource, "matmul16.cl");
  for (const unsigned n : {256u, 512u}) {
    std::vector<float> a(n * n), b(n * n), c(n * n), host(n * n);
    for (unsigned i = 0; i < n * n; ++i)
      a[i] = float(i % 7) - 3, b[i] = float(i % 5) - 2;  // small integers: sums are exact
    hcq::Buffer da = device.allocator().allocate(n * n * 4), db = device.allocator().allocate(n * n * 4),
                dc = device.allocator().allocate(n * n * 4);
    device.copy_in(da, 0, std::as_bytes(std::span(a)));
    device.copy_in(db, 0, std::as_bytes(std::span(b)));
    device.synchronize();
    double best = 1e9;
    for (unsigned round = 0; round < o.rounds; ++round) {
      const auto start = Clock::now();
      device.wait(device.launch(matmul.kernel("matmul16"), {n / 16, n / 16}, {16, 16},
                                std::array<hcq::Arg, 4>{da, db, dc, int(n)}));
      best = std::min(best, seconds_since(start));
    }
    const double host_time = host_matmul_seconds(a, b, host, n, o.rounds);
    device.copy_out(std::as_writable_bytes(std::span(c)), dc, 0);
    if (c != host) throw Error("the product differs from the CPU's");
    report.add(p, {"emu", fmt::format("matmul16_f32_{}", n), "tier0", 2.0 * n * n * n / best * 1e-9, "GFLOP/s",
                   std::pair{std::string("host"), host_time / best}});
  }
  constexpr unsigned kN = 4 << 20;
  hcq::Program vadd = compile(device, kVaddSource, "vadd.cl");
  hcq::Buffer a = device.allocator().allocate(kN * 4), b = device.allocator().allocate(kN * 4),
              c = device.allocator().allocate(kN * 4);
  const std::vector<std::byte> zeros(kN * 4);
  device.copy_in(a, 0, zeros);
  device.copy_in(b, 0, zeros);
  device.synchronize();
  double best = 1e9;
  for (unsigned round = 0; round < o.rounds; ++round) {
    const auto start = Clock::now();
    device.wait(device.launch(vadd.kernel("vadd"), {kN / 256}, {256}, std::array<hcq::Arg, 3>{a, b, c}));
    best = std::min(best, seconds_since(start));
  }
  report.add(p, {"emu", "vadd_f32_4Mi", "tier0", 12.0 * kN / best * 1e-9, "GB/s", {}});
}

int run_bench(const BenchOptions& o) {
  std::vector<std::string> names = o.names;
  if (names.empty()) names = {"boot", "submit", "copy", "emu"};
  Report report(o.global.json);
  for (const std::string& name : names) {
    if (show_progress(o.global)) progress("bench " + name);
    if (name == "boot") {
      bench_boot(o, report);
      continue;
    }
    auto device = open_or_mock(o.global, o.global.device_options());
    if (show_progress(o.global)) progress({});
    if (name == "submit") bench_submit(*device, o, report);
    if (name == "copy") bench_copy(*device, o, report);
    if (name == "emu") bench_emu(*device, o, report);
  }
  return kDone;
}

}  // namespace

void setup_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = app.add_subcommand("bench", "figures: boot, submit, copy, emu (default: all)");
  o->global.add_to(*c);
  c->add_option("NAME", o->names, "boot | submit | copy | emu")
      ->check(CLI::IsMember({"boot", "submit", "copy", "emu"}));
  c->add_option("--rounds", o->rounds, "rounds; the best one is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->callback([o, &exit_code] { exit_code = guarded(o->global, [&] { return run_bench(*o); }); });
}

}  // namespace baregpu::tools
