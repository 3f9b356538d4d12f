#include "fake_cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

namespace {

using gdr::test::FakeCuda;

// Codes of cuda.h.
enum Code {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialised = 3,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
};

struct FakeContext {
  int device = 0;
  unsigned long long id = 0;
  int retained = 0;
  bool is_primary = false;
};
struct FakeStream {
  FakeContext* context = nullptr;
  bool is_capturing = false;
};
struct FakeModule {
  std::string kernel;
  std::vector<std::string> tensors;
  FakeContext* context = nullptr;
  int max_dynamic_smem = 48 * 1024;
};
struct Block {
  std::size_t bytes = 0;
  int device = 0;
  bool is_ours = false;  // allocated by the library under test
  bool is_managed = false;
};
struct Device {
  int major = 0, minor = 0;
  FakeContext primary;
};

// The contexts that a thread has made current, the last one on top.
thread_local std::vector<FakeContext*> stack;

class State : public FakeCuda {
 public:
  State() {
    const char* const text = std::getenv("FAKE_CUDA_DEVICES");
    std::istringstream list(text != nullptr && *text != '\0' ? text : "9.0");
    for (std::string item; std::getline(list, item, ',');) {
      Device device;
      std::sscanf(item.c_str(), "%d.%d", &device.major, &device.minor);
      device.primary.device = static_cast<int>(devices.size());
      device.primary.id = ++last_id;
      device.primary.is_primary = true;
      devices.push_back(device);
    }
  }

  // Counts a call; what it returns is not 0 if the call shall fail.
  int enter(const char* function, bool may_fail = true) {
    ++calls;
    if (!may_fail) return kSuccess;
    if (calls == failing_call) return failing_code;
    const auto found = failing_functions.find(function);
    return found == failing_functions.end() ? kSuccess : found->second;
  }
  void note(const std::string& line) { lines.push_back(line); }

  FakeContext* top() const { return stack.empty() ? nullptr : stack.back(); }
  FakeStream* stream_of(void* handle) {
    const auto found = streams.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == streams.end() ? nullptr : &found->second;
  }
  // Whether a stream may be used in the current context.
  bool takes(void* handle) {
    if (top() == nullptr) return false;
    if (reinterpret_cast<std::uintptr_t>(handle) <= 2) return true;
    const FakeStream* const stream = stream_of(handle);
    return stream != nullptr && stream->context == top();
  }
  int allocate_block(unsigned long long* pointer, std::size_t bytes, bool is_ours, int device) {
    void* memory = nullptr;
    if (bytes == 0 || posix_memalign(&memory, 512, bytes) != 0) return bytes == 0 ? kInvalidValue : kOutOfMemory;
    std::memset(memory, 0xff, bytes);  // NaN
    blocks[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, device, is_ours, false};
    *pointer = reinterpret_cast<std::uintptr_t>(memory);
    return kSuccess;
  }
  int free_block(unsigned long long pointer) {
    const auto found = blocks.find(pointer);
    if (found == blocks.end()) return kInvalidValue;
    std::free(reinterpret_cast<void*>(found->first));
    blocks.erase(found);
    return kSuccess;
  }
  const Block* block_at(unsigned long long pointer) const {
    auto found = blocks.upper_bound(pointer);
    if (found == blocks.begin()) return nullptr;
    --found;
    return pointer < found->first + found->second.bytes ? &found->second : nullptr;
  }

  void reset() override {
    const std::lock_guard lock(mutex);
    lines.clear();
    calls = failing_call = 0;
    failing_functions.clear();
  }
  std::vector<std::string> log() override {
    const std::lock_guard lock(mutex);
    return lines;
  }
  int num_calls() override {
    const std::lock_guard lock(mutex);
    return calls;
  }
  void fail_call(int number, int code) override {
    const std::lock_guard lock(mutex);
    failing_call = number;
    failing_code = code;
  }
  void fail_function(const std::string& function, int code) override {
    const std::lock_guard lock(mutex);
    failing_functions[function] = code;
  }
  std::string alive() override {
    const std::lock_guard lock(mutex);
    int retained = 0;
    for (const Device& device : devices) retained += device.primary.retained;
    const auto ours =
        std::count_if(blocks.begin(), blocks.end(), [](const auto& block) { return block.second.is_ours; });
    std::ostringstream text;
    text << ours << " allocations, " << modules.size() << " modules, " << retained << " contexts";
    return text.str();
  }
  void set_driver_version(int number) override { version = number; }
  void set_memory_pools(bool has) override { has_pools = has; }
  void* create_context(int device) override {
    const std::lock_guard lock(mutex);
    return &(contexts[++last_id] = {device, last_id, 0, false});
  }
  void set_current(void* context) override {
    stack.clear();
    if (context != nullptr) stack.push_back(static_cast<FakeContext*>(context));
  }
  void* current() override { return top(); }
  std::uintptr_t create_stream(void* context) override {
    const std::lock_guard lock(mutex);
    const std::uintptr_t handle = 0x1000 + streams.size() * 0x10;
    streams[handle] = {static_cast<FakeContext*>(context), false};
    return handle;
  }
  void set_capturing(std::uintptr_t stream, bool is_capturing) override {
    const std::lock_guard lock(mutex);
    if (stream <= 2) {
      default_is_capturing = is_capturing;
    } else {
      streams.at(stream).is_capturing = is_capturing;
    }
  }
  void* allocate(int device, std::size_t bytes) override {
    const std::lock_guard lock(mutex);
    unsigned long long pointer = 0;
    return allocate_block(&pointer, bytes, false, device) == kSuccess ? reinterpret_cast<void*>(pointer) : nullptr;
  }
  void* allocate_managed(int device, std::size_t bytes) override {
    void* const pointer = allocate(device, bytes);
    const std::lock_guard lock(mutex);
    blocks.at(reinterpret_cast<std::uintptr_t>(pointer)).is_managed = true;
    return pointer;
  }
  void release(void* pointer) override {
    const std::lock_guard lock(mutex);
    free_block(reinterpret_cast<std::uintptr_t>(pointer));
  }

  std::mutex mutex;
  std::vector<Device> devices;
  std::map<unsigned long long, FakeContext> contexts;
  std::map<std::uintptr_t, FakeStream> streams;
  std::map<unsigned long long, Block> blocks;
  std::map<FakeModule*, bool> modules;
  std::vector<std::string> lines;
  std::map<std::string, int> failing_functions;
  unsigned long long last_id = 0;
  int events = 0;  // recorded so far: their time in milliseconds
  int calls = 0, failing_call = 0, failing_code = 0;
  int version = 13000;
  bool has_pools = true, default_is_capturing = false, is_initialised = false;
};

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
