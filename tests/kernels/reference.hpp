// What the chunk kernels leave, computed without any of their formulas: outputs and states by the token recurrence and
// its hand-derived backward (ALGORITHM.md, section 1), the chunk x chunk tiles from their definitions. All in float64.
#pragma once

#include <map>
#include <string>

#include "support.hpp"

namespace gdr::test {

// By tensor name, in the shapes of HostTensor: gamma_chunk, beta_chunk, a_chunk, pg_chunk, h_chunk, ds_chunk, ht, dq,
// dk, dv, dg, dbeta, dh0. Rows of no sequence are 0.
std::map<std::string, Values> reference(const Case& c, const Tensors& inputs);

}  // namespace gdr::test
