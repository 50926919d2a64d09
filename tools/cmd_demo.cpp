// baregpu demo: boots the device, compiles, runs, checks against the CPU, and says how long each part took.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler/compiler.hpp"
#include "tools/cli.hpp"
#include "tools/kernels.hpp"

namespace baregpu::tools {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

struct DemoOptions {
  Global global;
  std::string name = "matmul";
};

struct Outcome {
  bool ok = true;
  double max_abs_err = 0, compile_ms = 0, run_ms = 0;
  std::string what;  ///< one line: sizes and result
};

/// One demo's view of the device: compile once, buffers of floats in and out.
class Session {
 public:
  Session(hcq::Device& device, const char* source, const char* name, Outcome& out)
      : device_(device), program_(compile(device, source, name, out)) {}
  hcq::Buffer upload(const std::vector<float>& v) {
    hcq::Buffer b = empty(v.size());
    device_.copy_in(b, 0, std::as_bytes(std::span(v)));
    return b;
  }
  hcq::Buffer empty(size_t n) { return device_.allocator().allocate(n * sizeof(float)); }
  std::vector<float> download(const hcq::Buffer& b) {
    std::vector<float> v(b.size() / sizeof(float));
    device_.copy_out(std::as_writable_bytes(std::span(v)), b, 0);
    return v;
  }
  void launch(const char* kernel, hcq::Dim3 grid, hcq::Dim3 block, std::initializer_list<hcq::Arg> args) {
    device_.launch(program_.kernel(kernel), grid, block, args);
  }

 private:
  static hcq::Program compile(hcq::Device& device, const char* source, const char* name, Outcome& out) {
    const auto start = Clock::now();
    compiler::CompileOptions c;
    c.arch = device.properties().arch;
    ProgramImage image =
        compiler::load_code_object(compiler::compile(compiler::SourceKind::kOpenCl, source, name, c), name);
    out.compile_ms = ms_since(start);
    return device.load(std::move(image));
  }
  hcq::Device& device_;
  hcq::Program program_;
};

std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<float> v(n);
  for (float& x : v) x = float(int(rng() % 2001) - 1000) / 1000.0f;
  return v;
}

/// Compares with double-precision results; `bound[i]` is the rounding error that float arithmetic may have.
void check(Outcome& out, const std::vector<float>& got, const std::vector<double>& want,
           const std::vector<double>& bound) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double err = std::fabs(double(got[i]) - want[i]);
    out.max_abs_err = std::max(out.max_abs_err, std::isnan(err) ? HUGE_VAL : err);
    out.ok &= err <= bound[i];
  }
}

constexpr double kEps = 0x1p-24;  // unit round-off of float

Outcome vadd(hcq::Device& device) {
  constexpr size_t kN = 1 << 20;
  Outcome out;
  Session s(device, kVaddSource, "vadd.cl", out);
  const auto start = Clock::now();
  const std::vector<float> a = random_floats(kN, 1), b = random_floats(kN, 2);
  hcq::Buffer da = s.upload(a), db = s.upload(b), dc = s.empty(kN);
  s.launch("vadd", {kN / 256}, {256}, {da, db, dc});
  const std::vector<float> c = s.download(dc);
  out.run_ms = ms_since(start);
  std::vector<double> want(kN), bound(kN, 0.0);
  for (size_t i = 0; i < kN; ++i) want[i] = double(a[i] + b[i]);
  check(out, c, want, bound);
  out.what = fmt::format("{} additions", kN);
  return out;
}

/// rows x inner times inner x cols (b transposed if asked), with the error bound of a float dot product.
void reference(const std::vector<float>& a, const std::vector<float>& b, size_t rows, size_t inner, size_t cols,
               bool transposed, std::vector<double>& want, std::vector<double>& bound) {
  want.assign(rows * cols, 0.0);
  bound.assign(rows * cols, 0.0);
  for (size_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < inner; ++k)
      for (size_t c = 0; c < cols; ++c) {
        const double p = double(a[r * inner + k]) * double(transposed ? b[c * inner + k] : b[k * cols + c]);
        want[r * cols + c] += p;
        bound[r * cols + c] += std::fabs(p);
      }
  for (double& x : bound) x = x * kEps * double(inner + 1) + 1e-30;
}

Outcome matmul(hcq::Device& device) {
  constexpr unsigned kN = 256;
  Outcome out;
  Session s(device, kMatmulSource, "matmul16.cl", out);
  const auto start = Clock::now();
  const std::vector<float> a = random_floats(kN * kN, 1), b = random_floats(kN * kN, 2);
  hcq::Buffer da = s.upload(a), db = s.upload(b), dc = s.empty(kN * kN);
  s.launch("matmul16", {kN / 16, kN / 16}, {16, 16}, {da, db, dc, int(kN)});
  const std::vector<float> c = s.download(dc);
  out.run_ms = ms_since(start);
  std::vector<double> want, bound;
  reference(a, b, kN, kN, kN, false, want, bound);
  check(out, c, want, bound);
  out.what = fmt::format("{0} x {0} x {0}, 16 x 16 tiles in LDS", kN);
  return out;
}

