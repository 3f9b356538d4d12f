#include "cli/plan_arguments.hpp"

#include <fmt/format.h>

#include <chrono>
#include <ostream>

#include "cli/output.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

double clock_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void add_plan_arguments(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--shape", arguments.shape, "Shape: the name of a shipped config, or a file")
      ->capture_default_str();
  command.add_option("--budget", arguments.budget, "Budget: the name of a shipped config, a file, or bytes")
      ->capture_default_str();
  command.add_option("--ops", arguments.ops, "Directions: fwd, bwd")->delimiter(',')->capture_default_str();
  std::string strategies;
  for (const std::string_view name : strategy_names())
    strategies += fmt::format("{}{}", strategies.empty() ? "" : ", ", name);
  command.add_option("--strategy", arguments.strategy, "Strategy: " + strategies)->capture_default_str();
}

PlanRequest plan_request(const PlanArguments& arguments, const std::string& arch) {
  for (const std::string& op : arguments.ops) {
    if (op == "fwd")
      fail(ErrorKind::unsupported, "GDR-L02", "--ops {}: forward kernels are not planned by this version. Use bwd.",
           op);
    if (op != "bwd") fail(ErrorKind::config, "GDR-L03", "--ops: '{}' is not known; allowed are fwd, bwd.", op);
  }
  return {.arch = load_arch(arch),
          .shape = load_shape(arguments.shape),
          .budget = load_budget(arguments.budget),
          .strategy = arguments.strategy,
          .clock_us = clock_us};
}

void add_output_arguments(CLI::App& command, OutputArguments& arguments, const std::vector<std::string>& formats) {
  command.add_option("--format", arguments.format, "Form of the result")
      ->check(CLI::IsMember(formats))
      ->capture_default_str();
  command.add_option("-o,--output", arguments.file, "Write the result to this file");
}

void deliver(const OutputArguments& arguments, const std::string& text, std::ostream& out) {
  if (arguments.file.empty()) {
    out << text;
  } else {
    write_file(arguments.file, text);
  }
}

}  // namespace gdr
