#include "compile/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace gdr {
namespace {

// NVRTC's interface, as far as it is used (nvrtc.h, stable since CUDA 11.2).
using Program = void*;
using Result = int;
constexpr Result kSuccess = 0;

// Figures that ptxas prints for an entry function: "Used 96 registers", "8 bytes stack frame, 12 bytes spill stores".
int figure_before(std::string_view log, std::string_view words) {
  const std::size_t at = log.find(words);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(log.data() + begin, log.data() + at, value);
  return value;
}

// "sm_120a" -> 120; family and arch-specific suffixes are letters.
int capability_of(std::string_view target) {
  int value = 0;
  std::from_chars(target.data() + std::min<std::size_t>(3, target.size()), target.data() + target.size(), value);
  return value;
}

}  // namespace

struct Nvrtc::Functions {
  const char* (*error_string)(Result) = nullptr;
  Result (*version)(int*, int*) = nullptr;
  Result (*num_archs)(int*) = nullptr;
  Result (*archs)(int*) = nullptr;
  Result (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  Result (*destroy)(Program*) = nullptr;
  Result (*compile)(Program, int, const char* const*) = nullptr;
  Result (*log_size)(Program, std::size_t*) = nullptr;
  Result (*log)(Program, char*) = nullptr;
  Result (*cubin_size)(Program, std::size_t*) = nullptr;
  Result (*cubin)(Program, char*) = nullptr;
};

std::shared_ptr<const Nvrtc> Nvrtc::open(const NvrtcSearch& search) {
  std::shared_ptr<Nvrtc> nvrtc(new Nvrtc);
  std::string tried;
  for (const std::string& name : nvrtc_candidates(search)) {
    // Never unloaded: NVRTC keeps process-wide state that a second load would allocate again.
    nvrtc->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (nvrtc->library_) {
      nvrtc->path_ = name;
      break;
    }
    tried += fmt::format("\n  {}", dlerror());
  }
  if (!nvrtc->library_)
    fail(ErrorKind::compilation, "GDR-N01",
         "libnvrtc: not found; install the CUDA toolkit or the nvidia-cuda-nvrtc wheel, or set GDRJIT_LIBNVRTC to the "
         "file. Tried:{}",
         tried);

  nvrtc->functions_ = std::make_unique<Functions>();
  Functions& f = *nvrtc->functions_;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(nvrtc->library_, name));
    if (!function)
      fail(ErrorKind::compilation, "GDR-N01", "{}: has no function {}; CUDA 11.2 or later is needed", nvrtc->path_,
           name);
  };
  find(f.error_string, "nvrtcGetErrorString");
  find(f.version, "nvrtcVersion");
  find(f.num_archs, "nvrtcGetNumSupportedArchs");
  find(f.archs, "nvrtcGetSupportedArchs");
  find(f.create, "nvrtcCreateProgram");
  find(f.destroy, "nvrtcDestroyProgram");
  find(f.compile, "nvrtcCompileProgram");
  find(f.log_size, "nvrtcGetProgramLogSize");
  find(f.log, "nvrtcGetProgramLog");
  find(f.cubin_size, "nvrtcGetCUBINSize");
  find(f.cubin, "nvrtcGetCUBIN");

  f.version(&nvrtc->version_major_, &nvrtc->version_minor_);
  int count = 0;
  f.num_archs(&count);
  nvrtc->architectures_.resize(static_cast<std::size_t>(count));
  f.archs(nvrtc->architectures_.data());
  return nvrtc;
}

Nvrtc::~Nvrtc() = default;

std::optional<std::string> Nvrtc::choose_target(const std::vector<std::string>& targets) const {
  // Family targets ("f") exist since CUDA 12.9; NVRTC lists capabilities only.
  const bool knows_families = version_major_ > 12 || (version_major_ == 12 && version_minor_ >= 9);
  for (const std::string& target : targets) {
    if (target.ends_with('f') && !knows_families) continue;
    if (std::find(architectures_.begin(), architectures_.end(), capability_of(target)) != architectures_.end())
      return target;
  }
  return std::nullopt;
}

std::vector<std::string> compile_options(const std::string& target) {
  return {"--gpu-architecture=" + target, "--std=c++17", "--ptxas-options=-v", "--diag-suppress=177"};
}

std::string kernel_key(const std::string& source, const std::string& target) {
  return hash_hex(fmt::format("{}\n{}", fmt::join(compile_options(target), "\n"), source));
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", version_major_, version_minor_); }

std::variant<CompiledKernel, CompileFailure> Nvrtc::compile(const std::string& source, const std::string& name,
                                                            const std::string& target) const {
  const auto begin = std::chrono::steady_clock::now();
  const Functions& f = *functions_;
  const std::vector<std::string> options = compile_options(target);
  const auto failure = [&](Result result, std::string log) {
    return CompileFailure{name,    target,        f.error_string(result), fmt::format("NVRTC {}, {}", version(), path_),
                          options, std::move(log)};
  };
  Program program = nullptr;
  const std::string file = name + ".cu";
  Result result = f.create(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) return failure(result, "");
  struct Destroy {
    const Functions& f;
    Program& program;
    ~Destroy() { f.destroy(&program); }
  } destroy{f, program};

  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  result = f.compile(program, static_cast<int>(pointers.size()), pointers.data());

  CompiledKernel kernel;
  kernel.target = target;
  std::size_t log_bytes = 0;
  f.log_size(program, &log_bytes);
  kernel.log.resize(log_bytes);
  if (log_bytes > 0) f.log(program, kernel.log.data());
  kernel.log.resize(std::min(kernel.log.find('\0'), log_bytes));
  if (result != kSuccess) return failure(result, std::move(kernel.log));

  std::size_t bytes = 0;
  result = f.cubin_size(program, &bytes);
  kernel.cubin.resize(bytes);
  if (result == kSuccess) result = f.cubin(program, reinterpret_cast<char*>(kernel.cubin.data()));
  if (result != kSuccess) return failure(result, std::move(kernel.log));
  kernel.registers = figure_before(kernel.log, " registers");
  kernel.local_bytes = figure_before(kernel.log, " bytes stack frame");
  kernel.smem_bytes = figure_before(kernel.log, " bytes smem");
  kernel.spill_bytes =
      figure_before(kernel.log, " bytes spill stores") + figure_before(kernel.log, " bytes spill loads");
  kernel.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return kernel;
}

void throw_failure(const CompileFailure& failure, const std::string& saved_source) {
  fail(ErrorKind::compilation, "GDR-N02", "{} for {}: {} ({}; options {}). The source {}. The compiler's log:\n{}",
       failure.name, failure.target, failure.reason, failure.compiler, fmt::join(failure.options, " "),
       saved_source.empty() ? "could not be saved" : "is " + saved_source, failure.log);
}

std::string save_source(const std::vector<std::filesystem::path>& folders, const std::string& name,
                        const std::string& key, const std::string& source) {
  namespace fs = std::filesystem;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    const fs::path path = folder / fmt::format("{}-{}.cu", name, key);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << source;
    file.close();
    if (file) return path.string();
  }
  return "";
}

}  // namespace gdr
