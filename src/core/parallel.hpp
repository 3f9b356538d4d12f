// Runs numbered tasks on host threads. Tasks are handed out in increasing order, so a task may wait for one with a
// smaller number: that one has been started already, and the smallest unfinished task never waits.
#pragma once

#include <cstdint>
#include <functional>

namespace gdr {

// Calls task(worker, index) for every index in [0, num_tasks), each once, on at most `threads` threads, the caller's
// among them. worker is in [0, threads) and no two running calls share it.
// The first exception that a task throws is thrown again here, after all threads have stopped; tasks not yet started
// by then are dropped. If the system refuses threads, fewer are used.
void run_in_parallel(int threads, std::int64_t num_tasks,
                     const std::function<void(int worker, std::int64_t index)>& task);

}  // namespace gdr
