// What plans move, as the interpreter counts it: every tensor as often as the plan says, the state once a chunk,
// outputs once; and that the carried state gradient matters, by leaving it out.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "../verify/mutate.hpp"
#include "plans.hpp"

namespace gdr::test {
namespace {

const KernelStatistics& statistics_of(const InterpResult& result, const Plan& plan, const std::string& function) {
  const auto found = std::find_if(result.kernels.begin(), result.kernels.end(),
                                  [&](const KernelStatistics& s) { return s.name == kernel_of(plan, function).name; });
  REQUIRE(found != result.kernels.end());
  return *found;
}

// Bytes of the state that one chunk and head reads, by the plan's own operations.
std::int64_t state_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Op& op : kernel.ops)
    for (const Operand& operand : op.operands)
      if (operand.is_tensor && operand.name == "h_chunk")
        bytes += std::int64_t{2} * operand.rows.size() * operand.cols.size();
  return bytes;
}

}  // namespace

TEST_CASE("traffic of the fused plan: h as often as the plan says, inputs once a head, outputs once") {
  for (const char* arch : {"sm_120", "sm_90"}) {
    CAPTURE(std::string(arch));
    const Plan plan = planned({.arch = arch}).plan;
    const Case c = for_plan({.name = "short", .lengths = {2 * plan.chunk + 5, 0, 3}}, plan);
    const std::int64_t heads = c.v_heads(), tokens = 2 * plan.chunk + 8, chunks = 4, sequences = 3;
    InterpResult result;
    run_plan(plan, c, make_inputs(c, 1), {}, &result);
    const KernelStatistics& fused = statistics_of(result, plan, "bwd_fused");
    CHECK(fused.blocks == sequences * heads);
    CHECK(fused.iterations == chunks * heads);
    const std::int64_t row = 128 * 2, state = 128 * 128, lower = plan.chunk / 16 * (plan.chunk / 16 + 1) / 2 * 256 * 2;
    const std::map<std::string, Traffic> expected = {
        {"q", {tokens * heads * row, 0}},
        {"k", {tokens * heads * row, 0}},
        {"v", {tokens * heads * row, 0}},
        {"do", {tokens * heads * row, 0}},
        {"gamma_chunk", {chunks * heads * plan.chunk * 4, 0}},
        {"beta_chunk", {chunks * heads * plan.chunk * 4, 0}},
        {"a_chunk", {chunks * heads * lower, 0}},
        {"h_chunk", {chunks * heads * state_bytes(kernel_of(plan, "bwd_fused")), 0}},
        {"dht", {sequences * heads * state * 4, 0}},
        {"dv", {0, tokens * heads * row}},
        {"dq_head", {0, tokens * heads * row * 2}},
        {"dk_head", {0, tokens * heads * row * 2}},
        {"dg", {0, tokens * heads * 4}},
        {"dbeta", {0, tokens * heads * 4}},
        {"dh0", {0, sequences * heads * state * 4}}};
    for (const auto& row : expected) {  // clang 14 captures no structured bindings
      const std::string& name = row.first;
      const Traffic& traffic = row.second;
      CAPTURE(name);
      REQUIRE(fused.traffic.contains(name));
      CHECK(fused.traffic.at(name).read_bytes == traffic.read_bytes);
      CHECK(fused.traffic.at(name).written_bytes == traffic.written_bytes);
    }
    CHECK(fused.traffic.size() == expected.size());
  }
}

TEST_CASE("traffic: E before dV reads the parts of h that are not resident twice") {
  const Plan plan = planned({.arch = "sm_80"}).plan;
  const Case c = for_plan({.name = "short", .lengths = {2 * plan.chunk}}, plan);
  InterpResult result;
  run_plan(plan, c, make_inputs(c, 1), {}, &result);
  const std::int64_t bytes = state_bytes(kernel_of(plan, "bwd_fused"));
  CHECK(statistics_of(result, plan, "bwd_fused").traffic.at("h_chunk").read_bytes == 2 * c.v_heads() * bytes);
  CHECK(bytes >= 2 * 128 * 128);
}

TEST_CASE("without the carried state gradient the comparison fails, with slow gates at the latest") {
  Plan plan = planned({}).plan;
  const Case slow = for_plan({.name = "short", .lengths = {2 * plan.chunk + 5}, .gate_scale = 0.04}, plan);
  CHECK(largest(errors_of(plan, slow, 1)) < 0.005);
  for (Kernel& kernel : plan.kernels) {
    if (kernel.function != "bwd_fused") continue;
    int removed = 0;
    for (int op = static_cast<int>(kernel.ops.size()) - 1; op >= 0; --op)
      if (kernel.ops[static_cast<std::size_t>(op)].step.starts_with("13: dS +=")) {
        kernel = testing::mutating::without(kernel, op);
        ++removed;
      }
    REQUIRE(removed == 2);
  }
  const Errors errors = errors_of(plan, slow, 1);
  MESSAGE("without step 13: " << table_row(errors));
  for (const char* name : {"dq", "dk", "dv", "dg", "dbeta", "dh0"}) {
    CAPTURE(std::string(name));
    if (name != std::string("dq")) CHECK(errors.at(name) > 0.05);
  }
}

}  // namespace gdr::test
