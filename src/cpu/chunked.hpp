// The chunked gated delta rule in scheme R on host threads, forward and backward.
//
// A task is one (sequence, v-head). dq and dk of a k-head are sums over its v-heads, always added in the order of the
// v-heads, so the bits of a result depend neither on the number of threads nor on the run. Time is linear in tokens.
// Memory, beside the caller's tensors: for each thread about 32 MiB of chunk states (one pass stores them all if they
// fit; beyond that only the first state of each span of chunks is kept and the span's others are computed again), and
// where v-heads share k-heads, dq and dk of the groups at work in the computing type.
#pragma once

#include "cpu/call.hpp"

namespace gdr::cpu {

// T is the computing type, float or double. Tensors of the call may be of any floating type.
template <class T>
void chunked_forward(const FwdCall& call, int threads);

template <class T>
void chunked_backward(const BwdCall& call, int threads);

}  // namespace gdr::cpu
