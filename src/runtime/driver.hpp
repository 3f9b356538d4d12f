// The CUDA driver, opened at run time (libcuda.so.1): devices, contexts, streams. The only room that knows the driver's
// interface. Errors are of kind device and say what was called, on what, and the driver's words. Whatever context the
// calling thread has current, calls leave it as it was. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdr {

// A stream of the caller (CUstream as an integer; 0: the legacy default stream, 2: that of the thread).
using StreamHandle = std::uintptr_t;
using DevicePointer = unsigned long long;  // CUdeviceptr

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  int num_sms = 0;
  int smem_per_block_optin_bytes = 0;
  bool has_memory_pools = false;     // stream-ordered allocation
  bool reaches_host_memory = false;  // kernels may use any address of the host
  int driver_version = 0;            // 13000: the driver supports CUDA 13.0
};

// A context of a device. `id` tells apart contexts that follow one another at the same address; 0 where the driver is
// too old to say.
struct Context {
  void* handle = nullptr;
  std::uint64_t id = 0;
  int device = 0;
  auto operator<=>(const Context&) const = default;
};

// Where a pointer points.
struct PointerFacts {
  bool is_known = false;   // memory that CUDA has allocated or registered
  bool is_device = false;  // of a device; else of the host, or managed
  int device = 0;
};

class Driver {
 public:
  // Opens the library (`override_path` alone if given) and lists the devices; makes no context. Throws Error (device,
  // GDR-D01) that lists what was tried, GDR-D02 if it does not start, GDR-D03.
  static std::shared_ptr<const Driver> open(const std::string& override_path);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  int num_devices() const { return static_cast<int>(devices_.size()); }
  const DeviceFacts& device(int ordinal) const;  // throws Error (device, GDR-D02) if there is none

  // The context in which to work for a device and a stream: the stream's own; for default streams the calling thread's
  // current one if it is of this device, else the device's primary one. Throws Error (device, GDR-D02) if the stream
  // belongs to another device.
  Context context_for(int ordinal, StreamHandle stream) const;

  // Whether work on the stream is being captured into a graph instead of done.
  bool is_capturing(const Context& context, StreamHandle stream) const;
  void synchronise(const Context& context, StreamHandle stream) const;
  PointerFacts pointer_facts(const Context& context, const void* pointer) const;

  struct Functions;
  const Functions& functions() const { return *functions_; }
  // Throws Error (device, GDR-D03) unless `result` is 0.
  void check(int result, std::string_view call, std::string_view subject) const;
  // "CUDA_ERROR_X (text)".
  std::string words(int result) const;

 private:
  Driver() = default;
  DeviceFacts read_facts(int ordinal, int driver_version) const;
  Context with_id(void* handle, int ordinal) const;
  int device_of(void* handle) const;
  void* primary(int ordinal) const;

  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  std::vector<DeviceFacts> devices_;
  std::vector<int> handles_;  // CUdevice of each
  mutable std::mutex primary_mutex_;
  mutable std::vector<void*> primary_;  // null: not retained yet
};

// Makes a context current for a stretch of code, and the former one again afterwards.
class InContext {
 public:
  // Throws Error (device, GDR-D03).
  InContext(const Driver& driver, const Context& context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& driver_;
};

}  // namespace gdr
