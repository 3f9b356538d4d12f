#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace gdr {

void run_in_parallel(int threads, std::int64_t num_tasks, const std::function<void(int, std::int64_t)>& task) {
  std::atomic<std::int64_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const auto work = [&](int worker) {
    for (std::int64_t index = next.fetch_add(1); index < num_tasks; index = next.fetch_add(1)) {
      try {
        task(worker, index);
      } catch (...) {
        next.store(num_tasks);
        const std::lock_guard<std::mutex> lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const std::int64_t count = std::clamp<std::int64_t>(num_tasks, 1, std::max(1, threads));
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(count - 1));
  for (int worker = 1; worker < count; ++worker) {
    try {
      helpers.emplace_back(work, worker);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those running take the remaining tasks
    }
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gdr
