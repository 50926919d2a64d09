#include "compiler/compiler.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler/cache.hpp"
#include "compiler/llvm_backend.hpp"
#include "compiler/prelude.hpp"
#include "compiler/subprocess.hpp"
#include "drivers/base/error.hpp"
#include "drivers/env.hpp"

namespace baregpu::compiler {
namespace {

const std::vector<std::string> kClangs = {"clang-22", "clang-21", "clang-20", "clang-19"};
const std::vector<std::string> kLinkers = {"ld.lld-22", "ld.lld-21", "ld.lld-20", "ld.lld-19", "ld.lld"};
constexpr const char* kBuiltinFolders[] = {"/usr/lib/clc", "/usr/share/clc"};  // package libclc-22
constexpr const char* kBuiltins = "amdgcn-amd-amdhsa.bc";

std::string tool(const std::vector<std::string>& names, const char* what, const char* package) {
  std::string path = find_program(names);
  if (path.empty()) {
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
    throw UnsupportedError({.device = {},
                            .what = std::string(what) + " is not installed",
                            .source = "looked for " + list + " in PATH",
                            .hint = std::string("apt-get install ") + package});
  }
  return path;
}

std::string clang_program(const CompileOptions& o) {
  const std::string& chosen = o.clang.empty() ? env().clang : o.clang;
  if (chosen.empty()) return tool(kClangs, "clang", "clang-22");
  if (::access(chosen.c_str(), X_OK) != 0)
    throw UnsupportedError(
        {.device = {},
         .what = "the chosen clang cannot be run",
         .source = chosen + ": " + std::strerror(errno),
         .hint = "correct BAREGPU_CLANG (the full path of a program), or unset it and apt-get install clang-22"});
  return chosen;
}

std::string builtins() {
  for (const char* folder : kBuiltinFolders) {
    const std::string path = std::string(folder) + "/" + kBuiltins;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  throw UnsupportedError({.device = {},
                          .what = std::string("the OpenCL builtins (") + kBuiltins + ") are not installed",
                          .source = std::string("looked in ") + kBuiltinFolders[0],
                          .hint = "apt-get install libclc-22"});
}

std::string_view prelude(SourceKind kind) {
  return kind == SourceKind::kOpenCl ? kOpenClPrelude : kind == SourceKind::kHip ? kHipPrelude : "";
}

/// What identifies a tool for the cache: a newer one may compile differently.
std::string identity(const std::string& path) {
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  const auto time = std::filesystem::last_write_time(path, ec).time_since_epoch().count();
  return fmt::format("{}:{}:{}", path, size, time);
}

void write(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), std::streamsize(text.size()));
  if (!out.flush())
    throw Error({.device = {}, .what = "cannot write " + path, .source = std::strerror(errno), .hint = {}}, "file");
}

std::vector<std::byte> read(const std::string& path) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    throw Error({.device = {}, .what = "cannot read " + path, .source = "it is a folder", .hint = {}}, "file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in.is_open() || in.bad())
    throw Error({.device = {}, .what = "cannot read " + path, .source = std::strerror(errno), .hint = {}}, "file");
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

/// Diagnostics name the temporary file; the user knows it under another name.
std::string rename_in(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

void run_tool(const std::vector<std::string>& arguments, const std::string& file, const std::string& name) {
  const ProgramResult r = run_program(arguments);
  if (r.exit_code != 0)
    throw CompileError({.device = {},
                        .what = fmt::format("{} does not compile\n{}", name, rename_in(r.output, file, name)),
                        .source = {},
                        .hint = {}});
}

bool unoptimised(SourceKind kind, const CompileOptions& o) {
  return o.optimization == 0 && (kind == SourceKind::kOpenCl || kind == SourceKind::kHip);
}

std::vector<std::string> clang_arguments(SourceKind kind, const CompileOptions& o, const std::string& clang) {
  std::vector<std::string> a = {clang,
                                "-O" + std::to_string(std::min(o.optimization, 3u)),
                                "-mcpu=" + o.arch,
                                "-mcode-object-version=5",
                                "-fno-color-diagnostics",
                                "-nogpulib"};
  // Bitcode, for the passes that compile_ir() adds at this level; optnone would switch them off.
  if (unoptimised(kind, o)) a.insert(a.end(), {"-c", "-emit-llvm", "-Xclang", "-disable-O0-optnone"});
  if (o.wave64) a.push_back("-mwavefrontsize64");
  for (const std::string& d : o.defines) a.push_back("-D" + d);
  a.insert(a.end(), o.extra.begin(), o.extra.end());
  auto add = [&](std::initializer_list<const char*> more) { a.insert(a.end(), more.begin(), more.end()); };
  switch (kind) {
    case SourceKind::kOpenCl:
      add({"--target=amdgcn-amd-amdhsa", "-x", "cl", "-cl-std=CL2.0", "-cl-kernel-arg-info", "-Xclang",
           "-finclude-default-header"});
      break;
    case SourceKind::kHip:
      a[2] = "--offload-arch=" + o.arch;
      add({"-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nostdinc", "-std=c++17",
           "-fno-exceptions"});
      break;
    case SourceKind::kAssembly: add({"--target=amdgcn-amd-amdhsa", "-x", "assembler"}); return a;
    case SourceKind::kLlvmIr:
    case SourceKind::kCodeObject: break;  // not clang's
  }
  add({"-Xclang", "-mlink-builtin-bitcode", "-Xclang"});
  a.push_back(builtins());
  return a;
}

std::vector<std::byte> run_clang(SourceKind kind, std::string_view text, const std::string& name,
                                 const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  const std::string source = folder.file("source"), object = folder.file("object");
  write(source, text);
  std::vector<std::string> a = arguments;
  if (!prelude(kind).empty()) {
    write(folder.file("prelude.hpp"), prelude(kind));
    a.insert(a.end(), {"-include", folder.file("prelude.hpp")});
  }
  a.insert(a.end(), {source, "-o", object});
  run_tool(a, source, name);
  return read(object);
}

std::vector<std::byte> link(std::span<const std::byte> object, const std::string& name) {
  const TemporaryFolder folder;
  const std::string in = folder.file("input.o"), out = folder.file("output");
  write(in, {reinterpret_cast<const char*>(object.data()), object.size()});
  run_tool({tool(kLinkers, "the linker", "lld-22"), "-shared", "--no-undefined", in, "-o", out}, in, name);
  return read(out);
}

}  // namespace

SourceKind source_kind(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  if (head ==
      "\x7f"
      "ELF")
    return SourceKind::kCodeObject;
  if (head == "BC\xC0\xDE") return SourceKind::kLlvmIr;
  struct Row {
    const char* ending;
    SourceKind kind;
  };
  for (const Row& r :
       {Row{".cl", SourceKind::kOpenCl}, Row{".hip", SourceKind::kHip}, Row{".ll", SourceKind::kLlvmIr},
        Row{".bc", SourceKind::kLlvmIr}, Row{".s", SourceKind::kAssembly}, Row{".co", SourceKind::kCodeObject},
        Row{".hsaco", SourceKind::kCodeObject}, Row{".o", SourceKind::kCodeObject}})
    if (path.ends_with(r.ending)) return r.kind;
  throw ParseError({.device = {},
                    .what = path + ": what kind of file this is cannot be told",
                    .source = {},
                    .hint = "known: OpenCL C (.cl), HIP-like C++ (.hip), LLVM IR (.ll, .bc), assembly (.s), code "
                            "objects (.co, .hsaco)"});
}

std::vector<std::byte> compile(SourceKind kind, std::string_view text, const std::string& name,
                               const CompileOptions& o) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  if (kind == SourceKind::kCodeObject) return {bytes, bytes + text.size()};
  const bool ir = kind == SourceKind::kLlvmIr;
  if (ir && !(o.defines.empty() && o.extra.empty()))
    throw UnsupportedError({.device = {},
                            .what = name + ": LLVM IR takes no defines and no further arguments of clang",
                            .source = {},
                            .hint = {}});
  const std::string clang = ir ? "" : clang_program(o);
  const std::vector<std::string> arguments = ir ? std::vector<std::string>{} : clang_arguments(kind, o, clang);
  std::string options = fmt::format("{}|O{}|{}|{}", o.arch, o.optimization, o.wave64, int(kind));
  for (const std::string& a : arguments) options += "\n" + a;
  const std::string tool_id = ir ? llvm_version() : identity(clang) + identity(arguments.back());
  const std::string key = content_key({text, options, tool_id, prelude(kind)});
  const bool cached = o.use_cache && !env().cache_dir.empty();
  if (cached)
    if (auto hit = cache_load(env().cache_dir, key)) return std::move(*hit);
  auto compile_and_link = [&](std::string_view module) {
    return link(compile_ir(module, name, o.arch, o.optimization, o.wave64), name);
  };
  std::vector<std::byte> object;
  if (ir) {
    object = compile_and_link(text);
  } else {
    object = run_clang(kind, text, name, arguments);
    if (unoptimised(kind, o)) object = compile_and_link({reinterpret_cast<const char*>(object.data()), object.size()});
  }
  if (cached) cache_store(env().cache_dir, key, object);
  return object;
}

std::vector<std::byte> compile_file_to_object(const std::string& path, const CompileOptions& o) {
  const std::vector<std::byte> bytes = read(path);
  return compile(source_kind(path, bytes), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, o);
}

ProgramImage compile_file(const std::string& path, const CompileOptions& o) {
  ProgramImage image = load_code_object(compile_file_to_object(path, o), path);
  check_arch(image, o.arch, path);
  return image;
}

}  // namespace baregpu::compiler
