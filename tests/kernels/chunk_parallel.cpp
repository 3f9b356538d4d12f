#include "chunk_parallel.hpp"

#include <algorithm>

namespace gdr::test {

std::vector<TensorSpec> chunk_parallel_tensors(const Case& c) {
  TensorTable table;
  table.problem = c.problem();
  table.chunk = c.chunk;
  table.stored_gradients = true;
  table.final_state = true;
  return backward_tensors(table);
}

std::vector<Kernel> chunk_parallel(const Case& c, const std::vector<TensorSpec>& tensors, const Choices& choices) {
  const Problem p = c.problem();
  const int blocks = c.chunk / 16, slice = std::min(choices.v_slice_cols, c.dim_v);
  PrepareOptions prepare{.chunk = c.chunk, .warps = std::min(8, 2 * blocks), .pg = true};
  StateOptions state{.chunk = c.chunk, .v_slice_cols = slice, .loader_warps = 2, .stages = choices.stages};
  GradientsOptions gradients{.chunk = c.chunk,
                             .v_slice_cols = slice,
                             .resident = choices.resident,
                             .v_in_smem = choices.v_in_smem,
                             .warps = std::min({8, blocks * slice / 8, blocks * c.chunk / 8})};
  std::vector<Kernel> kernels;
  kernels.push_back(build_prepare(p, prepare, tensors));
  state.final_state = true;
  kernels.push_back(build_state_fwd(p, state, tensors));
  state.final_state = false;
  kernels.push_back(build_state_bwd(p, state, tensors));
  kernels.push_back(build_gradients(p, gradients, tensors));
  return kernels;
}

Tensors run_chunk_parallel(const Case& c, const Plan& plan, const Tensors& inputs, InterpOptions options) {
  Tensors tensors = inputs;
  tensors["dh0"], tensors["ht"];
  options.threads = 2;
  interpret(plan, c.launch(), tensors, options);
  return tensors;
}

}  // namespace gdr::test
