// What a user of the installed package writes.
#include <array>
#include <cstring>
#include <vector>

#include "compiler/compiler.hpp"
#include "drivers/interfaces.hpp"
#include "hcq/device.hpp"
#include "mock/mock.hpp"

int main() {
  baregpu::register_native_interfaces();
  baregpu::mock::register_interfaces();
  auto device = baregpu::hcq::open_device(baregpu::parse_device_spec("MOCKPCI+AMD"));
  baregpu::compiler::CompileOptions options;
  options.arch = device->properties().arch;
  const char* source = "kernel void twice(global int* p) { p[get_global_id(0)] *= 2; }";
  auto program = device->load(baregpu::compiler::load_code_object(
      baregpu::compiler::compile(baregpu::compiler::SourceKind::kOpenCl, source, "twice.cl", options), "twice.cl"));
  std::vector<int> values(64, 21);
  auto buffer = device->allocator().allocate(256);
  device->copy_in(buffer, 0, std::as_bytes(std::span(values)));
  device->launch(program.kernel("twice"), {1}, {64}, std::array<baregpu::hcq::Arg, 1>{buffer});
  device->copy_out(std::as_writable_bytes(std::span(values)), buffer, 0);
  for (int v : values)
    if (v != 42) return 1;
  return 0;
}
