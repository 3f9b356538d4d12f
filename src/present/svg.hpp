// A plan as a picture: for each kernel the roles as lanes with their operations and barriers, and under them, in the
// same columns, shared memory from byte 0 up to the budget: each tile a rectangle over the time it lives. A plain SVG
// file, the same bytes for the same plan; hovering shows details where the viewer can.
#pragma once

#include <string>

#include "plan/facts.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct SvgOptions {
  std::string kernel;  // only this one: its name or its function; empty: all
};

// `facts` is of this plan: as many kernels, in the same order. Every kernel with shared memory is drawn. Throws a
// config Error (GDR-T01) if options.kernel means none.
std::string plan_svg(const Plan& plan, const PlanFacts& facts, const SvgOptions& options = {});

}  // namespace gdr
