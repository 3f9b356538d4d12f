#include "compile/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

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

std::vector<std::string> candidates(const std::string& cuda_home) {
  std::vector<std::string> names;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    names.emplace_back(name);
    if (!cuda_home.empty()) names.push_back(fmt::format("{}/lib64/{}", cuda_home, name));
    names.push_back(fmt::format("/usr/local/cuda/lib64/{}", name));
  }
  return names;
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

std::shared_ptr<const Nvrtc> Nvrtc::open(const std::string& override_path, const std::string& cuda_home) {
  std::shared_ptr<Nvrtc> nvrtc(new Nvrtc);
  std::string tried;
  for (const std::string& name : override_path.empty() ? candidates(cuda_home) : std::vector{override_path}) {
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

CompiledKernel Nvrtc::compile(const std::string& source, const std::string& name, const std::string& target) const {
  const Functions& f = *functions_;
  Program program = nullptr;
  const std::string file = name + ".cu";
  Result result = f.create(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr);
  if (result != kSuccess)
    fail(ErrorKind::compilation, "GDR-N02", "{} for {}: {}", name, target, f.error_string(result));
  struct Destroy {
    const Functions& f;
    Program& program;
    ~Destroy() { f.destroy(&program); }
  } destroy{f, program};

  const std::vector<std::string> options = compile_options(target);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  result = f.compile(program, static_cast<int>(pointers.size()), pointers.data());

  CompiledKernel kernel;
  kernel.target = target;
  std::size_t log_bytes = 0;
  f.log_size(program, &log_bytes);
  kernel.log.resize(log_bytes);
  f.log(program, kernel.log.data());
  kernel.log.resize(kernel.log.find('\0') == std::string::npos ? log_bytes : kernel.log.find('\0'));
  if (result != kSuccess)
    fail(ErrorKind::compilation, "GDR-N02", "{} for {}: {} (NVRTC {}.{}, options {})\n{}", name, target,
         f.error_string(result), version_major_, version_minor_, fmt::join(options, " "), kernel.log);

  std::size_t bytes = 0;
  f.cubin_size(program, &bytes);
  kernel.cubin.resize(bytes);
  f.cubin(program, reinterpret_cast<char*>(kernel.cubin.data()));
  kernel.registers = figure_before(kernel.log, " registers");
  kernel.stack_bytes = figure_before(kernel.log, " bytes stack frame");
  kernel.spill_bytes =
      figure_before(kernel.log, " bytes spill stores") + figure_before(kernel.log, " bytes spill loads");
  return kernel;
}

}  // namespace gdr
