// A kernel of a Plan as CUDA source: self-contained text (the compiler at run time has no headers), readable, the same
// bytes for the same plan. Computes nothing that the plan could state.
#pragma once

#include <string>

#include "schedule/model.hpp"

namespace gdr {

// Which implementation of the primitives stands in front of the text; all that follows is the same.
enum class Primitives {
  device,  // PTX, for the GPU
  host,    // calls into an engine that executes a block's threads on the host (tests/host)
};

// The source of one kernel; its entry point has the kernel's name (and is extern "C" for the GPU).
// Throws Error (unsupported, GDR-E10) for what the renderers cannot say yet, naming the op.
std::string emit_kernel(const Plan& plan, const Kernel& kernel, Primitives primitives = Primitives::device);

// The same without the primitives: what the plan decides.
std::string emit_plan_text(const Plan& plan, const Kernel& kernel);

}  // namespace gdr
