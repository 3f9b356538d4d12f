// What a process keeps for its GPU calls: the driver, the library of kernels, and the programs loaded so far, by
// context, rules and class of problems. Thread-safe; a program is made once, by the thread that comes first.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "config/arch.hpp"
#include "gpu/kernel_library.hpp"
#include "gpu/program.hpp"
#include "runtime/driver.hpp"

namespace gdr {

// Whose rules a plan follows.
struct GpuRules {
  std::string arch;      // empty: the device's
  std::string strategy;  // empty: fused
};

// What shapes a plan: sizes that a kernel's text depends on.
struct GpuProblem {
  int dim_k = 0, dim_v = 0;
  int group = 1;  // v-heads for one k-head
  auto operator<=>(const GpuProblem&) const = default;
};

class GpuSession {
 public:
  // Opens nothing. `libcuda`: the driver's library (Driver::open).
  GpuSession(std::string libcuda, LibraryOptions options);

  // The one of this process, as the environment says. Never destroyed: the driver shuts down on its own when the
  // process ends, before or after us.
  static GpuSession& of_process();
  // Who hears what the cache of of_process has to tell, from now on; at first nobody.
  static void set_notice_callback(NoticeCallback callback);

  // Opened at the first call that succeeds. Throws Error as Driver::open.
  std::shared_ptr<const Driver> driver();
  KernelLibrary& library() { return library_; }

  // The shipped architecture of a device. Throws Error (unsupported, GDR-G01) if there is none.
  std::shared_ptr<const Arch> arch_of(int device);

  // The request for a problem in machine code for `target`; the rules of `target` too, unless others are given. Throws
  // Error as load_arch.
  static KernelRequest request(const GpuRules& rules, const GpuProblem& problem, const Arch& target);

  // The program for a context, loaded already or else null.
  std::shared_ptr<const GpuProgram> find(const GpuRules& rules, const GpuProblem& problem, const Context& context);
  // The same, made if need be: found in the cache or planned and compiled, then loaded. Throws Error as
  // KernelLibrary::get and GpuProgram; the next call tries again.
  std::shared_ptr<const GpuProgram> get(const GpuRules& rules, const GpuProblem& problem, const Context& context);

 private:
  struct Slot {
    std::mutex mutex;  // held while the program is made
    std::shared_ptr<const GpuProgram> program;
  };
  using Key = std::tuple<Context, std::string, std::string, GpuProblem>;
  std::shared_ptr<Slot> slot(const GpuRules& rules, const GpuProblem& problem, const Context& context);

  const std::string libcuda_;
  KernelLibrary library_;
  std::mutex mutex_;  // of what follows
  std::shared_ptr<const Driver> driver_;
  std::map<int, std::shared_ptr<const Arch>> archs_;  // by device
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace gdr
