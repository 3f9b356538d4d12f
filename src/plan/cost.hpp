// Pass 8, cost: what a kernel moves and computes, its floor time, and a prediction. The prediction walks the loop body
// with the waits of the plan: roles run side by side, share the matrix units, the shared-memory port and the memory
// bus, and a wait ends when its event does. It is for comparing plans; calibration against measurements comes with
// them.
#pragma once

#include <cstdint>

#include "config/arch.hpp"
#include "config/shape.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct KernelCost {
  std::int64_t flops = 0;            // of matrix products, triangular blocks counted as skipped
  std::int64_t global_bytes = 0;     // read and written by all blocks, from L2 or memory
  std::int64_t hbm_bytes = 0;        // the same, heads of one group sharing what they read
  std::int64_t workspace_bytes = 0;  // of hbm_bytes, to and from workspace
  std::int64_t blocks = 0;
  double floor_us = 0;  // no kernel with this grid, these bytes and these products can be faster
  double predicted_us = 0;
  double cycles_per_iteration = 0;
};

// `plan` gives the tensors; barriers must be placed.
KernelCost kernel_cost(const Plan& plan, const Kernel& kernel, const Arch& arch, const Shape& shape);

}  // namespace gdr
