// Kernels of several roles and iterations: carried registers, stages, split tiles, aliases; and what a run reports.
#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "harness.hpp"

using namespace gdr;
using namespace harness;
using enum TensorKind;

namespace {

struct Sums {
  std::vector<double> y, h1;
};

// What the pipeline computes, in the order of its additions.
Sums pipeline_reference(const Tensors& given, const LaunchShape& shape, bool ascending) {
  const std::vector<double> x = values(given.at("x")), h0 = values(given.at("h0"));
  constexpr std::size_t kElems = kPipelineRows * kPipelineCols;
  Sums sums;
  for (std::size_t n = 0; n < shape.sequences.size(); ++n) {
    const auto [begin, end] = shape.sequences[n];
    const auto chunks = static_cast<std::size_t>((end - begin + kPipelineRows - 1) / kPipelineRows);
    const std::size_t first = sums.y.size();
    sums.y.resize(first + chunks * kElems);
    std::vector<double> state(h0.begin() + static_cast<std::ptrdiff_t>(n * kElems),
                              h0.begin() + static_cast<std::ptrdiff_t>((n + 1) * kElems));
    for (std::size_t it = 0; it < chunks; ++it) {
      const std::size_t chunk = ascending ? it : chunks - 1 - it;
      for (std::size_t at = 0; at < kElems; ++at) {
        const std::size_t token = static_cast<std::size_t>(begin) + chunk * kPipelineRows + at / kPipelineCols;
        if (token < static_cast<std::size_t>(end)) state[at] += x[token * kPipelineCols + at % kPipelineCols];
        state[at] = rounded(state[at], DType::fp32);
        sums.y[first + chunk * kElems + at] = state[at];
      }
    }
    sums.h1.insert(sums.h1.end(), state.begin(), state.end());
  }
  return sums;
}

}  // namespace

TEST_CASE("a pipeline of two roles: any number of stages, both directions, empty and ragged sequences") {
  for (const LoopKind loop : {LoopKind::chunks_ascending, LoopKind::chunks_descending})
    for (const int stages : {1, 2, 3}) {
      CAPTURE(stages);
      LaunchShape shape;
      shape.tokens = 130;
      shape.sequences = {{0, 100}, {100, 100}, {100, 101}, {101, 130}};
      const Tensors given = pipeline_inputs(130, 4);
      const Tensors found =
          run_everywhere(plan_of(kPipelineRows, pipeline_tensors(), {pipeline(stages, loop)}), shape, given);
      const Sums wanted = pipeline_reference(given, shape, loop == LoopKind::chunks_ascending);
      check_equal(values(found.at("y")), wanted.y);
      check_equal(values(found.at("h1")), wanted.h1);
    }
}

TEST_CASE("what a run reports") {
  LaunchShape shape;
  shape.tokens = 130;
  shape.sequences = {{0, 100}, {100, 100}, {101, 130}};
  Tensors tensors = pipeline_inputs(130, 3);
  const InterpResult result =
      interpret(plan_of(kPipelineRows, pipeline_tensors(), {pipeline(2)}), shape, tensors, InterpOptions{});
  REQUIRE(result.kernels.size() == 1);
  const KernelStatistics& kernel = result.kernels[0];
  CHECK(kernel.name == "test_pipeline");
  CHECK(kernel.blocks == 3);
  CHECK(kernel.iterations == 7 + 0 + 2);
  // 3 loader warps take 3 steps an iteration, 2 adder warps 4; the adder's prologue and epilogue are a step each.
  CHECK(kernel.steps == 9 * (3 * 3 + 2 * 4) + 3 * 2 * 2);
  CHECK(kernel.traffic == std::map<std::string, Traffic>{{"x", {129 * 32 * 2, 0}},  // valid rows only
                                                         {"h0", {3 * 16 * 32 * 4, 0}},
                                                         {"y", {0, 9 * 16 * 32 * 4}},
                                                         {"h1", {0, 3 * 16 * 32 * 4}}});
}

