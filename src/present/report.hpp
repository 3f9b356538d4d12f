// The plan file with everything the planner knows: what `gdrjit plan --format json` prints. plan_from_json reads it.
#pragma once

#include <string>

#include "plan/facts.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct ReportOptions {
  bool explain = false;  // the candidates too
};

// The same plan and facts give the same bytes; times of passes stand in no file. docs/plan-format.md lists the keys.
std::string report_json(const Plan& plan, const PlanFacts& facts, const ReportOptions& options = {});

}  // namespace gdr
