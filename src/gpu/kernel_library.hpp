// Plans and machine code by request: found in the cache, or planned, compiled and kept. One path for `gdrjit compile`,
// for warming a cache on a machine without a GPU, and for running. Needs NVRTC only for what is not in the cache, and
// never a driver. Thread-safe; threads that want the same thing wait for the one that makes it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "compile/nvrtc.hpp"
#include "config/arch.hpp"
#include "plan/planner.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct LibraryOptions {
  CacheOptions cache;
  NvrtcSearch nvrtc;
  int threads = 1;  // of compilation
  // Where the sources of kernels that do not compile are saved: the first that can be written to.
  std::vector<std::filesystem::path> failed_sources;
};

// As the environment says (core/settings.hpp). `notice` hears what the cache has to tell.
LibraryOptions library_options(NoticeCallback notice);

// What is wanted: a plan by the rules and budget of `plan.arch`, in machine code for one of `targets` (of the device's
// architecture, best first; empty: those of plan.arch).
struct KernelRequest {
  PlanRequest plan;
  std::vector<CompileTarget> targets;
};

// Figures of a kernel's machine code, from the compiler's log when it was made.
struct KernelFigures {
  int registers = 0;     // a thread
  int spill_bytes = 0;   // stored and loaded
  int local_bytes = 0;   // local memory a thread
  int smem_bytes = 0;    // static shared memory: on top of what the plan asks for at launch
  std::string compiler;  // "13.0": the NVRTC that made it
};

struct ReadyKernel {
  std::string key;
  std::shared_ptr<const Entry> cubin;  // its payload is the cubin
  KernelFigures figures;
  double seconds = 0;  // that this call took to compile it; 0 if it was there
  Origin origin = Origin::none;
};

// A plan with the machine code of its kernels, ready to be loaded.
struct ReadyPlan {
  std::shared_ptr<const Plan> plan;
  std::string request_key;
  std::string target;
  Origin origin = Origin::none;      // of the plan
  std::vector<ReadyKernel> kernels;  // as the plan has them
};

// Whether another process that opens this cache finds the machine code of each kernel on disk.
std::vector<bool> are_stored(const CacheOptions& cache, const std::vector<ReadyKernel>& kernels);

// A plan whose kernels may not be compiled yet.
struct KeyedPlan {
  std::shared_ptr<const Plan> plan;
  std::string request_key;
  std::string target;
  std::vector<std::string> kernel_keys;  // as the plan has kernels
  Origin origin = Origin::none;
};

// Told after each kernel: how many of how many are ready. Called by several threads, one at a time.
using CompileProgress = std::function<void(int done, int total, const std::string& kernel)>;

class KernelLibrary {
 public:
  explicit KernelLibrary(LibraryOptions options);

  // What the cache holds, for the best target of which it holds everything. Neither plans nor compiles, and does not
  // open NVRTC.
  std::optional<ReadyPlan> find(const KernelRequest& request);

  // The plan alone, for the target that `get` would take: no NVRTC is needed (without one, the best target is taken).
  // Throws Error as make_plan.
  KeyedPlan plan(const KernelRequest& request);

  // find, or else plan and compile. Throws Error: those of make_plan; compilation GDR-N01 (no NVRTC, and the cache does
  // not hold the kernels), GDR-N02 (a kernel does not compile); unsupported GDR-G01 (NVRTC knows none of the targets).
  ReadyPlan get(const KernelRequest& request);

  // The same for several at once: all kernels that are missing are compiled side by side, the largest first.
  std::vector<ReadyPlan> get_all(const std::vector<KernelRequest>& requests, const CompileProgress& progress = {});

  // Opened at the first call. Throws Error (compilation, GDR-N01).
  const Nvrtc& nvrtc();

 private:
  std::optional<KeyedPlan> find_plan(const PlanRequest& request, const std::string& target);
  std::optional<ReadyPlan> find_for(const KernelRequest& request, const CompileTarget& target);
  KeyedPlan plan_for(const KernelRequest& request, const CompileTarget& target);
  const CompileTarget& target_for(const KernelRequest& request);
  ReadyKernel compile(const KeyedPlan& keyed, std::size_t index, const std::string& source);

  const LibraryOptions options_;
  Cache cache_;
  std::mutex nvrtc_mutex_;
  std::shared_ptr<const Nvrtc> nvrtc_;
};

// The plan of a request for a target, planned anew: what `find_plan` finds after the first time, with what the planner
// knows beside it, keys included. Throws Error as make_plan.
PlanResult keyed_plan(const PlanRequest& request, const CompileTarget& target);

}  // namespace gdr
