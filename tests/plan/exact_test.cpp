// Plans computed exactly, in float64 and with nothing rounded: what they leave of the token recurrence is its rounding.
// How far they are with rounded operands: tests/accuracy.
#include <doctest/doctest.h>

#include "plans.hpp"

namespace gdr::test {

TEST_CASE("computed exactly, plans agree with the token recurrence to 1e-9") {
  for (const auto& row :
       {std::pair{"sm_120", "fused"}, {"sm_80", "fused"}, {"sm_86", "fused"}, {"sm_120", "chunk_parallel"}}) {
    const std::string arch = row.first, strategy = row.second;
    CAPTURE(arch);
    CAPTURE(strategy);
    const Plan plan = planned({.arch = arch, .strategy = strategy}).plan;
    const Case c =
        for_plan({.name = "", .lengths = {2 * plan.chunk + 5, 0, 1}, .gate_scale = 0.04, .zero_betas = 0.1}, plan);
    InterpOptions options;
    options.exact = true;
    options.threads = 2;
    CHECK(largest(errors_of(plan, c, 1, options)) < 1e-9);
  }
}

}  // namespace gdr::test
