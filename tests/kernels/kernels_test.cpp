// The kernels of the chunk-parallel strategy through passes, proofs and interpreter, against the token recurrence.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "chunk_parallel.hpp"
#include "reference.hpp"
#include "support.hpp"

namespace gdr::test {
namespace {

const std::vector<Case> kCases = {
    {.name = "one whole chunk of 64", .lengths = {64}},
    {.name = "one token", .lengths = {1}, .chunk = 16},
    {.name = "chunk 16, ragged, an empty sequence", .lengths = {35, 0, 16, 1}, .chunk = 16, .group = 2},
    {.name = "chunk 16, slow gates, group of 3", .lengths = {50, 17}, .chunk = 16, .group = 3, .gate_scale = 0.04},
    {.name = "chunk 32, two k-heads", .lengths = {70, 31}, .chunk = 32, .k_heads = 2, .group = 2},
    {.name = "chunk 32, slow gates", .lengths = {97, 0, 5}, .chunk = 32, .k_heads = 2, .gate_scale = 0.04},
    {.name = "chunk 32, extreme gates", .lengths = {97}, .chunk = 32, .gate_scale = 32},
    {.name = "chunk 32, a third of beta is 0", .lengths = {70}, .chunk = 32, .gate_scale = 0.04, .zero_betas = 0.33},
    {.name = "chunk 64, slow gates", .lengths = {150, 64}, .group = 2, .gate_scale = 0.04},
    {.name = "chunk 64, no h0", .lengths = {100}, .gate_scale = 0.04, .h0 = false},
    {.name = "chunk 64, no dht", .lengths = {100}, .gate_scale = 0.04, .dht = false},
    {.name = "chunk 64, neither h0 nor dht", .lengths = {65}, .h0 = false, .dht = false},
    {.name = "K 64, V 32", .lengths = {70}, .chunk = 32, .dim_k = 64, .gate_scale = 0.04},
    {.name = "K 32, V 64: two slices", .lengths = {70}, .chunk = 32, .group = 2, .dim_v = 64, .gate_scale = 0.04},
    {.name = "g of -1e6 and -infinity", .lengths = {70}, .chunk = 32, .gate_scale = 0.04, .huge_gates = 0.1},
    {.name = "bf16 gates", .lengths = {70}, .chunk = 32, .gate_dtype = DType::bf16},
    {.name = "fp16", .lengths = {70}, .chunk = 32, .dtype = DType::fp16},
};

}  // namespace

TEST_CASE("chunk-parallel backward is exact in float64") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const std::vector<TensorSpec> tensors = chunk_parallel_tensors(c);
    const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
    const Tensors inputs = make_inputs(c, 1);
    const std::map<std::string, Values> expected = reference(c, inputs);
    InterpOptions options;
    options.exact = true;
    const Tensors found = run_chunk_parallel(c, plan, inputs, options);
    for (const std::string name : kChunkParallelResults) {
      CAPTURE(name);
      CHECK(relative_error(values(found.at(name)), expected.at(name)) <= 1e-9);
    }
  }
}

TEST_CASE("every choice of the builders gives the same mathematics") {
  const Case c{.name = "", .lengths = {70, 33}, .chunk = 32, .group = 2, .dim_v = 64, .gate_scale = 0.04};
  const std::vector<TensorSpec> tensors = chunk_parallel_tensors(c);
  const Tensors inputs = make_inputs(c, 2);
  const std::map<std::string, Values> expected = reference(c, inputs);
  InterpOptions options;
  options.exact = true;
  for (const Choices& choices : {Choices{.v_slice_cols = 16}, Choices{.v_slice_cols = 16, .resident = 2},
                                 Choices{.v_slice_cols = 64, .stages = 1}, Choices{.v_in_smem = true, .stages = 3},
                                 Choices{.resident = 2, .v_in_smem = true}}) {
    CAPTURE(choices.v_slice_cols);
    CAPTURE(choices.resident);
    CAPTURE(choices.v_in_smem);
    CAPTURE(choices.stages);
    const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, choices));
    const Tensors found = run_chunk_parallel(c, plan, inputs, options);
    for (const std::string name : kChunkParallelResults) {
      CAPTURE(name);
      CHECK(relative_error(values(found.at(name)), expected.at(name)) <= 1e-9);
    }
  }
}

TEST_CASE("bits do not depend on the order of warps or on when copies land") {
  const Case c{.name = "", .lengths = {70, 0, 33}, .chunk = 32, .group = 2, .dim_v = 64, .gate_scale = 0.04};
  const std::vector<TensorSpec> tensors = chunk_parallel_tensors(c);
  const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {.resident = 2}));
  const Tensors inputs = make_inputs(c, 3);
  const Tensors first = run_chunk_parallel(c, plan, inputs, {});
  std::uint64_t seed = 0;
  for (const Order order :
       {Order::random, Order::round_robin, Order::role_ahead, Order::role_behind, Order::priorities})
    for (const Landing landing : {Landing::late, Landing::random, Landing::early}) {
      InterpOptions options;
      options.seed = ++seed;
      options.order = order;
      options.landing = landing;
      CAPTURE(seed);
      const Tensors again = run_chunk_parallel(c, plan, inputs, options);
      for (const std::string name : kChunkParallelResults) {
        CAPTURE(name);
        CHECK(again.at(name).bytes == first.at(name).bytes);
      }
    }
}

