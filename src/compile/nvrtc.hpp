// CUDA source to machine code by NVRTC, which is opened at run time: gdrjit is built and plans without a CUDA toolkit,
// and compiles wherever some libnvrtc is found. The only place that knows NVRTC's interface. Thread-safe: several
// compilations may run side by side.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gdr {

struct CompiledKernel {
  std::string target;  // sm_120a
  std::vector<std::byte> cubin;
  // From the compiler's log.
  int registers = 0;
  int spill_bytes = 0;  // stored and loaded
  int stack_bytes = 0;  // local memory a thread
  std::string log;
};

class Nvrtc {
 public:
  // Opens the library: the one that the process has loaded, `override_path` alone if given, the names of known
  // releases, CUDA_HOME (`cuda_home`, may be empty) and the usual folder. Throws Error (compilation, GDR-N01) that
  // lists what was tried.
  static std::shared_ptr<const Nvrtc> open(const std::string& override_path, const std::string& cuda_home);

  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  int version_major() const { return version_major_; }
  int version_minor() const { return version_minor_; }
  const std::string& path() const { return path_; }

  // The first of `targets` ("sm_120a", best first) that this library can compile for; empty if there is none.
  std::optional<std::string> choose_target(const std::vector<std::string>& targets) const;

  // Compiles for one target. Throws Error (compilation, GDR-N02) with the compiler's log and the options.
  CompiledKernel compile(const std::string& source, const std::string& name, const std::string& target) const;

 private:
  struct Functions;
  Nvrtc() = default;

  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  std::string path_;
  int version_major_ = 0, version_minor_ = 0;
  std::vector<int> architectures_;  // compute capabilities that it knows, 120 for 12.0
};

// The options for a target, in order.
std::vector<std::string> compile_options(const std::string& target);

// The key of a kernel's machine code: source, options, target. NVRTC's version is not part of it.
std::string kernel_key(const std::string& source, const std::string& target);

}  // namespace gdr
