// The two levels of keys under which the cache holds what was planned and compiled. A request key names a stored plan:
// class of problems, target, budget, and the gdrjit that plans (its sources, templates and configs). A kernel key
// (compile/nvrtc.hpp) names machine code. Neither depends on batch, tokens, head counts, paths, time or devices.
#pragma once

#include <string>
#include <string_view>

#include "config/arch.hpp"
#include "plan/planner.hpp"

namespace gdr {

// The request as it is planned for a target of the device: features that the target lacks are left out, so that a plan
// for another architecture's rules (a stand-in) compiles too.
PlanRequest request_for(const PlanRequest& request, const CompileTarget& target);

// `request` as request_for returns it. 32 lower-case hexadecimal digits.
std::string request_key(const PlanRequest& request, const std::string& target);

// A hash of the sources that decide plans, their text and how it is compiled, templates and configs included.
std::string_view build_hash();

}  // namespace gdr
