#include "compiler/llvm_backend.hpp"

#include <fmt/format.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Support/PrettyStackTrace.h>
#include <llvm/TargetParser/TargetParser.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "drivers/base/error.hpp"

// LeakSanitizer's, where it is linked in: what LLVM leaves behind when it gives up is known.
extern "C" {
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);
__attribute__((weak)) void __lsan_ignore_object(const void* p);
}

// The C interface: stable between versions, and cheap to include; two small C++ headers for what it lacks. Disassembly
// is in llvm_disasm.cpp.
namespace baregpu::compiler {
namespace {

constexpr const char* kTriple = "amdgcn-amd-amdhsa";

template <auto F>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    F(p);
  }
};
using Context = std::unique_ptr<std::remove_pointer_t<LLVMContextRef>, Deleter<LLVMContextDispose>>;
using Module = std::unique_ptr<std::remove_pointer_t<LLVMModuleRef>, Deleter<LLVMDisposeModule>>;
using Machine = std::unique_ptr<std::remove_pointer_t<LLVMTargetMachineRef>, Deleter<LLVMDisposeTargetMachine>>;
using MemoryBuffer = std::unique_ptr<std::remove_pointer_t<LLVMMemoryBufferRef>, Deleter<LLVMDisposeMemoryBuffer>>;
using PassOptions =
    std::unique_ptr<std::remove_pointer_t<LLVMPassBuilderOptionsRef>, Deleter<LLVMDisposePassBuilderOptions>>;

// LLVM ends the process when it meets something that it cannot compile, e.g. an intrinsic of another chip. Its handler
// may not return and no exception may cross its frames, so the handler leaves them by longjmp.
thread_local std::jmp_buf* fatal_exit;
thread_local char fatal_text[4096];
void on_fatal(const char* reason) {
  if (!fatal_exit) return;  // LLVM used by someone else in this process: what it does by default
  std::snprintf(fatal_text, sizeof fatal_text, "%s", reason);
  std::longjmp(*fatal_exit, 1);
}

/// Runs `f`. @returns false if LLVM gave up: fatal_text says why, and what `f` worked on must not be touched any more.
template <class F>
bool survives(F&& f) {
  std::jmp_buf exit;
  const void* const stack_state = llvm::SavePrettyStackState();
  fatal_exit = &exit;
  if (__lsan_disable) __lsan_disable();
  const bool gave_up = setjmp(exit) != 0;
  if (!gave_up) f();
  if (__lsan_enable) __lsan_enable();
  fatal_exit = nullptr;
  if (gave_up) llvm::RestorePrettyStackState(stack_state);
  return !gave_up;
}

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInstallFatalErrorHandler(on_fatal);
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

void require_arch(const std::string& arch) {
  if (llvm::AMDGPU::parseArchAMDGCN(arch) == llvm::AMDGPU::GK_NONE)
    throw UnsupportedError({.device = {},
                            .what = fmt::format("LLVM {} does not know the architecture '{}'", llvm_version(), arch),
                            .source = {},
                            .hint = "a newer LLVM may; gfx1100 is a name that it knows"});
}

/// Functions may carry a processor of their own, which would win over `arch`.
void require_functions_for(LLVMModuleRef module, const std::string& arch, const std::string& name) {
  constexpr std::string_view kCpu = "target-cpu";
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    LLVMAttributeRef a =
        LLVMGetStringAttributeAtIndex(f, unsigned(LLVMAttributeFunctionIndex), kCpu.data(), unsigned(kCpu.size()));
    if (!a) continue;
    unsigned length = 0;
    const char* text = LLVMGetStringAttributeValue(a, &length);
    size_t name_length = 0;
    const char* function = LLVMGetValueName2(f, &name_length);
    if (std::string_view(text, length) != arch)
      fail(name, fmt::format("the function '{}' is for {}, not for {}", std::string_view(function, name_length),
                             std::string_view(text, length), arch));
  }
}

std::string features(bool wave64) { return wave64 ? "+wavefrontsize64,-wavefrontsize32" : ""; }

}  // namespace

