#include "compiler/llvm_backend.hpp"

#include <fmt/format.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "drivers/base/error.hpp"

// The C interface: stable between versions, and cheap to include. Disassembly is in llvm_disasm.cpp.
namespace baregpu::compiler {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

template <auto F>
struct Deleter {
  template <class T>
  void operator()(T* p) const { F(p); }
};
using Context = std::unique_ptr<std::remove_pointer_t<LLVMContextRef>, Deleter<LLVMContextDispose>>;
using Module = std::unique_ptr<std::remove_pointer_t<LLVMModuleRef>, Deleter<LLVMDisposeModule>>;
using Machine = std::unique_ptr<std::remove_pointer_t<LLVMTargetMachineRef>, Deleter<LLVMDisposeTargetMachine>>;
using MemoryBuffer = std::unique_ptr<std::remove_pointer_t<LLVMMemoryBufferRef>, Deleter<LLVMDisposeMemoryBuffer>>;
using PassOptions = std::unique_ptr<std::remove_pointer_t<LLVMPassBuilderOptionsRef>, Deleter<LLVMDisposePassBuilderOptions>>;

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
  });
}

std::string take_message(char* message) {
  std::string out = message ? message : "";
  LLVMDisposeMessage(message);
  return out;
}

[[noreturn]] void fail(const std::string& name, const std::string& message) {
  throw CompileError({.device = {}, .what = name + ": " + message, .source = {}, .hint = {}});
}

std::string features(bool wave64) { return wave64 ? "+wavefrontsize64,-wavefrontsize32" : ""; }

}  // namespace

std::string llvm_version() {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::vector<std::byte> compile_ir(std::string_view ir, const std::string& name, const std::string& arch, unsigned optimization, bool wave64) {
  initialize();
  Context context(LLVMContextCreate());
  // Consumed by the parser, whether it succeeds or not.
  LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir.data(), ir.size(), name.c_str());
  LLVMModuleRef raw = nullptr;
  char* message = nullptr;
  if (LLVMParseIRInContext(context.get(), text, &raw, &message)) fail(name, take_message(message));
  Module module(raw);
  if (LLVMVerifyModule(module.get(), LLVMReturnStatusAction, &message)) fail(name, take_message(message));
  LLVMDisposeMessage(message);

  LLVMTargetRef target = nullptr;
  message = nullptr;
  if (LLVMGetTargetFromTriple(kTriple, &target, &message))
    throw UnsupportedError({.device = {}, .what = "this LLVM has no AMDGPU target", .source = take_message(message), .hint = "install libllvm22 or newer"});
  const std::string triple = LLVMGetTarget(module.get());
  if (!triple.empty() && !triple.starts_with("amdgcn")) fail(name, "the module is for " + triple + ", not for amdgcn");
  LLVMSetTarget(module.get(), kTriple);
  const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault, LLVMCodeGenLevelAggressive};
  optimization = std::min(optimization, 3u);
  Machine machine(LLVMCreateTargetMachine(target, kTriple, arch.c_str(), features(wave64).c_str(), levels[optimization], LLVMRelocPIC, LLVMCodeModelDefault));
  if (!machine) throw UnsupportedError({.device = {}, .what = "this LLVM cannot compile for " + arch, .source = {}, .hint = {}});
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.get());
  LLVMSetModuleDataLayout(module.get(), layout);
  LLVMDisposeTargetData(layout);

  PassOptions options(LLVMCreatePassBuilderOptions());
  if (LLVMErrorRef e = LLVMRunPasses(module.get(), fmt::format("default<O{}>", optimization).c_str(), machine.get(), options.get())) {
    char* m = LLVMGetErrorMessage(e);
    const std::string copy = m;
    LLVMDisposeErrorMessage(m);
    fail(name, copy);
  }
  // Back-end diagnostics (registers, LDS over the limit) go to the context's handler, not to the return value.
  std::string diagnostics;
  LLVMContextSetDiagnosticHandler(
      context.get(),
      [](LLVMDiagnosticInfoRef info, void* out) {
        if (LLVMGetDiagInfoSeverity(info) == LLVMDSError) *static_cast<std::string*>(out) += take_message(LLVMGetDiagInfoDescription(info)) + "\n";
      },
      &diagnostics);
  LLVMMemoryBufferRef object = nullptr;
  message = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine.get(), module.get(), LLVMObjectFile, &message, &object)) fail(name, take_message(message));
  MemoryBuffer owned(object);
  if (!diagnostics.empty()) fail(name, diagnostics);
  const auto* start = reinterpret_cast<const std::byte*>(LLVMGetBufferStart(owned.get()));
  return {start, start + LLVMGetBufferSize(owned.get())};
}

}  // namespace baregpu::compiler
