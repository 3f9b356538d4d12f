// Is the kernel well formed: everything that can be said without running it or knowing where its tiles lie.
// The later checks rely on it: they run only for a kernel in which these find nothing.
#pragma once

#include "verify/index.hpp"

namespace gdr::verifying {

// Tiles, roles, steps, barriers, threads and registers (V03, V04, V05, V08, V09).
void check_kernel_form(const KernelIndex& index, Findings& findings);

// The operands, expression, mask and `where` of every op (V02, V03, V04, V06, V07, V16 for rectangles). Needs a kernel
// form without findings.
void check_op_forms(const KernelIndex& index, Findings& findings);

}  // namespace gdr::verifying
