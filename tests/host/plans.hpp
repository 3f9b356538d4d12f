// The plans whose kernels are compiled for the host: those of the planner for the shipped shape.
#pragma once

#include <string>

#include "schedule/model.hpp"

namespace gdr::host {

const Plan& shipped_plan(const std::string& arch, const std::string& strategy);
const Kernel& kernel_of(const Plan& plan, const std::string& function);  // throws if there is none

std::string host_text(const Plan& plan, const Kernel& kernel);
std::string text_hash(const std::string& text);

}  // namespace gdr::host
