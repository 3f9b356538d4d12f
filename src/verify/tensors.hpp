// Global memory (V18): a block can find its piece of every tensor, every output byte is written exactly once in a
// launch, and what a kernel reads of the others was written by an earlier one.
#pragma once

#include "verify/index.hpp"

namespace gdr::verifying {

// Needs a well-formed kernel.
void check_kernel_tensors(const KernelIndex& index, Findings& findings);

// Between the kernels. Names that do not resolve are left to the kernels' own checks.
void check_plan_tensors(const Plan& plan, Findings& findings);

}  // namespace gdr::verifying