std::string llvm_version() {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::vector<std::byte> compile_ir(std::string_view ir, const std::string& name, const std::string& arch,
                                  unsigned optimization, bool wave64) {
  initialize();
  require_arch(arch);
  // Diagnostics (registers, LDS over the limit) go to this handler and not to return values; without one, an error ends
  // the process.
  std::string diagnostics;
  Context context(LLVMContextCreate());
  LLVMContextSetDiagnosticHandler(
      context.get(),
      [](LLVMDiagnosticInfoRef info, void* out) {
        if (LLVMGetDiagInfoSeverity(info) == LLVMDSError)
          *static_cast<std::string*>(out) += take_message(LLVMGetDiagInfoDescription(info)) + "\n";
      },
      &diagnostics);
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
    throw UnsupportedError({.device = {},
                            .what = "this LLVM has no AMDGPU target",
                            .source = take_message(message),
                            .hint = "install libllvm22 or newer"});
  const std::string triple = LLVMGetTarget(module.get());
  if (!triple.empty() && !triple.starts_with("amdgcn")) fail(name, "the module is for " + triple + ", not for amdgcn");
  LLVMSetTarget(module.get(), kTriple);
  const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
                                        LLVMCodeGenLevelAggressive};
  optimization = std::min(optimization, 3u);
  Machine machine(LLVMCreateTargetMachine(target, kTriple, arch.c_str(), features(wave64).c_str(), levels[optimization],
                                          LLVMRelocPIC, LLVMCodeModelDefault));
  if (!machine)
    throw UnsupportedError({.device = {}, .what = "this LLVM cannot compile for " + arch, .source = {}, .hint = {}});
  require_functions_for(module.get(), arch, name);
  // The version that clang is asked for too (compiler.cpp), unless the module has its own.
  constexpr std::string_view kVersionFlag = "amdhsa_code_object_version";
  if (!LLVMGetModuleFlag(module.get(), kVersionFlag.data(), kVersionFlag.size()))
    LLVMAddModuleFlag(module.get(), LLVMModuleFlagBehaviorError, kVersionFlag.data(), kVersionFlag.size(),
                      LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context.get()), 500, false)));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.get());
  LLVMSetModuleDataLayout(module.get(), layout);
  LLVMDisposeTargetData(layout);

  PassOptions options(LLVMCreatePassBuilderOptions());
  // Level 0 leaves out the analysis of what kernels use, without which they ask for every register that a dispatcher
  // can provide, the queue's address among them.
  const std::string passes =
      optimization == 0 ? "default<O0>,amdgpu-attributor" : fmt::format("default<O{}>", optimization);
  LLVMErrorRef pass_error = nullptr;
  LLVMMemoryBufferRef object = nullptr;
  LLVMBool emit_failed = 0;
  message = nullptr;
  const bool survived = survives([&] {
    pass_error = LLVMRunPasses(module.get(), passes.c_str(), machine.get(), options.get());
    if (!pass_error)
      emit_failed = LLVMTargetMachineEmitToMemoryBuffer(machine.get(), module.get(), LLVMObjectFile, &message, &object);
  });
  if (!survived) {
    // Half-way through a pass nothing of this can be destroyed; it leaks.
    for (const void* p : {static_cast<const void*>(options.release()), static_cast<const void*>(machine.release()),
                          static_cast<const void*>(module.release()), static_cast<const void*>(context.release())})
      if (__lsan_ignore_object) __lsan_ignore_object(p);
    fail(name, fmt::format("LLVM cannot compile it for {}: {}", arch, fatal_text));
  }
  MemoryBuffer owned(object);
  if (pass_error) {
    char* m = LLVMGetErrorMessage(pass_error);
    const std::string copy = m;
    LLVMDisposeErrorMessage(m);
    fail(name, copy);
  }
  if (emit_failed) fail(name, take_message(message));
  if (!diagnostics.empty()) fail(name, diagnostics);
  const auto* start = reinterpret_cast<const std::byte*>(LLVMGetBufferStart(owned.get()));
  return {start, start + LLVMGetBufferSize(owned.get())};
}

}  // namespace baregpu::compiler
