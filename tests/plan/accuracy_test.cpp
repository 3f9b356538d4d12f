// What the interpreter computes of plans, against the figures of the specification (section 7, scheme R): relative L2
// errors in thousandths at 512 tokens, K = V = 128. Exactly computed, the same plans agree with the token recurrence to
// rounding of float64, so whatever is above a figure is the rounding of an operand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "../cpu/build_kind.hpp"
#include "plans.hpp"

namespace gdr::test {
namespace {

// "Figures to reach", and the row "cos 0, gates x 0.04: R".
const Errors kRealistic = {{"dq", 2.9}, {"dk", 2.9}, {"dv", 2.4}, {"dg", 1.8}, {"dbeta", 1.8}, {"dh0", 1.7}};
// With sequences of 2 and 5 tokens dg, dbeta and dh0 scatter from seed to seed (dbeta 1.2 to 2.2): the specification's
// dg 1.7, dbeta 1.5, dh0 0.5 are of the oracle's seeds 7 to 10. These are the oracle's own figures over seeds 7 to 26.
const Errors kVarlen = {{"dq", 2.9}, {"dk", 2.9}, {"dv", 2.4}, {"dg", 1.77}, {"dbeta", 1.67}, {"dh0", 0.51}};
const Errors kSlow = {{"dq", 3.03}, {"dk", 3.19}, {"dv", 2.61}, {"dg", 2.33}, {"dbeta", 2.06}, {"dh0", 1.87}};
constexpr double kAbove = 1.15;

Case case_of(const Plan& plan, std::vector<int> lengths, double gate_scale) {
  Case c;
  c.lengths = std::move(lengths);
  c.k_heads = 2;
  c.gate_scale = gate_scale;
  return for_plan(c, plan);
}

void check_figures(const std::string& name, const Errors& found, const Errors& figures, double above) {
  MESSAGE(fmt::format("{}: {}", name, table_row(found)));
  for (const auto& row : figures) {  // clang 14 captures no structured bindings
    const std::string& tensor = row.first;
    const double figure = row.second;
    CAPTURE(name);
    CAPTURE(tensor);
    CHECK(found.at(tensor) <= figure * 1e-3 * above);
    CHECK(found.at(tensor) < 0.005);
  }
}

}  // namespace

TEST_CASE("accuracy: the sm_120 plan reaches the figures of the specification, rms over 4 seeds") {
  if (cpu::test::test_is_slow()) {
    MESSAGE("skipped: four seeds take minutes under sanitizers or without optimisation, and one scatters too much");
    return;
  }
  constexpr int kSeeds = 4;
  const Plan plan = planned({}).plan;
  check_figures("realistic gates", rms_errors(plan, case_of(plan, {512}, 1), kSeeds), kRealistic, kAbove);
  check_figures("slow gates", rms_errors(plan, case_of(plan, {512}, 0.04), kSeeds), kSlow, kAbove);
  PlanRequest alone = request({});
  alone.shape.v_heads = alone.shape.k_heads;
  const Plan one_head = make_plan(alone).plan;
  check_figures("lengths 57, 2, 5, 448", rms_errors(one_head, case_of(one_head, {57, 2, 5, 448}, 1), kSeeds), kVarlen,
                kAbove);
}

TEST_CASE("accuracy: other plans, one seed") {
  constexpr double kAboveOnce = 1.25;  // a single seed's dg and dbeta scatter
  for (const auto& [arch, strategy] :
       {std::pair{"sm_80", "fused"}, {"sm_86", "fused"}, {"sm_90", "fused"}, {"sm_120", "chunk_parallel"}}) {
    if (cpu::test::test_is_slow() && strategy == std::string("fused")) continue;
    const PlanResult result = planned({.arch = arch, .strategy = strategy});
    const std::string name = fmt::format("{} {} chunk {}", arch, strategy, result.plan.chunk);
    check_figures(name + ", realistic gates", rms_errors(result.plan, case_of(result.plan, {512}, 1), 1), kRealistic,
                  kAboveOnce);
    check_figures(name + ", slow gates", rms_errors(result.plan, case_of(result.plan, {512}, 0.04), 1), kSlow,
                  kAboveOnce);
  }
}

TEST_CASE("accuracy: computed exactly, plans agree with the token recurrence to 1e-9") {
  for (const auto& row :
       {std::pair{"sm_120", "fused"}, {"sm_80", "fused"}, {"sm_86", "fused"}, {"sm_120", "chunk_parallel"}}) {
    const std::string arch = row.first, strategy = row.second;
    CAPTURE(arch);
    CAPTURE(strategy);
    const Plan plan = planned({.arch = arch, .strategy = strategy}).plan;
    Case c = case_of(plan, {2 * plan.chunk + 5, 0, 1}, 0.04);
    c.k_heads = 1;
    c.zero_betas = 0.1;
    InterpOptions options;
    options.exact = true;
    options.threads = 2;
    CHECK(largest(errors_of(plan, c, 1, options)) < 1e-9);
  }
}

}  // namespace gdr::test
