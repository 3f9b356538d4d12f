// A kernel's machine code, loaded into a context, and its launches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver.hpp"

namespace gdr {

struct KernelImage {
  std::string name;
  std::string_view cubin;
  int dynamic_smem_bytes = 0;  // of each launch
  int static_smem_bytes = 0;   // the code's own
  std::string compiler;        // version of the NVRTC that made it, "13.0"; may be empty
};

// Resources of loaded code, as the driver reports them.
struct CodeFacts {
  int registers = 0;          // a thread
  int local_bytes = 0;        // a thread
  int static_smem_bytes = 0;  // a block
};

class LoadedKernel {
 public:
  // Throws Error: unsupported GDR-D05 (more shared memory than a block of the device gets, with both numbers), device
  // GDR-D04 (the driver does not take the code; where it is older than the compiler, both versions are named), GDR-D03.
  LoadedKernel(std::shared_ptr<const Driver> driver, const Context& context, const KernelImage& image);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) = delete;

  // Asynchronous. `arguments`: the kernel's one parameter, a struct of these bytes. Throws Error (device, GDR-D03) that
  // names kernel, blocks, threads and shared memory.
  void launch(unsigned blocks, unsigned threads, const std::vector<std::byte>& arguments, StreamHandle stream) const;

  // Throws Error (device): GDR-D01 (the driver cannot say), GDR-D03.
  CodeFacts facts() const;
  // Blocks of so many threads that an SM holds at the same time, with the shared memory of a launch.
  int blocks_per_sm(int threads) const;

 private:
  std::shared_ptr<const Driver> driver_;
  Context context_;
  std::string name_;
  unsigned smem_bytes_;
  void* module_ = nullptr;
  void* function_ = nullptr;
};

}  // namespace gdr
