#include "runtime/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "runtime/driver_functions.hpp"

namespace gdr {
namespace {

// Enumerators of cuda.h, part of the driver's stable interface.
enum DeviceAttribute {
  kNumSms = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kPageableMemoryAccess = 88,
  kSmemPerBlockOptin = 97,
  kMemoryPoolsSupported = 115,
};
enum PointerAttribute { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };
constexpr unsigned kDeviceMemory = 2;
constexpr int kInvalidValue = 1;  // what an address that CUDA does not know gives
// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: handles that belong to whatever context is current.
constexpr StreamHandle kLastDefaultStream = 2;

}  // namespace

std::shared_ptr<const Driver> Driver::open(const std::string& override_path) {
  std::shared_ptr<Driver> driver(new Driver);
  std::string tried;
  const std::vector<std::string> names =
      override_path.empty() ? std::vector<std::string>{"libcuda.so.1", "libcuda.so"} : std::vector{override_path};
  for (const std::string& name : names) {
    // Stays open for good: others in the process may use it, and it does not like to be unloaded.
    driver->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (driver->library_) break;
    tried += fmt::format("\n  {}", dlerror());
  }
  if (!driver->library_)
    fail(ErrorKind::device, "GDR-D01", "libcuda: not found; is there an NVIDIA GPU with its driver? Tried:{}", tried);

  driver->functions_ = std::make_unique<Functions>();
  Functions& f = *driver->functions_;
  const auto find_optional = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(driver->library_, name));
  };
  const auto find = [&](auto& function, const char* name) {
    find_optional(function, name);
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
  find(f.current_context, "cuCtxGetCurrent");
  find(f.context_device, "cuCtxGetDevice");
  find_optional(f.context_id, "cuCtxGetId");
  find(f.stream_context, "cuStreamGetCtx");
  find(f.is_capturing, "cuStreamIsCapturing");
  find(f.synchronise_stream, "cuStreamSynchronize");
  find(f.pointer_attribute, "cuPointerGetAttribute");
  find(f.allocate, "cuMemAlloc_v2");
  find(f.free, "cuMemFree_v2");
  find(f.allocate_async, "cuMemAllocAsync");
  find(f.free_async, "cuMemFreeAsync");
  find(f.upload, "cuMemcpyHtoD_v2");
  find(f.download, "cuMemcpyDtoH_v2");
  find(f.load_module, "cuModuleLoadData");
  find(f.unload_module, "cuModuleUnload");
  find(f.get_function, "cuModuleGetFunction");
  find(f.set_function_attribute, "cuFuncSetAttribute");
  find(f.launch, "cuLaunchKernel");
  find_optional(f.function_attribute, "cuFuncGetAttribute");
  find_optional(f.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find_optional(f.create_event, "cuEventCreate");
  find_optional(f.destroy_event, "cuEventDestroy_v2");
  find_optional(f.record_event, "cuEventRecord");
  find_optional(f.event_distance, "cuEventElapsedTime");
  find_optional(f.fill_async, "cuMemsetD8Async");

  if (const int result = f.init(0))
    fail(ErrorKind::device, "GDR-D02", "the CUDA driver does not start: cuInit gave {}", driver->words(result));
  int version = 0, count = 0;
  driver->check(f.driver_version(&version), "cuDriverGetVersion", "driver");
  driver->check(f.device_count(&count), "cuDeviceGetCount", "driver");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int handle = 0;
    driver->check(f.device_get(&handle, ordinal), "cuDeviceGet", fmt::format("device {}", ordinal));
    driver->handles_.push_back(handle);
    driver->devices_.push_back(driver->read_facts(ordinal, version));
  }
  driver->primary_.resize(driver->devices_.size());
  return driver;
}

DeviceFacts Driver::read_facts(int ordinal, int driver_version) const {
  DeviceFacts facts;
  facts.ordinal = ordinal;
  facts.driver_version = driver_version;
  const std::string subject = fmt::format("device {}", ordinal);
  const int handle = handles_[static_cast<std::size_t>(ordinal)];
  char name[256] = {};
  check(functions_->device_name(name, sizeof name - 1, handle), "cuDeviceGetName", subject);
  facts.name = name;
  const auto read = [&](DeviceAttribute attribute) {
    int value = 0;
    check(functions_->device_attribute(&value, attribute, handle), "cuDeviceGetAttribute", subject);
    return value;
  };
  facts.compute_capability_major = read(kCapabilityMajor);
  facts.compute_capability_minor = read(kCapabilityMinor);
  facts.num_sms = read(kNumSms);
  facts.smem_per_block_optin_bytes = read(kSmemPerBlockOptin);
  facts.has_memory_pools = read(kMemoryPoolsSupported) != 0;
  facts.reaches_host_memory = read(kPageableMemoryAccess) != 0;
  return facts;
}

