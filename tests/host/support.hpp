// The compiled kernels, each with what it needs to run alone.
#pragma once

#include <string>
#include <vector>

#include "../plan/plans.hpp"
#include "launch.hpp"
#include "plans.hpp"
#include "registry.hpp"

namespace gdr::host {

// By architecture, strategy and function.
std::vector<CompiledKernel> sorted_kernels();
std::string label_of(const CompiledKernel& compiled);

// Two chunks and a ragged tail: every stage of every tile is used again. Slow gates, so that what is carried counts.
test::Case one_sequence();
test::Case two_sequences();  // and two k-heads

// The case with its lengths for this plan.
test::Case fitted(test::Case c, const Plan& plan);

// A kernel alone: what other kernels write is its input, as the interpreter leaves it.
struct OneKernel {
  OneKernel(const CompiledKernel& compiled, const test::Case& shape_of);
  OneKernel(const OneKernel&) = delete;  // `facts` refers to the plan
  OneKernel& operator=(const OneKernel&) = delete;
  test::Case c;
  LaunchShape shape;
  test::Alone alone;
  std::optional<KernelFacts> facts;
  const Kernel& kernel() const { return alone.plan.kernels[0]; }
};

// The first fault that one of `runs` runs meets, each with another seed, order and landing.
std::optional<Fault> fault_of(const OneKernel& one, HostOptions options, int runs);

}  // namespace gdr::host
