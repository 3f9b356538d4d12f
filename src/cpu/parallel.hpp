// Numbered tasks on host threads (core/parallel.hpp), for arithmetic.
#pragma once

#include <cstdint>
#include <functional>

namespace gdr::cpu {

// As run_in_parallel. Denormal results are flushed to zero while tasks run (they cost a hundred cycles each and lie 30
// orders of magnitude below anything that counts).
void run_tasks(int threads, std::int64_t num_tasks, const std::function<void(int worker, std::int64_t index)>& task);

}  // namespace gdr::cpu
