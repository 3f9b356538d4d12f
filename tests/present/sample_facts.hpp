// Facts as a planner might give them for the sample plan.
#pragma once

#include "plan/facts.hpp"

namespace gdr::test {

PlanFacts sample_facts();

}  // namespace gdr::test
