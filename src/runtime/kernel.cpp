#include "runtime/kernel.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/error.hpp"
#include "runtime/driver_functions.hpp"

namespace gdr {
namespace {

constexpr int kFunctionMaxDynamicSmem = 8;  // of cuda.h
constexpr int kFunctionStaticSmem = 1, kFunctionLocal = 3, kFunctionRegisters = 4;
constexpr int kDefaultSmemBytes = 48 * 1024;  // more has to be asked for

// "13.0" as the driver counts, 13000; 0 if it is none.
int version_number(const std::string& text) {
  int major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return 0;
  std::from_chars(dot + 1, end, minor);
  return major * 1000 + minor * 10;
}

std::string version_text(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

[[noreturn]] void fail_to_load(const Driver& driver, const DeviceFacts& device, const KernelImage& image, int result) {
  std::string hint;
  if (version_number(image.compiler) > device.driver_version)
    hint = fmt::format(
        ". It was compiled by NVRTC {}, and the driver supports CUDA {}: update the driver, or compile with an NVRTC "
        "that is not newer (GDRJIT_LIBNVRTC) into another cache folder (GDRJIT_CACHE_DIR)",
        image.compiler, version_text(device.driver_version));
  fail(ErrorKind::device, "GDR-D04", "{}: cuModuleLoadData gave {} on {}{}", image.name, driver.words(result),
       device.name, hint);
}

}  // namespace

LoadedKernel::LoadedKernel(std::shared_ptr<const Driver> driver, const Context& context, const KernelImage& image)
    : driver_(std::move(driver)),
      context_(context),
      name_(image.name),
      smem_bytes_(static_cast<unsigned>(image.dynamic_smem_bytes)) {
  const DeviceFacts& device = driver_->device(context.device);
  const int smem_bytes = image.dynamic_smem_bytes + image.static_smem_bytes;
  if (smem_bytes > device.smem_per_block_optin_bytes)
    fail(ErrorKind::unsupported, "GDR-D05", "{}: needs {} bytes of shared memory, {} grants a block {}: {} too many",
         name_, smem_bytes, device.name, device.smem_per_block_optin_bytes,
         smem_bytes - device.smem_per_block_optin_bytes);
  const InContext in(*driver_, context_);
  const Driver::Functions& f = driver_->functions();
  void* module = nullptr;
  if (const int result = f.load_module(&module, image.cubin.data())) fail_to_load(*driver_, device, image, result);
  const auto check = [&](int result, const char* call, const std::string& subject) {
    if (result != 0) f.unload_module(module);  // no destructor runs for what is half made
    driver_->check(result, call, subject);
  };
  check(f.get_function(&function_, module, name_.c_str()), "cuModuleGetFunction", name_);
  if (smem_bytes > kDefaultSmemBytes)
    check(f.set_function_attribute(function_, kFunctionMaxDynamicSmem, image.dynamic_smem_bytes), "cuFuncSetAttribute",
          fmt::format("{}, {} bytes of shared memory", name_, image.dynamic_smem_bytes));
  module_ = module;
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : driver_(other.driver_),
      context_(other.context_),
      name_(std::move(other.name_)),
      smem_bytes_(other.smem_bytes_),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_) {}

LoadedKernel::~LoadedKernel() {
  if (module_ == nullptr) return;
  const Driver::Functions& f = driver_->functions();
  if (f.push_context(context_.handle) != 0) return;  // the context is gone, and its modules with it
  f.unload_module(module_);
  void* ignored = nullptr;
  f.pop_context(&ignored);
}

void LoadedKernel::launch(unsigned blocks, unsigned threads, const std::vector<std::byte>& arguments,
                          StreamHandle stream) const {
  if (blocks == 0) return;
  const InContext in(*driver_, context_);
  void* parameters[] = {const_cast<std::byte*>(arguments.data())};
  const int result = driver_->functions().launch(function_, blocks, 1, 1, threads, 1, 1, smem_bytes_,
                                                 stream_handle(stream), parameters, nullptr);
  if (result != 0)
    driver_->check(
        result, "cuLaunchKernel",
        fmt::format("{}, {} blocks of {} threads, {} bytes of shared memory", name_, blocks, threads, smem_bytes_));
}

CodeFacts LoadedKernel::facts() const {
  const Driver::Functions& f = driver_->functions();
  if (!f.function_attribute)
    fail(ErrorKind::device, "GDR-D01", "libcuda: has no function cuFuncGetAttribute; the driver is too old");
  const InContext in(*driver_, context_);
  const auto read = [&](int attribute) {
    int value = 0;
    driver_->check(f.function_attribute(&value, attribute, function_), "cuFuncGetAttribute", name_);
    return value;
  };
  return {read(kFunctionRegisters), read(kFunctionLocal), read(kFunctionStaticSmem)};
}

int LoadedKernel::blocks_per_sm(int threads) const {
  const Driver::Functions& f = driver_->functions();
  if (!f.occupancy)
    fail(ErrorKind::device, "GDR-D01", "libcuda: has no function cuOccupancyMaxActiveBlocksPerMultiprocessor");
  const InContext in(*driver_, context_);
  int blocks = 0;
  driver_->check(f.occupancy(&blocks, function_, threads, smem_bytes_), "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                 name_);
  return blocks;
}

}  // namespace gdr
