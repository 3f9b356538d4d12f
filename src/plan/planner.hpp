// The planner: enumerates candidates for every kernel of a strategy, runs the passes on each, takes what fits and is
// predicted to be fastest, proves the result, and keeps the reasons why the others lost.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/arch.hpp"
#include "config/budget.hpp"
#include "config/shape.hpp"
#include "plan/facts.hpp"
#include "schedule/model.hpp"
#include "verify/verify.hpp"

namespace gdr {

struct PlanRequest {
  Arch arch;
  Shape shape;  // its head counts and lengths decide nothing: costs are shown for them
  Budget budget;
  std::string strategy = "fused";
  // Microseconds of any clock, for the times in the pass log; the planner itself knows no time. May be empty.
  std::function<double()> clock_us;
};

struct PlanResult {
  Plan plan;
  PlanFacts facts;
  VerifyReport proof;  // of `plan`; always without findings
};

// The class of problems of a shape.
Problem problem_of(const Shape& shape);

// Names of the strategies, in the order in which they are listed for people.
const std::vector<std::string_view>& strategy_names();

// Throws Error:
//   config GDR-P01       unknown strategy
//   unsupported GDR-P02  no plan's registers suffice, GDR-P03 no plan's shared memory fits: how many bytes are missing
//                        under which smallest configuration, GDR-P04 no kernel is made for these head dims
//   internal GDR-X04     the plan found does not verify (a fault of a pass; the findings are in the text)
PlanResult make_plan(const PlanRequest& request);

}  // namespace gdr
