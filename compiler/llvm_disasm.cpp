// The disassembler, over LLVM's C++ interface.
#include <fmt/format.h>
#include <llvm-c/Target.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <cstring>
#include <mutex>

#include "compiler/llvm_backend.hpp"
#include "drivers/base/error.hpp"

namespace baregpu::compiler {
namespace {

#if LLVM_VERSION_MAJOR >= 22
const llvm::Triple& triple_argument(const llvm::Triple& t) { return t; }
#else
llvm::StringRef triple_argument(const llvm::Triple& t) { return t.str(); }
#endif

}  // namespace

std::vector<Instruction> disassemble_code(std::span<const std::byte> code, const std::string& arch, bool wave64) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple_argument(triple), error);
  if (!target)
    throw UnsupportedError({.device = {},
                            .what = "this LLVM has no AMDGPU target",
                            .source = error,
                            .hint = "install libllvm22 or newer"});
  std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(triple_argument(triple)));
  const llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCAsmInfo> assembly(target->createMCAsmInfo(*registers, triple_argument(triple), options));
  std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple_argument(triple), arch, wave64 ? "+wavefrontsize64,-wavefrontsize32" : ""));
  if (!subtarget || !subtarget->isCPUStringValid(arch))
    throw UnsupportedError({.device = {}, .what = "this LLVM cannot disassemble " + arch, .source = {}, .hint = {}});
  llvm::MCContext context(triple, assembly.get(), registers.get(), subtarget.get());
  std::unique_ptr<llvm::MCDisassembler> disassembler(target->createMCDisassembler(*subtarget, context));
  std::unique_ptr<llvm::MCInstPrinter> printer(
      target->createMCInstPrinter(triple, assembly->getAssemblerDialect(), *assembly, *instructions, *registers));
  printer->setPrintImmHex(true);
  llvm::raw_null_ostream nowhere;
  disassembler->CommentStream = &nowhere;

  std::vector<Instruction> out;
  // LLVM's decoder crashes on a literal that the buffer cuts off. Padding makes it readable; what needs it is no
  // instruction.
  std::vector<uint8_t> padded(code.size() + 16);
  std::memcpy(padded.data(), code.data(), code.size());
  const llvm::ArrayRef<uint8_t> bytes(padded);
  for (uint64_t at = 0; at + 4 <= code.size();) {
    llvm::MCInst inst;
    uint64_t size = 0;
    if (disassembler->getInstruction(inst, size, bytes.slice(at), at, nowhere) != llvm::MCDisassembler::Success ||
        size == 0 || size > code.size() - at) {
      uint32_t word;
      std::memcpy(&word, code.data() + at, 4);
      out.push_back({at, 4, fmt::format(".long {:#010x}", word)});
      at += 4;
      continue;
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    printer->printInst(&inst, at, "", *subtarget, stream);
    const size_t first = stream.str().find_first_not_of(" \t");
    out.push_back({at, uint32_t(size), first == text.npos ? text : text.substr(first)});
    at += size;
  }
  return out;
}

}  // namespace baregpu::compiler
