// The CUDA driver, opened at run time (libcuda.so.1): devices, memory, modules, launches. The only place that
// knows the driver's interface. Errors are of kind device and say what was called, on what, and the driver's text.
// A Device works in its primary context, whatever the calling thread has current; calls leave that as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gdr {

class Driver;

// A stream of the caller (CUstream as an integer handle; 0: the default stream).
using StreamHandle = std::uintptr_t;
using DevicePointer = std::uint64_t;

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  int num_sms = 0;
  int smem_per_block_optin_bytes = 0;
  int driver_version = 0;  // 13000 for 13.0
};

// Memory of a device, freed with this object.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<const Driver> driver, int ordinal, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;

  DevicePointer pointer() const { return pointer_; }
  std::size_t bytes() const { return bytes_; }
  void upload(const void* source);    // all bytes
  void download(void* target) const;  // all bytes, after all work on the default stream

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  std::size_t bytes_;
  DevicePointer pointer_ = 0;
};

// A kernel loaded on a device; keeps its module.
class LoadedKernel {
 public:
  // `smem_bytes`: dynamic shared memory of each launch. Throws Error (device, GDR-D03).
  LoadedKernel(std::shared_ptr<const Driver> driver, int ordinal, std::string_view cubin, const std::string& name,
               int smem_bytes);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) = delete;

  // Asynchronous. `arguments`: the kernel's one parameter, a struct of these bytes.
  void launch(unsigned blocks, unsigned threads, const std::vector<std::byte>& arguments, StreamHandle stream) const;

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  std::string name_;
  unsigned smem_bytes_;
  void* module_ = nullptr;
  void* function_ = nullptr;
};

class Driver : public std::enable_shared_from_this<Driver> {
 public:
  // Opens the library (`override_path` alone if given). Throws Error (device, GDR-D01) that lists what was tried, or
  // GDR-D02 if it does not start.
  static std::shared_ptr<const Driver> open(const std::string& override_path);
  ~Driver();

  int num_devices() const { return static_cast<int>(devices_.size()); }
  const DeviceFacts& device(int ordinal) const;  // throws Error (device, GDR-D02) if there is none

  void synchronise(int ordinal, StreamHandle stream) const;
  // Runs `free` in the device's context, if that is still there; for destructors.
  void release(int ordinal, const std::function<void()>& free) const noexcept;

  struct Functions;
  const Functions& functions() const { return *functions_; }
  void check(int result, std::string_view call, std::string_view subject) const;
  void* context(int ordinal) const { return contexts_[static_cast<std::size_t>(ordinal)]; }

 private:
  Driver() = default;
  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  std::vector<DeviceFacts> devices_;
  std::vector<void*> contexts_;
};

}  // namespace gdr
