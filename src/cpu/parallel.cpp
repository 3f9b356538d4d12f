#include "cpu/parallel.hpp"

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

}  // namespace

void run_tasks(int threads, std::int64_t num_tasks, const std::function<void(int, std::int64_t)>& task) {
  run_in_parallel(threads, num_tasks, [&](int worker, std::int64_t index) {
    const FlushDenormals guard;
    task(worker, index);
  });
}

}  // namespace gdr::cpu
