// A kernel of a Plan as CUDA source: self-contained text (the compiler at run time has no headers), readable, the same
// bytes for the same plan. Computes nothing that the plan could state.
#pragma once

#include <string>

#include "schedule/model.hpp"

namespace gdr {

// The source of one kernel; its entry point is extern "C" and has the kernel's name.
// Throws Error (unsupported, GDR-E10) for what the renderers cannot say yet, naming the op.
std::string emit_kernel(const Plan& plan, const Kernel& kernel);

}  // namespace gdr
