// The gated delta rule token by token in float64, forward and backward (ALGORITHM.md, section 1): slow, plain, and
// what every other implementation of this project is compared with. The backward is derived by hand and is itself
// checked against differences of the forward. Memory: about 2 sqrt(length) states for a sequence and thread.
#pragma once

#include "cpu/call.hpp"

namespace gdr::cpu {

// Computes o and final_state. Sequences and k-heads are spread over `threads` threads; results do not depend on it.
void recurrence_forward(const FwdCall& call, int threads);

// Computes all gradients that are present in `call`.
void recurrence_backward(const BwdCall& call, int threads);

}  // namespace gdr::cpu
