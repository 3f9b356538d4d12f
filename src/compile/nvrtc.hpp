// CUDA source to machine code by NVRTC, which is opened at run time: gdrjit is built and plans without a CUDA toolkit,
// and compiles wherever some libnvrtc is found. The only place that knows NVRTC's interface. Thread-safe: several
// compilations may run side by side.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compile/nvrtc_search.hpp"

namespace gdr {

struct CompiledKernel {
  std::string target;  // sm_120a
  std::vector<std::byte> cubin;
  // From the compiler's log.
  int registers = 0;    // a thread
  int spill_bytes = 0;  // stored and loaded
  int local_bytes = 0;  // local memory a thread (its stack frame)
  int smem_bytes = 0;   // static shared memory; what a launch asks for comes on top
  std::string log;
  double seconds = 0;
};

// Why a source did not become machine code.
struct CompileFailure {
  std::string name, target;
  std::string reason;                // the compiler's own words for what it returned
  std::string compiler;              // "NVRTC 13.0, /usr/lib/libnvrtc.so.13"
  std::vector<std::string> options;  // in order
  std::string log;
};

class Nvrtc {
 public:
  // Opens the library. Throws Error (compilation, GDR-N01) that lists what was tried.
  static std::shared_ptr<const Nvrtc> open(const NvrtcSearch& search);

  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  int version_major() const { return version_major_; }
  int version_minor() const { return version_minor_; }
  std::string version() const;  // "13.0"
  const std::string& path() const { return path_; }

  // The first of `targets` ("sm_120a", best first) that this library can compile for; empty if there is none.
  std::optional<std::string> choose_target(const std::vector<std::string>& targets) const;

  // Compiles for one target. Throws nothing but std::bad_alloc.
  std::variant<CompiledKernel, CompileFailure> compile(const std::string& source, const std::string& name,
                                                       const std::string& target) const;

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

// The Error (compilation, GDR-N02) for a failure: compiler, options, log, and where the source lies (saved_source, may
// be empty: nowhere).
[[noreturn]] void throw_failure(const CompileFailure& failure, const std::string& saved_source);

// Writes a source that did not compile to the first of `folders` that can be written to, as NAME-KEY.cu, and returns
// the file; empty if there is none.
std::string save_source(const std::vector<std::filesystem::path>& folders, const std::string& name,
                        const std::string& key, const std::string& source);

}  // namespace gdr
