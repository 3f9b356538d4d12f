#include "cpu/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/parallel.hpp"

namespace gdr::cpu {
namespace {

// Sets the processor's flush-to-zero and denormals-are-zero modes for this thread and restores them at the end.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }  // FTZ is bit 15, DAZ bit 6
  ~FlushDenormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | (1ull << 24)));  // FZ is bit 24
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  unsigned saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_ = 0;
#endif
};

// What the threads of a chain know of it. A thread takes the step if it can be taken, for everything waits for that;
// else it sees to it that the next one is prepared; else it finishes what is done.
class ChainRun {
 public:
  explicit ChainRun(const Chain& chain)
      : chain_(chain),
        prepared_(static_cast<std::size_t>(chain.slots)),
        finished_(static_cast<std::size_t>(chain.slots)) {}

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!failure_ && oldest_ < chain_.count) {
      if (!stepping_ && stepped_ < begun_ && prepared_[slot(stepped_)]) {
        const std::int64_t index = stepped_;
        stepping_ = true;
        if (!call(lock, chain_.step, index)) return;
        stepping_ = false;
        ++stepped_;
      } else if (begun_ <= stepped_ + 1 && can_begin()) {
        begin(lock);
      } else if (ended_ < stepped_) {
        const std::int64_t index = ended_++;
        if (!call(lock, chain_.after, index)) return;
        finished_[slot(index)] = true;
        for (; oldest_ < ended_ && finished_[slot(oldest_)]; ++oldest_) {
          prepared_[slot(oldest_)] = false;
          finished_[slot(oldest_)] = false;
        }
      } else if (can_begin()) {
        begin(lock);
      } else {
        wait_for_change(lock);
        continue;
      }
      tell();
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::size_t slot(std::int64_t index) const { return static_cast<std::size_t>(index % chain_.slots); }
  bool can_begin() const { return begun_ < chain_.count && begun_ < oldest_ + chain_.slots; }

  void begin(std::unique_lock<std::mutex>& lock) {
    const std::int64_t index = begun_++;
    if (call(lock, chain_.before, index)) prepared_[slot(index)] = true;
  }

  // Calls stage(index) without the lock; false if it threw.
  bool call(std::unique_lock<std::mutex>& lock, const std::function<void(std::int64_t)>& stage, std::int64_t index) {
    lock.unlock();
    std::exception_ptr thrown;
    try {
      stage(index);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (!thrown) return true;
    if (!failure_) failure_ = thrown;
    tell();
    return false;
  }

  // With the lock held, after a change.
  void tell() {
    changes_.fetch_add(1);
    changes_.notify_all();
  }

  // A stage takes tens of microseconds and waking a thread about as many: it looks for a while before it sleeps.
  void wait_for_change(std::unique_lock<std::mutex>& lock) {
    constexpr int kLooks = 300;
    const std::uint32_t seen = changes_.load();
    lock.unlock();
    for (int look = 0; look < kLooks && changes_.load() == seen; ++look) std::this_thread::yield();
    changes_.wait(seen);
    lock.lock();
  }

  const Chain& chain_;
  std::mutex mutex_;  // of all below
  std::atomic<std::uint32_t> changes_{0};
  // Indices below: begun_ before(); stepped_ step() done; ended_ after() begun; oldest_ all done.
  std::int64_t begun_ = 0, stepped_ = 0, ended_ = 0, oldest_ = 0;
  std::vector<bool> prepared_, finished_;  // by slot: before() done, after() done
  bool stepping_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void run_tasks(int threads, std::int64_t num_tasks, const std::function<void(int, std::int64_t)>& task) {
  run_in_parallel(threads, num_tasks, [&](int worker, std::int64_t index) {
    const FlushDenormals guard;
    task(worker, index);
  });
}

void run_chain(int threads, const Chain& chain) {
  ChainRun run(chain);
  run_tasks(threads, std::min<std::int64_t>(std::max(1, threads), chain.count), [&](int, std::int64_t) { run.work(); });
  run.rethrow();
}

}  // namespace gdr::cpu
