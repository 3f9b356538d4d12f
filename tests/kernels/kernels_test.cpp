// The kernels of the chunk-parallel strategy through passes, proofs and interpreter, against the token recurrence.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "../cpu/build_kind.hpp"
#include "reference.hpp"
#include "support.hpp"

namespace gdr::test {
namespace {

std::vector<TensorSpec> tensor_table(const Case& c) {
  TensorTable table;
  table.problem = c.problem();
  table.chunk = c.chunk;
  table.stored_gradients = true;
  table.final_state = true;
  return backward_tensors(table);
}

struct Choices {
  int v_slice_cols = 32;
  int resident = 1;
  bool v_in_smem = false;
  int stages = 2;
};

std::vector<Kernel> chunk_parallel(const Case& c, const std::vector<TensorSpec>& tensors, const Choices& choices) {
  const Problem p = c.problem();
  const int blocks = c.chunk / 16, slice = std::min(choices.v_slice_cols, c.dim_v);
  PrepareOptions prepare{.chunk = c.chunk, .warps = std::min(8, 2 * blocks), .pg = true};
  StateOptions state{.chunk = c.chunk, .v_slice_cols = slice, .loader_warps = 2, .stages = choices.stages};
  GradientsOptions gradients{.chunk = c.chunk,
                             .v_slice_cols = slice,
                             .resident = choices.resident,
                             .v_in_smem = choices.v_in_smem,
                             .warps = std::min({8, blocks * slice / 8, blocks * c.chunk / 8})};
  std::vector<Kernel> kernels;
  kernels.push_back(build_prepare(p, prepare, tensors));
  state.final_state = true;
  kernels.push_back(build_state_fwd(p, state, tensors));
  state.final_state = false;
  kernels.push_back(build_state_bwd(p, state, tensors));
  kernels.push_back(build_gradients(p, gradients, tensors));
  return kernels;
}

// Runs the plan; dh0 and ht are asked for.
Tensors run(const Case& c, const Plan& plan, const Tensors& inputs, InterpOptions options) {
  Tensors tensors = inputs;
  tensors["dh0"], tensors["ht"];
  options.threads = 2;
  interpret(plan, c.launch(), tensors, options);
  return tensors;
}

constexpr std::array kLeft = {"gamma_chunk", "beta_chunk", "a_chunk", "pg_chunk", "h_chunk", "ht",   "ds_chunk",
                              "dh0",         "dq",         "dk",      "dv",       "dg",      "dbeta"};

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

// Root mean square over `seeds` of each tensor's relative error, with bf16 operands.
std::map<std::string, double> rounded_errors(const Case& c, const std::vector<int>& seeds) {
  const std::vector<TensorSpec> tensors = tensor_table(c);
  const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
  std::map<std::string, double> squares;
  for (const int seed : seeds) {
    const Tensors inputs = make_inputs(c, static_cast<std::uint64_t>(seed));
    const std::map<std::string, Values> expected = reference(c, inputs);
    const Tensors found = run(c, plan, inputs, {});
    for (const std::string name : kLeft) {
      const double error = relative_error(values(found.at(name)), expected.at(name));
      squares[name] += error * error / static_cast<double>(seeds.size());
    }
  }
  for (auto& [name, square] : squares) square = std::sqrt(square);
  return squares;
}

using Figures = std::map<std::string, double>;

// A cause must be looked for where an error is more than 15 % above its figure.
void check_figures(const Case& c, const std::vector<int>& seeds, const Figures& figures) {
  CAPTURE(c.name);
  const std::map<std::string, double> errors = rounded_errors(c, seeds);
  for (const auto& figure : figures) {
    CAPTURE(figure.first);
    CHECK(errors.at(figure.first) <= 1.15 * figure.second);
  }
}

// Section 7 of the specification, scheme R. The figures are root mean squares over seeds; dg and dbeta vary by a
// quarter from seed to seed (the oracle's as much), the others by 3 %.
const Figures kRealistic = {{"ht", .0017}, {"dq", .0029},    {"dk", .0029}, {"dv", .0024},
                            {"dg", .0018}, {"dbeta", .0018}, {"dh0", .0017}};
const Figures kSlow = {{"ht", .00190}, {"dq", .00303},    {"dk", .00319}, {"dv", .00261},
                       {"dg", .00233}, {"dbeta", .00206}, {"dh0", .00187}};
// Of dg the specification says "up to .0027 over seeds" here.
const Figures kShort = {{"ht", .0015},        {"dq", .0029},    {"dk", .0029}, {"dv", .0024},
                        {"dg", .0027 / 1.15}, {"dbeta", .0015}, {"dh0", .0005}};
// Storing as bf16 costs .00166; the states carry an error of their own beside it.
const Figures kWorkspace = {{"gamma_chunk", 1e-6}, {"beta_chunk", 0},  {"a_chunk", .00166},
                            {"pg_chunk", .00166},  {"h_chunk", .0022}, {"ds_chunk", .0017}};

// 512 tokens, two k-heads, K = V = 128, as in the precision study.
Case study(const char* name, std::vector<int> lengths, int chunk, int group, double gate_scale) {
  return {.name = name,
          .lengths = std::move(lengths),
          .chunk = chunk,
          .k_heads = 2,
          .group = group,
          .dim_k = 128,
          .dim_v = 128,
          .gate_scale = gate_scale};
}

}  // namespace

TEST_CASE("chunk-parallel backward is exact in float64") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const std::vector<TensorSpec> tensors = tensor_table(c);
    const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
    const Tensors inputs = make_inputs(c, 1);
    const std::map<std::string, Values> expected = reference(c, inputs);
    InterpOptions options;
    options.exact = true;
    const Tensors found = run(c, plan, inputs, options);
    for (const std::string name : kLeft) {
      CAPTURE(name);
      CHECK(relative_error(values(found.at(name)), expected.at(name)) <= 1e-9);
    }
  }
}

