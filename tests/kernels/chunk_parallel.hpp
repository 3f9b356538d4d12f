// The kernels of the chunk-parallel strategy as the builders make them, with every choice open to the test, and run
// with all that they leave: workspace, final state and gradients.
#pragma once

#include <array>
#include <vector>

#include "support.hpp"

namespace gdr::test {

struct Choices {
  int v_slice_cols = 32;
  int resident = 1;
  bool v_in_smem = false;
  int stages = 2;
};

std::vector<TensorSpec> chunk_parallel_tensors(const Case& c);
std::vector<Kernel> chunk_parallel(const Case& c, const std::vector<TensorSpec>& tensors, const Choices& choices);

// What they leave, in the order in which it comes to be.
inline constexpr std::array kChunkParallelResults = {"gamma_chunk", "beta_chunk", "a_chunk", "pg_chunk", "h_chunk",
                                                     "ht",          "ds_chunk",   "dh0",     "dq",       "dk",
                                                     "dv",          "dg",         "dbeta"};

// Runs the plan on two threads; dh0 and ht are asked for. Returns all tensors.
Tensors run_chunk_parallel(const Case& c, const Plan& plan, const Tensors& inputs, InterpOptions options);

}  // namespace gdr::test
