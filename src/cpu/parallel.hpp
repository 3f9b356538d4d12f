// Work on host threads for arithmetic: numbered tasks (core/parallel.hpp), and a chain of steps with work around each.
// Denormal results are flushed to zero meanwhile: they cost a hundred cycles each and lie 30 orders of magnitude below
// anything that counts.
#pragma once

#include <cstdint>
#include <functional>

namespace gdr::cpu {

// As run_in_parallel.
void run_tasks(int threads, std::int64_t num_tasks, const std::function<void(int worker, std::int64_t index)>& task);

// A recurrence and the work around it that is none: for each index in [0, count) before(index), then step(index), then
// after(index). Steps run one at a time in increasing order; everything else may overlap. An index is at work from
// before(index) to the end of after(index); at work are at most `slots` indices, less than `slots` apart, so that what
// is kept for index i may lie in slot i % slots.
struct Chain {
  std::int64_t count = 0;
  std::int64_t slots = 1;
  std::function<void(std::int64_t index)> before, step, after;
};

// Runs the chain on at most `threads` threads, the caller's among them; fewer if the system refuses them. The first
// exception of a stage is thrown again here, after all threads have stopped; what was not started by then is dropped.
void run_chain(int threads, const Chain& chain);

}  // namespace gdr::cpu
