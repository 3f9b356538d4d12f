// The arguments that say which plan is meant, and where a result goes: common to plan, verify, emit and compile.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>
#include <vector>

#include "plan/planner.hpp"

namespace gdr {

struct PlanArguments {
  std::string shape = "qwen3_next";
  std::string budget = "default";
  std::string strategy = "fused";
  std::vector<std::string> ops = {"bwd"};
};

// Adds --shape, --budget, --ops and --strategy.
void add_plan_arguments(CLI::App& command, PlanArguments& arguments);

// The request for an architecture (the name of a shipped config, or a file). Throws Error: config GDR-L03 (--ops),
// unsupported GDR-L02 (forward), those of loading the configs.
PlanRequest plan_request(const PlanArguments& arguments, const std::string& arch);

struct OutputArguments {
  std::string format = "table";
  std::string file;  // empty: standard output
};

// Adds --format and --output.
void add_output_arguments(CLI::App& command, OutputArguments& arguments, const std::vector<std::string>& formats);

void deliver(const OutputArguments& arguments, const std::string& text, std::ostream& out);

}  // namespace gdr
