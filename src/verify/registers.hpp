// Values in registers (V14): every read of a register tile finds what the op wrote that Kernel::ops, run one by one,
// puts there. Within a role program order is all there is, so the role's lists are simply run beside Kernel::ops.
#pragma once

#include "verify/index.hpp"

namespace gdr::verifying {

// For trip counts 0, 1 and 2 (1 alone where the body runs once): with the third iteration nothing new begins.
void check_registers(const KernelIndex& index, Findings& findings);

}  // namespace gdr::verifying
