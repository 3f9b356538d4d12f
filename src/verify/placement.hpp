// Does everything lie where it may: tiles and barriers inside the block's shared memory and the budget, aligned, every
// element inside its slot and on bytes of its own, barriers on bytes of their own (V16, V17).
#pragma once

#include "verify/index.hpp"

namespace gdr::verifying {

// Needs a well-formed kernel. True if every tile lies inside the block with its elements in their slots, so that the
// kernel can be run on its addresses even where something was found (too much memory, an alignment, a barrier).
bool check_placement(const KernelIndex& index, Findings& findings);

}  // namespace gdr::verifying
