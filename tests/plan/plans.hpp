// Plans as the planner makes them for the shipped configurations, run by the interpreter and compared with the token
// recurrence. Cases, inputs and the reference are those of the kernels' tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../kernels/support.hpp"
#include "interp/interp.hpp"
#include "plan/planner.hpp"

namespace gdr::test {

// The gradients, in the order in which tables list them.
inline const std::vector<std::string> kGradients = {"dq", "dk", "dv", "dg", "dbeta", "dh0"};

struct Asked {
  std::string arch = "sm_120";
  std::string shape = "qwen3_next";
  std::int64_t budget_bytes = 0;  // 0: all that the architecture grants a block
  std::string strategy = "fused";
};
PlanRequest request(const Asked& asked);
PlanResult planned(const Asked& asked);

// The label of the candidate that became the plan's kernel `function` ("fused c32: ...").
std::string chosen(const PlanResult& result, const std::string& function);
double predicted_us(const PlanResult& result);  // of all kernels

const Kernel& kernel_of(const Plan& plan, const std::string& function);  // fails the test if there is none

// `c` for the plan: its chunk, element type, head dims and group. Heads: `c.k_heads` times the plan's group.
Case for_plan(Case c, const Plan& plan);

// Runs the plan with dh0 asked for; returns all tensors, workspace too.
Tensors run_plan(const Plan& plan, const Case& c, const Tensors& inputs, const InterpOptions& options = {},
                 InterpResult* result = nullptr);

// The plan's kernel `function` alone: what other kernels write becomes its input, taken from `of_whole`, the tensors
// that a run of the whole plan leaves.
struct Alone {
  Plan plan;
  Tensors tensors;
};
Alone alone(const Plan& whole, const std::string& function, const Tensors& of_whole);

// Relative L2 error of each gradient against the token recurrence in float64.
using Errors = std::map<std::string, double>;
Errors errors_of(const Tensors& found, const std::map<std::string, Values>& expected);
// The same for inputs of seed `seed`.
Errors errors_of(const Plan& plan, const Case& c, std::uint64_t seed, const InterpOptions& options = {});

std::string table_row(const Errors& errors);  // "dq 2.89 dk ..." in thousandths
double largest(const Errors& errors);

double seconds_since_start();  // of the test program, for what a test prints

}  // namespace gdr::test
