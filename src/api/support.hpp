// Whether a class of problems is supported with given options: the one function behind why_not of both interfaces.
#pragma once

#include "gdr/gdr.hpp"

namespace gdr {

// Throws the Error that a call of this class, forward or backward, would throw; returns if it would run.
void check_support(const ProblemClass& problem, const Options& options);

}  // namespace gdr