TEST_CASE("every choice of the builders gives the same mathematics") {
  const Case c{.name = "", .lengths = {70, 33}, .chunk = 32, .group = 2, .dim_v = 64, .gate_scale = 0.04};
  const std::vector<TensorSpec> tensors = tensor_table(c);
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
    const Tensors found = run(c, plan, inputs, options);
    for (const std::string name : kLeft) {
      CAPTURE(name);
      CHECK(relative_error(values(found.at(name)), expected.at(name)) <= 1e-9);
    }
  }
}

TEST_CASE("bits do not depend on the order of warps or on when copies land") {
  const Case c{.name = "", .lengths = {70, 0, 33}, .chunk = 32, .group = 2, .dim_v = 64, .gate_scale = 0.04};
  const std::vector<TensorSpec> tensors = tensor_table(c);
  const Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {.resident = 2}));
  const Tensors inputs = make_inputs(c, 3);
  const Tensors first = run(c, plan, inputs, {});
  std::uint64_t seed = 0;
  for (const Order order :
       {Order::random, Order::round_robin, Order::role_ahead, Order::role_behind, Order::priorities})
    for (const Landing landing : {Landing::late, Landing::random, Landing::early}) {
      InterpOptions options;
      options.seed = ++seed;
      options.order = order;
      options.landing = landing;
      CAPTURE(seed);
      const Tensors again = run(c, plan, inputs, options);
      for (const std::string name : kLeft) {
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
    const std::vector<TensorSpec> tensors = tensor_table(c);
    Plan plan = finished_plan(c, tensors, chunk_parallel(c, tensors, {}));
    int changed = 0;
    for (Kernel& kernel : plan.kernels)
      for (Op& op : kernel.ops)
        if (kernel.function == function && op.expr == "S[i,j] = exp(gam[C-1])*S[i,j]") {
          op.expr = "S[i,j] = 0*exp(gam[C-1])*S[i,j]";
          ++changed;
        }
    REQUIRE(changed == 1);
    const Tensors inputs = make_inputs(c, 4);
    const std::map<std::string, Values> expected = reference(c, inputs);
    const Tensors found = run(c, plan, inputs, {});
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

// Figures do not depend on how the test is built: left out where it runs ten times slower. The cases above cover the
// same code there.
TEST_CASE("bf16 errors, realistic gates" * doctest::skip(cpu::test::test_is_slow())) {
  Figures figures = kRealistic;
  figures.insert(kWorkspace.begin(), kWorkspace.end());
  check_figures(study("chunk 64", {512}, 64, 2, 1), {1, 2, 3, 4}, figures);
}

TEST_CASE("bf16 errors, slow gates" * doctest::skip(cpu::test::test_is_slow())) {
  check_figures(study("chunk 64", {512}, 64, 2, 0.04), {1, 2, 3, 4}, kSlow);
}

TEST_CASE("bf16 errors, short sequences" * doctest::skip(cpu::test::test_is_slow())) {
  check_figures(study("chunk 64", {57, 2, 5, 448}, 64, 1, 1), {11, 12, 13, 14, 15, 16, 17, 18}, kShort);
}

// Unclamped, one g of -1e6 takes all digits of the sums in fp32 behind it, and -infinity makes NaN of differences.
TEST_CASE("bf16 errors, g of -1e6 and -infinity") {
  Case c = study("chunk 64", {200}, 64, 2, 0.04);
  c.huge_gates = 0.05;
  Figures never_above;
  for (const std::string name : {"ht", "dq", "dk", "dv", "dg", "dbeta", "dh0"}) never_above[name] = .005 / 1.15;
  check_figures(c, {1}, never_above);
}

TEST_CASE("bf16 errors, chunk 32" * doctest::skip(cpu::test::test_is_slow())) {
  check_figures(study("realistic gates", {512}, 32, 2, 1), {1, 2}, kRealistic);
  // The specification has no row for these; dg: scheme R of its oracle, root mean square over 14 seeds.
  Figures slow = kSlow;
  slow["dg"] = .00263;
  check_figures(study("slow gates", {512}, 32, 2, 0.04), {1, 2, 3, 4}, slow);
}

}  // namespace gdr::test
