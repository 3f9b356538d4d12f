// The chunked gated delta rule in scheme R on host threads, forward and backward.
//
// A task is one (sequence, v-head). Where there are fewer tasks than threads, the threads of a task share its chunks:
// two recurrences, of the state and of its gradient, run step by step, and what is no recurrence runs beside them.
// Every product is the same on any number of threads, and dq and dk of a k-head are sums over its v-heads, always added
// in the order of the v-heads: the bits of a result depend neither on the number of threads nor on the run. Time is
// linear in tokens. Memory, beside the caller's tensors: for each task at work the chunk states of its sequence, up to
// a limit (beyond it only the first state of each span of chunks is kept, and the others of a span are computed again
// when the backward gets there), and where v-heads share k-heads, dq and dk of the groups at work in the computing
// type.
#pragma once

#include <cstdint>

#include "cpu/call.hpp"

namespace gdr::cpu {

struct ChunkedOptions {
  int threads = 1;
  // Limit of the states a task keeps, at least those of one chunk. With 32 MiB, float32 and K = V = 128 a sequence of
  // 15,000 tokens is one span; every further span costs its state pass a second time, a fifth of its work.
  std::int64_t state_bytes_per_task = std::int64_t{32} << 20;
};

// T is the computing type, float or double. Tensors of the call may be of any floating type.
template <class T>
void chunked_forward(const FwdCall& call, const ChunkedOptions& options);

template <class T>
void chunked_backward(const BwdCall& call, const ChunkedOptions& options);

}  // namespace gdr::cpu
