#include "runtime/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"

namespace gdr {
namespace {

// Enumerators of cuda.h, part of the driver's stable interface.
constexpr int kSmemPerBlockOptin = 97, kNumSms = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;
constexpr int kFunctionMaxDynamicSmem = 8;
constexpr int kStaticSmemBytes = 48 * 1024;  // more has to be asked for

}  // namespace

struct Driver::Functions {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*release_context)(int) = nullptr;
  int (*push_context)(void*) = nullptr;
  int (*pop_context)(void**) = nullptr;
  int (*allocate)(DevicePointer*, std::size_t) = nullptr;
  int (*free)(DevicePointer) = nullptr;
  int (*upload)(DevicePointer, const void*, std::size_t) = nullptr;
  int (*download)(void*, DevicePointer, std::size_t) = nullptr;
  int (*load_module)(void**, const void*) = nullptr;
  int (*unload_module)(void*) = nullptr;
  int (*get_function)(void**, void*, const char*) = nullptr;
  int (*set_function_attribute)(void*, int, int) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  int (*synchronise_stream)(void*) = nullptr;
};

namespace {

// Makes a device's context current for a stretch of code, and the former one again afterwards.
class InContext {
 public:
  InContext(const Driver& driver, int ordinal) : driver_(driver) {
    driver.check(driver.functions().push_context(driver.context(ordinal)), "cuCtxPushCurrent", "device context");
  }
  ~InContext() {
    void* ignored = nullptr;
    driver_.functions().pop_context(&ignored);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& driver_;
};

}  // namespace

std::shared_ptr<const Driver> Driver::open(const std::string& override_path) {
  std::shared_ptr<Driver> driver(new Driver);
  std::string tried;
  const std::vector<std::string> names =
      override_path.empty() ? std::vector<std::string>{"libcuda.so.1", "libcuda.so"} : std::vector{override_path};
  for (const std::string& name : names) {
    driver->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (driver->library_) break;
    tried += fmt::format("\n  {}", dlerror());
  }
  if (!driver->library_)
    fail(ErrorKind::device, "GDR-D01", "libcuda: not found; is there an NVIDIA GPU with its driver? Tried:{}", tried);

  driver->functions_ = std::make_unique<Functions>();
  Functions& f = *driver->functions_;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(driver->library_, name));
    if (!function) fail(ErrorKind::device, "GDR-D01", "libcuda: has no function {}; the driver is too old", name);
  };
  find(f.init, "cuInit");
  find(f.driver_version, "cuDriverGetVersion");
  find(f.error_name, "cuGetErrorName");
  find(f.error_string, "cuGetErrorString");
  find(f.device_count, "cuDeviceGetCount");
  find(f.device_get, "cuDeviceGet");
  find(f.device_name, "cuDeviceGetName");
  find(f.device_attribute, "cuDeviceGetAttribute");
  find(f.retain_context, "cuDevicePrimaryCtxRetain");
  find(f.release_context, "cuDevicePrimaryCtxRelease_v2");
  find(f.push_context, "cuCtxPushCurrent_v2");
  find(f.pop_context, "cuCtxPopCurrent_v2");
  find(f.allocate, "cuMemAlloc_v2");
  find(f.free, "cuMemFree_v2");
  find(f.upload, "cuMemcpyHtoD_v2");
  find(f.download, "cuMemcpyDtoH_v2");
  find(f.load_module, "cuModuleLoadData");
  find(f.unload_module, "cuModuleUnload");
  find(f.get_function, "cuModuleGetFunction");
  find(f.set_function_attribute, "cuFuncSetAttribute");
  find(f.launch, "cuLaunchKernel");
  find(f.synchronise_stream, "cuStreamSynchronize");

  if (const int result = f.init(0)) {
    const char* text = "unknown error";
    f.error_string(result, &text);
    fail(ErrorKind::device, "GDR-D02", "the CUDA driver does not start: {}", text);
  }
  int version = 0, count = 0;
  f.driver_version(&version);
  driver->check(f.device_count(&count), "cuDeviceGetCount", "driver");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.driver_version = version;
    int device = 0;
    driver->check(f.device_get(&device, ordinal), "cuDeviceGet", fmt::format("device {}", ordinal));
    char name[256] = {};
    f.device_name(name, sizeof name - 1, device);
    facts.name = name;
    f.device_attribute(&facts.compute_capability_major, kCapabilityMajor, device);
    f.device_attribute(&facts.compute_capability_minor, kCapabilityMinor, device);
    f.device_attribute(&facts.num_sms, kNumSms, device);
    f.device_attribute(&facts.smem_per_block_optin_bytes, kSmemPerBlockOptin, device);
    void* context = nullptr;
    driver->check(f.retain_context(&context, device), "cuDevicePrimaryCtxRetain", facts.name);
    driver->devices_.push_back(facts);
    driver->contexts_.push_back(context);
  }
  return driver;
}

