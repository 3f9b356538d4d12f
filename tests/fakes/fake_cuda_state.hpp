// What the fake driver remembers: devices, contexts, streams, memory, modules, the log, and which calls shall fail.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "fake_cuda.hpp"

namespace gdr::test {

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
inline thread_local std::vector<FakeContext*> stack;

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

}  // namespace gdr::test
