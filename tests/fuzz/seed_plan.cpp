// Prints the hand-made plan of the schedule tests as JSON: a small seed in which every kind of thing occurs.
#include <cstdio>

#include "sample_plan.hpp"
#include "schedule/plan_json.hpp"

int main() { std::fputs(gdr::plan_to_json(gdr::test::sample_plan()).c_str(), stdout); }