Driver::~Driver() {
  for (const DeviceFacts& device : devices_) functions_->release_context(device.ordinal);
  // The library stays open: others in the process may use it, and it does not like to be unloaded.
}

const DeviceFacts& Driver::device(int ordinal) const {
  if (ordinal < 0 || ordinal >= num_devices())
    fail(ErrorKind::device, "GDR-D02", "device {}: the driver has {} device(s)", ordinal, num_devices());
  return devices_[static_cast<std::size_t>(ordinal)];
}

void Driver::check(int result, std::string_view call, std::string_view subject) const {
  if (result == 0) return;
  const char *name = "unknown", *text = "unknown error";
  functions_->error_name(result, &name);
  functions_->error_string(result, &text);
  fail(ErrorKind::device, "GDR-D03", "{}: {} gave {} ({})", subject, call, name, text);
}

void Driver::release(int ordinal, const std::function<void()>& free) const noexcept {
  if (functions_->push_context(context(ordinal)) != 0) return;  // the driver has shut down: nothing is left to free
  free();
  void* ignored = nullptr;
  functions_->pop_context(&ignored);
}

void Driver::synchronise(int ordinal, StreamHandle stream) const {
  const InContext in(*this, ordinal);
  check(functions_->synchronise_stream(reinterpret_cast<void*>(stream)), "cuStreamSynchronize", device(ordinal).name);
}

// ------------------------------------------------------------------------------------------------------ memory

DeviceBuffer::DeviceBuffer(std::shared_ptr<const Driver> driver, int ordinal, std::size_t bytes)
    : driver_(std::move(driver)), ordinal_(ordinal), bytes_(bytes) {
  const InContext in(*driver_, ordinal_);
  if (bytes > 0)
    driver_->check(driver_->functions().allocate(&pointer_, bytes), "cuMemAlloc", fmt::format("{} bytes", bytes));
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : driver_(other.driver_),
      ordinal_(other.ordinal_),
      bytes_(other.bytes_),
      pointer_(std::exchange(other.pointer_, 0)) {}

DeviceBuffer::~DeviceBuffer() {
  if (pointer_ == 0) return;
  driver_->release(ordinal_, [&] { driver_->functions().free(pointer_); });
}

void DeviceBuffer::upload(const void* source) {
  if (bytes_ == 0) return;
  const InContext in(*driver_, ordinal_);
  driver_->check(driver_->functions().upload(pointer_, source, bytes_), "cuMemcpyHtoD",
                 fmt::format("{} bytes", bytes_));
}

void DeviceBuffer::download(void* target) const {
  if (bytes_ == 0) return;
  const InContext in(*driver_, ordinal_);
  driver_->check(driver_->functions().download(target, pointer_, bytes_), "cuMemcpyDtoH",
                 fmt::format("{} bytes", bytes_));
}

// ----------------------------------------------------------------------------------------------------- kernels

LoadedKernel::LoadedKernel(std::shared_ptr<const Driver> driver, int ordinal, std::string_view cubin,
                           const std::string& name, int smem_bytes)
    : driver_(std::move(driver)), ordinal_(ordinal), name_(name), smem_bytes_(static_cast<unsigned>(smem_bytes)) {
  const InContext in(*driver_, ordinal_);
  const Driver::Functions& f = driver_->functions();
  driver_->check(f.load_module(&module_, cubin.data()), "cuModuleLoadData", name);
  driver_->check(f.get_function(&function_, module_, name.c_str()), "cuModuleGetFunction", name);
  if (smem_bytes > kStaticSmemBytes)
    driver_->check(f.set_function_attribute(function_, kFunctionMaxDynamicSmem, smem_bytes), "cuFuncSetAttribute",
                   fmt::format("{}, {} bytes of shared memory", name, smem_bytes));
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : driver_(other.driver_),
      ordinal_(other.ordinal_),
      name_(std::move(other.name_)),
      smem_bytes_(other.smem_bytes_),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_) {}

LoadedKernel::~LoadedKernel() {
  if (!module_) return;
  driver_->release(ordinal_, [&] { driver_->functions().unload_module(module_); });
}

void LoadedKernel::launch(unsigned blocks, unsigned threads, const std::vector<std::byte>& arguments,
                          StreamHandle stream) const {
  if (blocks == 0) return;
  const InContext in(*driver_, ordinal_);
  void* parameters[] = {const_cast<std::byte*>(arguments.data())};
  driver_->check(
      driver_->functions().launch(function_, blocks, 1, 1, threads, 1, 1, smem_bytes_, reinterpret_cast<void*>(stream),
                                  parameters, nullptr),
      "cuLaunchKernel",
      fmt::format("{}, {} blocks of {} threads, {} bytes of shared memory", name_, blocks, threads, smem_bytes_));
}

}  // namespace gdr