TEST_CASE("results do not depend on the number of threads") {
  LaunchShape shape;
  shape.tokens = 400;
  for (std::int64_t begin = 0; begin < 400; begin += 40) shape.sequences.push_back({begin, begin + 40});
  const Plan plan = plan_of(kPipelineRows, pipeline_tensors(), {pipeline(2)});
  const Tensors given = pipeline_inputs(400, 10);
  Tensors first;
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    InterpOptions options;
    options.threads = threads;
    options.order = Order::priorities;
    const Tensors found = run(plan, shape, given, options);
    if (first.empty()) first = found;
    CHECK(found.at("y").bytes == first.at("y").bytes);
    CHECK(found.at("h1").bytes == first.at("h1").bytes);
  }
  InterpOptions options;
  options.threads = 0;
  CHECK_THROWS_WITH_AS(run(plan, shape, given, options),
                       "GDR-I01 interp: 0 threads; at least 1 is needed, and exactly 1 with an observer.", Error);
}

TEST_CASE("exact runs round nothing and give float64 back") {
  const Plan plan = plan_of(kPipelineRows, pipeline_tensors(), {pipeline(1)});
  Tensors given = pipeline_inputs(16);
  given["x"] = noise(DType::fp64, {16, 1, kPipelineCols}, 50);
  const Tensors found = run_everywhere(plan, one_sequence(16), given, true);
  CHECK(found.at("h1").dtype == DType::fp64);
  std::vector<double> wanted = values(given.at("x"));
  const std::vector<double> h0 = values(given.at("h0"));
  for (std::size_t at = 0; at < wanted.size(); ++at) wanted[at] += h0[at];
  check_equal(values(found.at("h1")), wanted);
  CHECK_THROWS_WITH_AS(run(plan, one_sequence(16), given), "GDR-I01 interp: tensor x is fp64; the plan wants bf16.",
                       Error);
}

TEST_CASE("a split tile with one slot: its parts take turns, the first comes back") {
  const std::vector<TensorSpec> tensors = {chunk_tensor("h", input, 32, 16, DType::bf16),
                                           chunk_tensor("y", output, 32, 16, DType::fp32)};
  KernelBuilder build("split", {GridAxis::sequence, GridAxis::v_head}, LoopKind::chunks_ascending, tensors);
  build.role("loader", 2);
  build.role("reader", 2);
  build.smem("h", 32, 16, DType::bf16, {.parts = 2, .resident = 1});
  build.acc("reader", "y", 16, 16, {1, 2});
  const int parts[] = {0, 1, 0};
  for (const int part : parts) {
    build.copy_in("loader", View("h").part(part), View("h").part_of(part, 2), "", Where::all);
    build.load("reader", "y", View("h").part(part), "");
    if (part == 1) build.copy_out("reader", View("y").rows(16, 32), "y", "", Where::all);
  }
  build.copy_out("reader", View("y").rows(0, 16), "y", "", Where::all);
  Kernel kernel = std::move(build).finish();
  for (const char* name : {"first", "second", "third"}) {
    mbarrier(kernel, std::string(name) + "_arrived", 2);
    mbarrier(kernel, std::string(name) + "_free", 2);
  }
  // loader: copies at 0, 1, 2; reader: load, load, copy_out, load, copy_out.
  insert(kernel, "loader", 3, arrive("third_arrived", true));
  insert(kernel, "loader", 2, wait("second_free"));
  insert(kernel, "loader", 2, arrive("second_arrived", true));
  insert(kernel, "loader", 1, wait("first_free"));
  insert(kernel, "loader", 1, arrive("first_arrived", true));
  insert(kernel, "loader", 0, wait("third_free", 1));
  insert(kernel, "reader", 4, arrive("third_free"));
  insert(kernel, "reader", 3, wait("third_arrived"));
  insert(kernel, "reader", 2, arrive("second_free"));
  insert(kernel, "reader", 1, wait("second_arrived"));
  insert(kernel, "reader", 1, arrive("first_free"));
  insert(kernel, "reader", 0, wait("first_arrived"));
  place(kernel);
  CHECK(kernel.barrier_offset_bytes == 16 * 16 * 2);
  const Tensors found =
      run_everywhere(plan_of(32, tensors, {kernel}), one_sequence(90), {{"h", noise(DType::bf16, {3, 1, 32, 16}, 60)}});
  check_equal(values(found.at("y")), values(found.at("h")));
}

