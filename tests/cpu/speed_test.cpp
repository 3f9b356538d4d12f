// The chunked backward in float32 against the token recurrence, both on two threads, at 2,048 tokens, 4 heads and
// K = V = 128: at least ten times as fast; and one head nearly as fast as four. A program of its own, because it
// has to run alone. Prints the figures; one line that begins with "skipped" and says why where the comparison means
// nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "build_kind.hpp"
#include "cpu/gemm.hpp"
#include "cpu/recurrence.hpp"
#include "support.hpp"

namespace {

using namespace gdr;
using namespace gdr::cpu;
using namespace gdr::cpu::test;

constexpr double kLeastRatio = 10;
// Time of one head over that of as much work in four heads, which share nothing. Idle: 1.1, and 1.8 on one thread; on a
// crowded machine, where two threads are worth one, nothing can be said and it is near 1.
constexpr double kMostOfOneHead = 1.4;
constexpr int kThreads = 2;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Spec spec_of(std::int64_t tokens, std::int64_t heads) {
  Spec spec;
  spec.lengths = {tokens};
  spec.k_heads = spec.v_heads = heads;
  spec.dim_k = spec.dim_v = 128;
  spec.gates = "slow";
  return spec;
}

// The backward of a problem with its outputs.
struct Backward {
  Backward(std::int64_t tokens, std::int64_t heads) : problem(spec_of(tokens, heads)) {
    static_cast<Inputs&>(call) = problem.inputs();
    call.do_ = problem.do_.view();
    call.final_state_grad = problem.final_state_grad.view();
    call.dq = dq.view();
    call.dk = dk.view();
    call.dv = dv.view();
    call.dg = dg.view();
    call.dbeta = dbeta.view();
    call.dh0 = dh0.view();
  }
  Problem problem;
  Tensor dq{DType::fp32, problem.q.shape()}, dk{DType::fp32, problem.k.shape()}, dv{DType::fp32, problem.v.shape()},
      dg{DType::fp32, problem.g.shape()}, dbeta{DType::fp32, problem.g.shape()},
      dh0{DType::fp32, problem.initial_state.shape()};
  BwdCall call;
};

}  // namespace

int main() {
  if (kSanitizer != nullptr) {
    fmt::print("skipped: built with the {}\n", kSanitizer);
    return 0;
  }
  if (!is_optimised()) {
    fmt::print("skipped: built without optimisation\n");
    return 0;
  }
  if (gemm_sets().front().name == "baseline") {
    fmt::print("skipped: the figure is for processors with AVX2 or AVX-512, this one has neither\n");
    return 0;
  }
  Backward small(2048, 4), large(8192, 4), head(4096, 1);
  double recurrence = std::numeric_limits<double>::max(), fp32 = recurrence, fp64 = recurrence, fp32_large = recurrence,
         alone = recurrence, pair = recurrence;
  for (int round = 0; round < 3; ++round) {  // interleaved, so that another program's load meets all of them
    recurrence = std::min(recurrence, seconds([&] { recurrence_backward(small.call, kThreads); }));
    for (int repeat = 0; repeat < 5; ++repeat) {
      fp32 = std::min(fp32, seconds([&] { chunked_backward<float>(small.call, {kThreads}); }));
      fp64 = std::min(fp64, seconds([&] { chunked_backward<double>(small.call, {kThreads}); }));
      fp32_large = std::min(fp32_large, seconds([&] { chunked_backward<float>(large.call, {kThreads}); }));
      alone = std::min(alone, seconds([&] { chunked_backward<float>(head.call, {1}); }));
      pair = std::min(pair, seconds([&] { chunked_backward<float>(head.call, {kThreads}); }));
    }
  }
  fmt::print("backward, 2048 tokens, 4 heads, K = V = 128, {} threads, {}:\n", kThreads, gemm_sets().front().name);
  fmt::print("  token recurrence, float64 {:8.1f} ms\n", recurrence * 1e3);
  fmt::print("  chunked, float64          {:8.1f} ms, {:.1f} times as fast\n", fp64 * 1e3, recurrence / fp64);
  fmt::print("  chunked, float32          {:8.1f} ms, {:.1f} times as fast, {:.0f} tokens/s\n", fp32 * 1e3,
             recurrence / fp32, 2048 / fp32);
  fmt::print("  chunked, float32, four times the tokens: {:.2f} times the time\n", fp32_large / fp32);
  const double of_one_head = pair / (fp32 * 4096 / (2048 * 4));
  fmt::print(
      "  one head, 4096 tokens, float32: {:.1f} ms, {:.1f} ms on one thread; {:.2f} times as long as four heads\n",
      pair * 1e3, alone * 1e3, of_one_head);
  if (of_one_head > kMostOfOneHead) {
    fmt::print("FAILED: one head takes more than {} times as long as the same work in four heads\n", kMostOfOneHead);
    return 1;
  }
  if (recurrence / fp32 < kLeastRatio) {
    fmt::print("FAILED: less than {} times the speed of the recurrence\n", kLeastRatio);
    return 1;
  }
  if (fp32_large / fp32 > 6) {
    fmt::print("FAILED: the time is not linear in the tokens\n");
    return 1;
  }
  return 0;
}
