// The cuda backend: backward calls on tensors in device memory, which are used where they lie, and on tensors in host
// memory, which are copied. Fixed lengths, bf16, group of any size (gpu/support.hpp says what is refused). Plans and
// compiles at most once for each class of problems, rules and context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpu/call.hpp"
#include "gpu/session.hpp"

namespace gdr {

// Where and how a call runs.
struct GpuChoice {
  GpuRules rules;
  int device = 0;
  StreamHandle stream = 0;
  void* workspace = nullptr;  // null: allocated in the stream's order
  std::int64_t workspace_bytes = 0;
  std::optional<std::int64_t> max_workspace_bytes;
};

struct GpuRun {
  std::string device;  // its name
  std::vector<std::string> kernels;
};

// Why no call can be served here: no driver, no device, a device without a config. Empty if one can.
std::string gpu_unavailable(GpuSession& session);
// The name of a device; empty if there is none.
std::string gpu_name(GpuSession& session, int device);

// The views of `call` point into device memory. Enqueues the call on the stream and returns; nothing is copied, nobody
// waits. Throws Error: unsupported GDR-G02 to G04 (what cannot be done, named), config GDR-G05 (would have to compile
// or load while the stream is captured), GDR-G06 (the workspace is too small or misaligned), GDR-G07 (a tensor that is
// not in the device's memory), and those of planner, compiler, driver. After an error nothing more is enqueued; what
// was enqueued before it may run.
GpuRun gpu_backward(GpuSession& session, const cpu::BwdCall& call, const GpuChoice& choice);

// The views point into host memory: copied to the device and back, complete at return. The stream and workspace of
// `choice` are not used.
GpuRun gpu_backward_from_host(GpuSession& session, const cpu::BwdCall& call, const GpuChoice& choice);

// Plans, compiles and loads what calls of this class will need on the stream's context, so that they need not.
GpuRun gpu_prepare(GpuSession& session, const GpuProblem& problem, const GpuChoice& choice);

// Bytes of workspace of a call. Needs neither device nor compiler if rules.arch is given. Throws Error as the call
// would: unsupported GDR-G04 if it is above the maximum of `choice`.
std::int64_t gpu_workspace_bytes(GpuSession& session, const cpu::Sizes& sizes, const GpuChoice& choice);

// Throws what a call of this class would throw before anything runs.
void gpu_check(GpuSession& session, const GpuProblem& problem, const GpuChoice& choice);

}  // namespace gdr
