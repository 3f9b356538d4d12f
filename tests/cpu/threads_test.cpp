// Threads: the bits of a result do not depend on them, every task runs once, a failure comes out and hangs nobody.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "cpu/group_sum.hpp"
#include "cpu/parallel.hpp"
#include "support.hpp"

namespace gdr::cpu::test {

TEST_CASE("threads: equal bits for any number of threads") {
  struct Row {
    std::string name;
    std::vector<std::int64_t> lengths;
    std::int64_t k_heads, v_heads;
    std::int64_t state_bytes = ChunkedOptions{}.state_bytes_per_task;
  };
  const Row rows[] = {{"more heads than threads", {100, 0, 33, 7}, 2, 8},
                      {"one head", {200}, 1, 1},
                      {"one group of three", {200}, 1, 3},
                      {"one head in spans of three chunks", {500}, 1, 1, 3 * (33 * 20 + 32 * 32) * 8},
                      {"groups of two", {65, 64}, 2, 4}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Spec spec;
    spec.lengths = row.lengths;
    spec.k_heads = row.k_heads;
    spec.v_heads = row.v_heads;
    spec.state_bytes = row.state_bytes;
    spec.dim_k = 33;
    spec.dim_v = 20;
    spec.dtype = DType::bf16;
    spec.gates = "slow";
    const Problem problem(spec);
    for (const Method method : {Method::chunked_fp32, Method::chunked_fp64})
      for (const DType output : {DType::fp64, DType::bf16}) {
        const Outputs one = run(problem, method, output, 1);
        for (const int threads : {2, 3, 16})
          for (const auto& entry : run(problem, method, output, threads)) {
            const auto& name = entry.first;
            const auto& tensor = entry.second;
            CAPTURE(name);
            CAPTURE(threads);
            CHECK(tensor.bytes() == one.at(name).bytes());
          }
      }
  }
}

TEST_CASE("threads: several callers at once") {
  Spec spec;
  spec.gates = "slow";
  const Problem problem(spec);
  const Outputs expected = run(problem, Method::chunked_fp32, DType::fp32, 1);
  std::atomic<int> different{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 3; ++repeat)
        for (const auto& [name, tensor] : run(problem, Method::chunked_fp32, DType::fp32, 2))
          if (tensor.bytes() != expected.at(name).bytes()) ++different;
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(different == 0);
}

TEST_CASE("run_tasks: each task once, in order of start, on workers of its own") {
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    for (const std::int64_t tasks : {0, 1, 3, 1000}) {
      CAPTURE(tasks);
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
      std::atomic<int> overlaps{0};
      run_tasks(threads, tasks, [&](int worker, std::int64_t index) {
        if (busy[static_cast<std::size_t>(worker)].fetch_add(1) != 0) ++overlaps;
        ++runs[static_cast<std::size_t>(index)];
        --busy[static_cast<std::size_t>(worker)];
      });
      CHECK(overlaps == 0);
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("run_chain: steps in order, each between its before and its after, no more at work than slots") {
  for (const int threads : {1, 2, 5})
    for (const std::int64_t slots : {1, 2, 7})
      for (const std::int64_t count : {0, 1, 3, 500}) {
        CAPTURE(threads);
        CAPTURE(slots);
        CAPTURE(count);
        std::vector<std::atomic<std::int64_t>> owner(static_cast<std::size_t>(slots));  // of a slot: index + 1
        std::vector<std::atomic<int>> stage(static_cast<std::size_t>(count));
        std::atomic<std::int64_t> next{0};
        std::atomic<int> wrong{0};
        const auto expect = [&](bool right) { wrong += right ? 0 : 1; };
        run_chain(threads, {count, slots,
                            [&](std::int64_t index) {
                              expect(owner[static_cast<std::size_t>(index % slots)].exchange(index + 1) == 0);
                              expect(stage[static_cast<std::size_t>(index)].exchange(1) == 0);
                            },
                            [&](std::int64_t index) {
                              expect(stage[static_cast<std::size_t>(index)].exchange(2) == 1);
                              expect(next.fetch_add(1) == index);
                            },
                            [&](std::int64_t index) {
                              expect(stage[static_cast<std::size_t>(index)].exchange(3) == 2);
                              expect(owner[static_cast<std::size_t>(index % slots)].exchange(0) == index + 1);
                            }});
        CHECK(wrong == 0);
        CHECK(next == count);
        for (const auto& reached : stage) CHECK(reached == 3);
      }
}

TEST_CASE("run_chain: the exception of any stage comes out and nothing hangs") {
  for (const int threads : {1, 2, 5})
    for (const int failing : {0, 1, 2}) {
      CAPTURE(threads);
      CAPTURE(failing);
      std::atomic<int> afters{0};
      const auto stage = [&](int number) {
        return [&, number](std::int64_t index) {
          if (number == failing && index == 7) throw std::runtime_error("stage of seven");
          if (number == 2) ++afters;
        };
      };
      CHECK_THROWS_WITH_AS(run_chain(threads, {100000, 4, stage(0), stage(1), stage(2)}), "stage of seven",
                           std::runtime_error);
      CHECK(afters < 1000);
    }
}

TEST_CASE("run_tasks: the exception of a task comes out and later tasks are dropped") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    std::atomic<int> started{0};
    CHECK_THROWS_WITH_AS(run_tasks(threads, 100000,
                                   [&](int, std::int64_t index) {
                                     ++started;
                                     if (index == 7) throw std::runtime_error("task seven");
                                     if (index > 7) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                   }),
                         "task seven", std::runtime_error);
    CHECK(started < 1000);
  }
}

TEST_CASE("run_tasks: a subnormal product is zero inside and the caller's mode is restored") {
  volatile double small = 1e-300;
  volatile double inside = 1;
  run_tasks(1, 1, [&](int, std::int64_t) { inside = small * 1e-10; });
  CHECK(inside == 0);
  CHECK(small * 1e-10 > 0);
}

TEST_CASE("GroupSum: a v-head that fails lets the others of its group pass") {
  Spec spec;
  spec.lengths = {64};
  spec.k_heads = 1;
  spec.v_heads = 4;
  const Problem problem(spec);
  BwdCall call;
  static_cast<Inputs&>(call) = problem.inputs();
  Tensor dq(DType::fp32, problem.q.shape()), dk(DType::fp32, problem.k.shape());
  call.dq = dq.view();
  call.dk = dk.view();
  const std::vector<float> rows(32 * 16, 1.0f);
  for (const std::int64_t failing : {0, 1, 3}) {
    CAPTURE(failing);
    GroupSum<float> sum(call);
    CHECK_THROWS_AS(run_tasks(4, 4,
                              [&](int, std::int64_t head) {
                                GroupSum<float>::Turn turn(sum, 0, head);
                                for (const std::int64_t begin : {32, 0}) {
                                  if (head == failing && begin == 0) throw std::bad_alloc();
                                  turn.add(begin, 32, rows.data(), rows.data());
                                }
                              }),
                    std::bad_alloc);
  }
}

}  // namespace gdr::cpu::test