// With realistic gates a whole chunk decays by e^-26 and nothing would be noticed: the reason for slow gates.
TEST_CASE("a state that is not carried is noticed") {
  for (const char* function : {"state_fwd", "state_bwd"}) {
    CAPTURE(function);
    const Case c{.name = "", .lengths = {192}, .gate_scale = 0.04};
    const std::vector<TensorSpec> tensors = chunk_parallel_tensors(c);
    Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
    int changed = 0;
    for (Kernel& kernel : plan.kernels)
      for (Op& op : kernel.ops)
        if (kernel.function == function && op.expr == "S[i,j] = eg[C-1]*S[i,j]") {
          op.expr = "S[i,j] = 0*eg[C-1]*S[i,j]";
          ++changed;
        }
    REQUIRE(changed == 1);
    const Tensors inputs = make_inputs(c, 4);
    const std::map<std::string, Values> expected = reference(c, inputs);
    const Tensors found = run_chunk_parallel(c, plan, inputs, {});
    CHECK(relative_error(values(found.at("dk")), expected.at("dk")) > 0.02);
    CHECK(relative_error(values(found.at("dg")), expected.at("dg")) > 0.02);
  }
}

TEST_CASE("group_sum adds the v-heads in order, in fp32, and rounds once") {
  for (const int group : {1, 2, 3})
    for (const int chunk : {16, 64}) {
      const Case c{.name = "", .lengths = {70, 0, 5}, .chunk = chunk, .k_heads = 2, .group = group};
      CAPTURE(group);
      CAPTURE(chunk);
      TensorTable table{c.problem(), chunk};
      table.partial_sums = true;
      std::vector<TensorSpec> tensors;
      for (TensorSpec tensor : backward_tensors(table)) {
        if (tensor.name == "dq_head" || tensor.name == "dk_head") tensor.kind = TensorKind::input;
        if (tensor.name.starts_with("dq") || tensor.name.starts_with("dk")) tensors.push_back(tensor);
      }
      const GroupSumOptions options{.chunk = chunk, .warps = chunk / 16};
      const Plan plan = finished_plan(c, tensors, {build_group_sum(c.problem(), options, tensors)});
      const std::size_t tokens = static_cast<std::size_t>(c.tokens()), cols = static_cast<std::size_t>(c.dim_k);
      Tensors inputs;
      for (const std::string name : {"dq", "dk"}) {
        const Case wide{.name = "", .lengths = c.lengths, .k_heads = c.v_heads(), .pad = c.pad, .dtype = DType::fp32};
        inputs[name + "_head"] = make_inputs(wide, name == "dq" ? 5 : 6).at("q");
      }
      Tensors found = inputs;
      interpret(plan, c.launch(), found, {});
      for (const std::string name : {"dq", "dk"}) {
        const Values terms = values(inputs.at(name + "_head")), sums = values(found.at(name));
        REQUIRE(sums.size() == tokens * static_cast<std::size_t>(c.k_heads) * cols);
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const std::size_t row = i / cols;
          float sum = 0;
          for (std::size_t head = 0; head < static_cast<std::size_t>(group); ++head) {
            const auto term =
                static_cast<float>(terms[(row * static_cast<std::size_t>(group) + head) * cols + i % cols]);
            sum = head == 0 ? term : sum + term;
          }
          const bool exists = row / static_cast<std::size_t>(c.k_heads) + static_cast<std::size_t>(c.pad) < tokens;
          REQUIRE(sums[i] == (exists ? static_cast<double>(round_to_bf16(sum)) : 0));
        }
      }
    }
}

// Unclamped, one g of -1e6 takes all digits of the sums in fp32 behind it, and -infinity makes NaN of differences.
TEST_CASE("bf16 errors, g of -1e6 and -infinity") {
  const Case c{.name = "",
               .lengths = {200},
               .k_heads = 2,
               .group = 2,
               .dim_k = 128,
               .dim_v = 128,
               .gate_scale = 0.04,
               .huge_gates = 0.05};
  const std::vector<TensorSpec> tensors = chunk_parallel_tensors(c);
  const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
  const Tensors inputs = make_inputs(c, 1);
  const std::map<std::string, Values> expected = reference(c, inputs);
  const Tensors found = run_chunk_parallel(c, plan, inputs, {});
  for (const std::string name : {"ht", "dq", "dk", "dv", "dg", "dbeta", "dh0"}) {
    CAPTURE(name);
    CHECK(relative_error(values(found.at(name)), expected.at(name)) <= .005);
  }
}

}  // namespace gdr::test