Driver::~Driver() {
  for (std::size_t i = 0; i < primary_.size(); ++i)
    if (primary_[i] != nullptr) functions_->release_context(handles_[i]);
}

const DeviceFacts& Driver::device(int ordinal) const {
  if (ordinal < 0 || ordinal >= num_devices())
    fail(ErrorKind::device, "GDR-D02", "device {}: the driver has {} device(s)", ordinal, num_devices());
  return devices_[static_cast<std::size_t>(ordinal)];
}

std::string Driver::words(int result) const {
  const char *name = "unknown", *text = "unknown error";
  functions_->error_name(result, &name);
  functions_->error_string(result, &text);
  return fmt::format("{} ({})", name, text);
}

void Driver::check(int result, std::string_view call, std::string_view subject) const {
  if (result != 0) fail(ErrorKind::device, "GDR-D03", "{}: {} gave {}", subject, call, words(result));
}

// ---------------------------------------------------------------------------------------------------- contexts

void* Driver::primary(int ordinal) const {
  const auto index = static_cast<std::size_t>(ordinal);
  const std::lock_guard lock(primary_mutex_);
  if (primary_[index] == nullptr) {
    void* context = nullptr;
    check(functions_->retain_context(&context, handles_[index]), "cuDevicePrimaryCtxRetain", devices_[index].name);
    primary_[index] = context;
  }
  return primary_[index];
}

int Driver::device_of(void* handle) const {
  const InContext in(*this, {handle, 0, 0});
  int device = 0;
  check(functions_->context_device(&device), "cuCtxGetDevice", "context");
  for (std::size_t i = 0; i < handles_.size(); ++i)
    if (handles_[i] == device) return static_cast<int>(i);
  return -1;
}

Context Driver::with_id(void* handle, int ordinal) const {
  Context context{handle, 0, ordinal};
  unsigned long long id = 0;
  if (functions_->context_id != nullptr && functions_->context_id(handle, &id) == 0) context.id = id;
  return context;
}

Context Driver::context_for(int ordinal, StreamHandle stream) const {
  const DeviceFacts& facts = device(ordinal);
  void* handle = nullptr;
  if (stream > kLastDefaultStream) {
    check(functions_->stream_context(stream_handle(stream), &handle), "cuStreamGetCtx", "stream");
    const int of_stream = device_of(handle);
    if (of_stream != ordinal)
      fail(ErrorKind::device, "GDR-D02", "the stream belongs to device {}, the tensors lie on device {} ({})",
           of_stream, ordinal, facts.name);
    return with_id(handle, ordinal);
  }
  check(functions_->current_context(&handle), "cuCtxGetCurrent", "thread");
  if (handle != nullptr && device_of(handle) == ordinal) return with_id(handle, ordinal);
  return with_id(primary(ordinal), ordinal);
}

InContext::InContext(const Driver& driver, const Context& context) : driver_(driver) {
  driver.check(driver.functions().push_context(context.handle), "cuCtxPushCurrent", "device context");
}

InContext::~InContext() {
  void* ignored = nullptr;
  driver_.functions().pop_context(&ignored);
}

// ----------------------------------------------------------------------------------------- streams and pointers

bool Driver::is_capturing(const Context& context, StreamHandle stream) const {
  const InContext in(*this, context);
  int status = 0;
  check(functions_->is_capturing(stream_handle(stream), &status), "cuStreamIsCapturing", "stream");
  return status != 0;
}

void Driver::synchronise(const Context& context, StreamHandle stream) const {
  const InContext in(*this, context);
  check(functions_->synchronise_stream(stream_handle(stream)), "cuStreamSynchronize", device(context.device).name);
}

PointerFacts Driver::pointer_facts(const Context& context, const void* pointer) const {
  const InContext in(*this, context);
  const auto address = reinterpret_cast<DevicePointer>(pointer);
  PointerFacts facts;
  unsigned type = 0;
  const int result = functions_->pointer_attribute(&type, kMemoryType, address);
  if (result == kInvalidValue) return facts;
  check(result, "cuPointerGetAttribute", "tensor");
  facts.is_known = true;
  facts.is_device = type == kDeviceMemory;
  check(functions_->pointer_attribute(&facts.device, kDeviceOrdinal, address), "cuPointerGetAttribute", "tensor");
  if (facts.is_device && facts.device != context.device) {
    unsigned is_managed = 0;  // then it moves to whoever uses it
    check(functions_->pointer_attribute(&is_managed, kIsManaged, address), "cuPointerGetAttribute", "tensor");
    facts.is_device = is_managed == 0;
  }
  return facts;
}

}  // namespace gdr
