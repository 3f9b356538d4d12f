#include "schedule/plan_json.hpp"

#include <doctest/doctest.h>

#include "sample_plan.hpp"

using namespace gdr;

TEST_CASE("a plan file round-trips") {
  const Plan plan = test::sample_plan();
  const std::string text = plan_to_json(plan);
  CHECK(plan_from_json(text, "plan.json") == plan);
}
