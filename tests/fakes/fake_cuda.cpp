#include "fake_cuda.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "fake_cuda_state.hpp"

using namespace gdr::test;

namespace {

State& state() {
  static State* const instance = new State;
  return *instance;
}

std::string words(const char* format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// The arguments of a launch, as src/emit lays them out: a TensorArg for each tensor, then the sizes.
std::string arguments_of(const FakeModule& module, const void* bytes) {
  struct Tensor {
    unsigned long long data;
    long long item, head, row;
  };
  const char* at = static_cast<const char*>(bytes);
  std::string text;
  for (const std::string& name : module.tensors) {
    Tensor tensor;
    std::memcpy(&tensor, at, sizeof tensor);
    at += sizeof tensor;
    text += words(" %s=%llx:%lld:%lld:%lld", name.c_str(), tensor.data, tensor.item, tensor.head, tensor.row);
  }
  long long tokens = 0;
  int counts[3];
  float scale = 0;
  std::memcpy(&tokens, at, sizeof tokens);
  std::memcpy(counts, at + 8, sizeof counts);
  std::memcpy(&scale, at + 20, sizeof scale);
  return text + words(" T=%lld N=%d Hk=%d Hv=%d scale=%g", tokens, counts[0], counts[1], counts[2],
                      static_cast<double>(scale));
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))
#define ENTER(...)                     \
  State& s = state();                  \
  const std::lock_guard lock(s.mutex); \
  if (const int failure = s.enter(__func__ __VA_OPT__(, ) __VA_ARGS__)) return failure

FAKE FakeCuda* fake_cuda() { return &state(); }

FAKE int cuInit(unsigned) {
  ENTER();
  s.is_initialised = true;
  return kSuccess;
}
FAKE int cuDriverGetVersion(int* version) {
  ENTER();
  return *version = s.version, kSuccess;
}
FAKE int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {{kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                   {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
                                                   {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
                                                   {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
                                                   {kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(code);
  if (found == names.end()) return kInvalidValue;
  return *name = found->second, kSuccess;
}
FAKE int cuGetErrorString(int code, const char** text) {
  if (code != kOutOfMemory) return kInvalidValue;
  return *text = "out of memory", kSuccess;
}
FAKE int cuDeviceGetCount(int* count) {
  ENTER();
  if (!s.is_initialised) return kNotInitialised;
  return *count = static_cast<int>(s.devices.size()), kSuccess;
}
FAKE int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  return *device = 70 + ordinal, kSuccess;  // a handle, not the ordinal
}
FAKE int cuDeviceGetName(char* name, int bytes, int device) {
  ENTER();
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU %d", device - 70);
  return kSuccess;
}
FAKE int cuDeviceGetAttribute(int* value, int attribute, int handle) {
  ENTER();
  const Device& device = s.devices.at(static_cast<std::size_t>(handle - 70));
  const bool is_large = device.major == 9 || device.major == 10;
  switch (attribute) {
    case 16:
      return *value = 132, kSuccess;
    case 75:
      return *value = device.major, kSuccess;
    case 76:
      return *value = device.minor, kSuccess;
    case 88:
      return *value = 0, kSuccess;
    case 97:
      return *value = is_large ? 232448 : 101376, kSuccess;
    case 115:
      return *value = s.has_pools, kSuccess;
  }
  return kInvalidValue;
}

FAKE int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  FakeContext& primary = s.devices.at(static_cast<std::size_t>(device - 70)).primary;
  ++primary.retained;
  s.note(words("retain %d", device - 70));
  return *context = &primary, kSuccess;
}
FAKE int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(false);
  --s.devices.at(static_cast<std::size_t>(device - 70)).primary.retained;
  return kSuccess;
}
FAKE int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  if (context == nullptr) return kInvalidContext;
  stack.push_back(static_cast<FakeContext*>(context));
  return kSuccess;
}
FAKE int cuCtxPopCurrent_v2(void** context) {
  ENTER(false);
  if (stack.empty()) return kInvalidContext;
  *context = stack.back();
  stack.pop_back();
  return kSuccess;
}
FAKE int cuCtxGetCurrent(void** context) {
  ENTER();
  return *context = s.top(), kSuccess;
}
FAKE int cuCtxGetDevice(int* device) {
  ENTER();
  if (s.top() == nullptr) return kInvalidContext;
  return *device = 70 + s.top()->device, kSuccess;
}
FAKE int cuCtxGetId(void* context, unsigned long long* id) {
  ENTER(false);  // gdrjit does without it
  return *id = static_cast<FakeContext*>(context)->id, kSuccess;
}
FAKE int cuStreamGetCtx(void* stream, void** context) {
  ENTER();
  const FakeStream* const found = s.stream_of(stream);
  if (found == nullptr) return kInvalidHandle;
  return *context = found->context, kSuccess;
}
FAKE int cuStreamIsCapturing(void* stream, int* status) {
  ENTER();
  if (!s.takes(stream)) return kInvalidHandle;
  const FakeStream* const found = s.stream_of(stream);
  return *status = found != nullptr ? found->is_capturing : s.default_is_capturing, kSuccess;
}
FAKE int cuStreamSynchronize(void* stream) {
  ENTER();
  if (!s.takes(stream)) return kInvalidHandle;
  s.note(words("synchronise %p", stream));
  return kSuccess;
}
FAKE int cuPointerGetAttribute(void* value, int attribute, unsigned long long pointer) {
  ENTER();
  const Block* const block = s.block_at(pointer);
  if (block == nullptr) return kInvalidValue;
  const std::map<int, unsigned> values = {{2, 2}, {8, block->is_managed}, {9, static_cast<unsigned>(block->device)}};
  if (!values.contains(attribute)) return kInvalidValue;
  std::memcpy(value, &values.at(attribute), sizeof(unsigned));
  return kSuccess;
}

FAKE int cuMemAlloc_v2(unsigned long long* pointer, std::size_t bytes) {
  ENTER();
  if (s.top() == nullptr) return kInvalidContext;
  s.note(words("alloc %zu", bytes));
  return s.allocate_block(pointer, bytes, true, s.top()->device);
}
FAKE int cuMemFree_v2(unsigned long long pointer) {
  ENTER(false);
  s.note("free");
  return s.top() == nullptr ? kInvalidContext : s.free_block(pointer);
}
FAKE int cuMemAllocAsync(unsigned long long* pointer, std::size_t bytes, void* stream) {
  ENTER();
  if (!s.takes(stream)) return kInvalidHandle;
  s.note(words("alloc_async %zu stream %zx", bytes, reinterpret_cast<std::size_t>(stream)));
  return s.allocate_block(pointer, bytes, true, s.top()->device);
}
FAKE int cuMemFreeAsync(unsigned long long pointer, void* stream) {
  ENTER(false);
  if (!s.takes(stream)) return kInvalidHandle;
  s.note(words("free_async stream %zx", reinterpret_cast<std::size_t>(stream)));
  return s.free_block(pointer);
}
FAKE int cuMemcpyHtoD_v2(unsigned long long target, const void* source, std::size_t bytes) {
  ENTER();
  if (s.block_at(target) == nullptr) return kInvalidValue;
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return kSuccess;
}
FAKE int cuMemcpyDtoH_v2(void* target, unsigned long long source, std::size_t bytes) {
  ENTER();
  if (s.block_at(source) == nullptr) return kInvalidValue;
  s.note(words("download %zu", bytes));
  std::memcpy(target, reinterpret_cast<const void*>(source), bytes);
  return kSuccess;
}

FAKE int cuModuleLoadData(void** module, const void* image) {
  ENTER();
  if (s.top() == nullptr) return kInvalidContext;
  const std::string text(static_cast<const char*>(image), strnlen(static_cast<const char*>(image), 4000));
  const std::size_t kernel = text.find("\nkernel "), args = text.find("\nargs"), end = text.find("\nend\n");
  if (!text.starts_with("fake cubin ") || end == std::string::npos) return kInvalidImage;
  FakeModule* const made = new FakeModule;
  made->kernel = text.substr(kernel + 8, args - kernel - 8);
  std::istringstream names(text.substr(args + 5, end - args - 5));
  for (std::string name; names >> name;) made->tensors.push_back(name);
  made->context = s.top();
  s.modules[made] = true;
  s.note("load " + made->kernel);
  return *module = made, kSuccess;
}
FAKE int cuModuleUnload(void* module) {
  ENTER(false);
  FakeModule* const known = static_cast<FakeModule*>(module);
  if (s.modules.erase(known) == 0 || s.top() != known->context) return kInvalidHandle;
  delete known;
  return kSuccess;
}
FAKE int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  if (static_cast<FakeModule*>(module)->kernel != name) return kNotFound;
  return *function = module, kSuccess;
}
FAKE int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER();
  if (attribute != 8) return kInvalidValue;
  static_cast<FakeModule*>(function)->max_dynamic_smem = value;
  return kSuccess;
}
FAKE int cuFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  switch (attribute) {
    case 1:  // static shared memory
      return *value = 0, kSuccess;
    case 3:  // local memory
      return *value = 16, kSuccess;
    case 4:
      return *value = 100, kSuccess;
  }
  return kInvalidValue;
}
FAKE int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t smem) {
  ENTER();
  return *blocks = static_cast<int>(233472 / (smem + 1024)), kSuccess;
}
FAKE int cuEventCreate(void** event, unsigned) {
  ENTER();
  return *event = new int(0), kSuccess;
}
FAKE int cuEventDestroy_v2(void* event) {
  ENTER(false);
  delete static_cast<int*>(event);
  return kSuccess;
}
FAKE int cuEventRecord(void* event, void*) {
  ENTER();
  *static_cast<int*>(event) = ++s.events;
  return kSuccess;
}
FAKE int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ENTER();
  return *milliseconds = static_cast<float>(*static_cast<int*>(end) - *static_cast<int*>(begin)), kSuccess;
}
FAKE int cuMemsetD8Async(unsigned long long target, unsigned char value, std::size_t bytes, void* stream) {
  ENTER();
  if (!s.takes(stream)) return kInvalidHandle;
  if (s.block_at(target) == nullptr) return kInvalidValue;
  s.note(words("fill %zu", bytes));
  std::memset(reinterpret_cast<void*>(target), value, bytes);
  return kSuccess;
}
FAKE int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned,
                        unsigned smem, void* stream, void** parameters, void**) {
  ENTER();
  const FakeModule& module = *static_cast<FakeModule*>(function);
  if (!s.takes(stream)) return kInvalidHandle;
  if (module.context != s.top()) return kInvalidContext;
  if (x * y * z == 0 || static_cast<int>(smem) > module.max_dynamic_smem) return kInvalidValue;
  s.note("launch " + module.kernel +
         words(" blocks %u threads %u smem %u stream %zx", x, threads, smem, reinterpret_cast<std::size_t>(stream)) +
         arguments_of(module, parameters[0]));
  return kSuccess;
}