Outcome mlp(hcq::Device& device) {
  constexpr unsigned kBatch = 64, kIn = 256, kHidden = 128, kOut = 10;
  Outcome out;
  Session s(device, kMlpSource, "mlp.cl", out);
  const auto start = Clock::now();
  const std::vector<float> x = random_floats(kBatch * kIn, 1), w1 = random_floats(kHidden * kIn, 2),
                           b1 = random_floats(kHidden, 3), w2 = random_floats(kOut * kHidden, 4),
                           b2 = random_floats(kOut, 5);
  hcq::Buffer dx = s.upload(x), dw1 = s.upload(w1), db1 = s.upload(b1), dw2 = s.upload(w2), db2 = s.upload(b2);
  hcq::Buffer hidden = s.empty(kBatch * kHidden), y = s.empty(kBatch * kOut);
  s.launch("linear", {kHidden / 64, kBatch}, {64}, {dx, dw1, db1, hidden, int(kIn), int(kHidden), 1});
  s.launch("linear", {1, kBatch}, {64}, {hidden, dw2, db2, y, int(kHidden), int(kOut), 0});
  s.launch("softmax", {kBatch}, {64}, {y, int(kOut)});
  const std::vector<float> h = s.download(hidden), p = s.download(y);
  out.run_ms = ms_since(start);
  std::vector<double> want, bound;
  reference(x, w1, kBatch, kIn, kHidden, true, want, bound);
  for (unsigned r = 0; r < kBatch; ++r)
    for (unsigned o = 0; o < kHidden; ++o) want[r * kHidden + o] = std::max(0.0, want[r * kHidden + o] + double(b1[o]));
  for (double& b : bound) b += 4 * kEps;
  check(out, h, want, bound);
  // The second layer is checked on the device's hidden values, so that each layer's own rounding is what is bounded.
  reference(h, w2, kBatch, kHidden, kOut, true, want, bound);
  for (unsigned r = 0; r < kBatch; ++r) {
    double* row = &want[r * kOut];
    double worst = 0, top = -HUGE_VAL, sum = 0;
    for (unsigned o = 0; o < kOut; ++o)
      row[o] += double(b2[o]), top = std::max(top, row[o]), worst = std::max(worst, bound[r * kOut + o]);
    for (unsigned o = 0; o < kOut; ++o) sum += std::exp(row[o] - top);
    for (unsigned o = 0; o < kOut; ++o)
      row[o] = std::exp(row[o] - top) / sum, bound[r * kOut + o] = row[o] * (4 * worst + 64 * kEps) + 1e-12;
  }
  check(out, p, want, bound);
  out.what = fmt::format("batch {}, {} -> {} (ReLU) -> {} (softmax), 3 kernels", kBatch, kIn, kHidden, kOut);
  return out;
}

struct DemoRow {
  const char* name;
  Outcome (*run)(hcq::Device&);
};
constexpr DemoRow kDemos[] = {{"vadd", vadd}, {"matmul", matmul}, {"mlp", mlp}};

int run_demo(const DemoOptions& o) {
  const DemoRow* demo = nullptr;
  for (const DemoRow& d : kDemos)
    if (o.name == d.name) demo = &d;
  auto device = open_or_mock(o.global, o.global.device_options());
  const hcq::DeviceProperties& p = device->properties();
  if (show_progress(o.global)) progress("compile and run " + o.name);
  const Outcome r = demo->run(*device);
  if (show_progress(o.global)) progress({});
  if (o.global.json) {
    fmt::print("{}\n", nlohmann::json{{"demo", o.name},
                                      {"device", p.name},
                                      {"arch", p.arch},
                                      {"ok", r.ok},
                                      {"max_abs_err", r.max_abs_err},
                                      {"boot_ms", p.boot_ms},
                                      {"compile_ms", r.compile_ms},
                                      {"run_ms", r.run_ms}}
                           .dump());
  } else {
    fmt::print("device   {}: {} ({}), {} GiB, {} compute units\n", p.name, p.chip, p.arch, p.memory_bytes >> 30,
               p.compute_units);
    fmt::print("boot     {:.1f} ms, {} register accesses, {} boot\n", p.boot_ms, p.boot_register_accesses, p.boot_path);
    fmt::print("compile  {:.1f} ms\n", r.compile_ms);
    fmt::print("run      {:.1f} ms, copies included: {}\n", r.run_ms, r.what);
    for (const hcq::ProfileEvent& e : o.global.profile ? device->take_profile() : std::vector<hcq::ProfileEvent>{})
      fmt::print("  {:<20} {:>10.2f} us\n", e.name, e.microseconds());
    fmt::print("check    {}: largest difference from the CPU {:.3g}\n", r.ok ? "ok" : "FAILED", r.max_abs_err);
  }
  return r.ok ? kDone : kFailed;
}

}  // namespace

void setup_demo(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<DemoOptions>();
  CLI::App* c =
      app.add_subcommand("demo", "boot a device, compile, run and check against the CPU: vadd, matmul or mlp");
  o->global.add_to(*c);
  c->add_option("NAME", o->name, "vadd, matmul or mlp")
      ->check(CLI::IsMember({"vadd", "matmul", "mlp"}))
      ->capture_default_str();
  c->callback([o, &exit_code] { exit_code = guarded(o->global, [&] { return run_demo(*o); }); });
}

}  // namespace baregpu::tools
