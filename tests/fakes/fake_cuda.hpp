// A libcuda for tests: devices, contexts, streams and memory that behave like the driver's as far as gdrjit uses them,
// and remember what was called. Memory is the host's; kernels do nothing, their launches are written down with their
// arguments. Any call can be made to fail. Tests open it by its path (GDRJIT_LIBCUDA) and steer it through the one
// function below, found by name.
//   environment when it is opened: FAKE_CUDA_DEVICES  compute capabilities, "9.0,12.0" (default "9.0")
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gdr::test {

class FakeCuda {
 public:
  virtual ~FakeCuda() = default;

  // Forgets the log and all failures that were ordered; what is alive stays.
  virtual void reset() = 0;
  // One line a call that does something: "launch NAME blocks 4 threads 96 smem 100 stream 0 q=ADDRESS:i:h:r ... T=..
  // N=.. Hk=.. Hv=.. scale=..", "alloc_async 1024 stream 0", "free_async", "load", "retain 0" ...
  virtual std::vector<std::string> log() = 0;
  // How many calls there were since reset, of whatever kind.
  virtual int num_calls() = 0;
  // The call of this number (1 is the first after reset) fails with CUDA's `code`. Those that only free cannot fail.
  virtual void fail_call(int number, int code) = 0;
  // Every call of this function fails with this code, until reset: "cuModuleLoadData".
  virtual void fail_function(const std::string& function, int code) = 0;
  // Allocations, modules and retained contexts that are alive: "2 allocations, 4 modules, 1 contexts".
  virtual std::string alive() = 0;

  virtual void set_driver_version(int version) = 0;
  virtual void set_memory_pools(bool has) = 0;
  // What a program that uses CUDA itself would have.
  virtual void* create_context(int device) = 0;  // not current yet
  virtual void set_current(void* context) = 0;   // of the calling thread; null: none
  virtual void* current() = 0;
  virtual std::uintptr_t create_stream(void* context) = 0;
  virtual void set_capturing(std::uintptr_t stream, bool is_capturing) = 0;
  virtual void* allocate(int device, std::size_t bytes) = 0;
  virtual void* allocate_managed(int device, std::size_t bytes) = 0;
  virtual void release(void* pointer) = 0;
};

}  // namespace gdr::test

extern "C" gdr::test::FakeCuda* fake_cuda();