TEST_CASE("two tiles on the same bytes, one after the other") {
  const std::vector<TensorSpec> tensors = {chunk_tensor("x", input, 32, 16, DType::fp32),
                                           chunk_tensor("y", output, 32, 16, DType::fp32)};
  KernelBuilder build("alias", {GridAxis::sequence, GridAxis::v_head}, LoopKind::chunks_ascending, tensors);
  build.role("all", 4);
  build.smem("s", 32, 16, DType::fp32);
  build.smem("t", 16, 32, DType::fp32);
  build.acc("all", "r", 16, 32, {1, 4, 8});
  build.copy_in("all", "s", "x", "", Where::all);
  build.load("all", "r", View("s").t(), "");
  build.store("all", "t", "r", "");
  build.copy_out("all", View("y").t(), "t", "", Where::all);
  Kernel kernel = std::move(build).finish();
  serialise(kernel);
  place(kernel);
  kernel.tiles[1].offset_bytes = kernel.tiles[0].offset_bytes + 64;  // not even the same elements meet
  const Tensors found =
      run_everywhere(plan_of(32, tensors, {kernel}), one_sequence(90), {{"x", noise(DType::fp32, {3, 1, 32, 16}, 61)}});
  check_equal(values(found.at("y")), values(found.at("x")));
}

TEST_CASE("kernels run in order and hand workspace on") {
  const std::vector<TensorSpec> tensors = {chunk_tensor("x", input, 16, 16, DType::fp32),
                                           chunk_tensor("w", workspace, 16, 16, DType::bf16),
                                           chunk_tensor("y", output, 16, 16, DType::fp32)};
  std::vector<Kernel> kernels;
  for (const auto& [from, to] : {std::pair{"x", "w"}, std::pair{"w", "y"}}) {
    KernelBuilder build("hand_on", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors);
    build.role("all", 1);
    build.acc("all", "r", 16, 16, {1, 1});
    build.load("all", "r", View(from).global(), "");
    build.map("all", "r[i,j] = 3*r[i,j]", "");
    build.copy_out("all", to, "r", "", Where::all);
    kernels.push_back(std::move(build).finish());
    place(kernels.back());
  }
  const Tensors found =
      run_everywhere(plan_of(16, tensors, kernels), one_sequence(50), {{"x", noise(DType::fp32, {4, 1, 16, 16}, 62)}});
  std::vector<double> wanted = values(found.at("x"));
  for (double& value : wanted) value = 3 * rounded(rounded(3 * value, DType::fp32), DType::bf16);
  check_equal(values(found.at("y")), wanted);
}

TEST_CASE("an observer sees every step and the values it left") {
  InterpOptions options;
  std::multiset<std::tuple<std::string, std::int64_t, int>> seen;  // op, iteration, warp
  std::vector<double> sums;
  const Kernel kernel = pipeline(2);
  options.observer = [&](const StepView& step) {
    const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
    CHECK(step.kernel == 0);
    CHECK(step.block == std::vector<std::int64_t>{0, 0});
    CHECK((step.slice_begin == 0 && step.slice_end == 1));
    seen.insert({op.id, step.iteration, step.warp});
    if (op.kind == OpKind::map && step.warp == 1) sums.push_back(step.value("sum", 3, 17));
    if (op.kind == OpKind::copy_in && step.warp == 0) sums.push_back(step.value("x", 3, 17));
  };
  const Tensors given = pipeline_inputs(32);
  run(plan_of(kPipelineRows, pipeline_tensors(), {kernel}), one_sequence(32), given, options);
  CHECK(seen.size() == 2u * (3 + 2 * 2) + 2 * 2);
  CHECK(seen.count({"sum.load", -1, 0}) == 1);
  CHECK(seen.count({"h1.out", 2, 1}) == 1);
  CHECK(seen.count({"x.in", 1, 2}) == 1);
  const std::size_t at = 3 * kPipelineCols + 17;
  const double h0 = values(given.at("h0"))[at], x0 = values(given.at("x"))[at],
               x1 = values(given.at("x"))[at + kPipelineRows * kPipelineCols];
  const double first = rounded(h0 + x0, DType::fp32);
  std::sort(sums.begin(), sums.end());
  std::vector<double> wanted = {x0, x1, first, rounded(first + x1, DType::fp32)};
  std::sort(wanted.begin(), wanted.end());
  check_equal(sums, wanted);
}
