#include "plans.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "../kernels/reference.hpp"
#include "config/registry.hpp"

namespace gdr::test {

PlanRequest request(const Asked& asked) {
  PlanRequest request;
  request.arch = load_arch(asked.arch);
  request.shape = load_shape(asked.shape);
  request.budget = load_budget(asked.budget_bytes > 0 ? std::to_string(asked.budget_bytes) : "default");
  request.strategy = asked.strategy;
  return request;
}

PlanResult planned(const Asked& asked) { return make_plan(request(asked)); }

std::string chosen(const PlanResult& result, const std::string& function) {
  const std::string prefix = (function == "bwd_fused" ? "fused" : function) + " ";
  for (const CandidateFacts& candidate : result.facts.candidates)
    if (candidate.verdict == Verdict::chosen && candidate.name.starts_with(prefix)) return candidate.name;
  return "";
}

double predicted_us(const PlanResult& result) {
  double sum = 0;
  for (const KernelFacts& kernel : result.facts.kernels) sum += kernel.predicted_us;
  return sum;
}

const Kernel& kernel_of(const Plan& plan, const std::string& function) {
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.function == function; });
  REQUIRE_MESSAGE(found != plan.kernels.end(), "the plan has no kernel " << function);
  return *found;
}

Case for_plan(Case c, const Plan& plan) {
  c.chunk = plan.chunk;
  c.group = plan.problem.group;
  c.dim_k = plan.problem.head_dim_k;
  c.dim_v = plan.problem.head_dim_v;
  c.dtype = plan.problem.dtype;
  return c;
}

Tensors run_plan(const Plan& plan, const Case& c, const Tensors& inputs, const InterpOptions& options,
                 InterpResult* result) {
  Tensors tensors = inputs;
  tensors["dh0"];
  InterpResult ran = interpret(plan, c.launch(), tensors, options);
  if (result != nullptr) *result = std::move(ran);
  return tensors;
}

Alone alone(const Plan& whole, const std::string& function, const Tensors& of_whole) {
  Alone result{whole, of_whole};
  result.plan.kernels = {kernel_of(whole, function)};
  for (TensorSpec& tensor : result.plan.tensors) {
    bool is_read = false, is_written = false;
    for (const Op& op : result.plan.kernels[0].ops)
      for (const Operand& operand : op.operands)
        if (operand.is_tensor && operand.name == tensor.name)
          (operand.access == Access::read ? is_read : is_written) = true;
    if (tensor.kind == TensorKind::workspace && is_read) tensor.kind = TensorKind::input;
    if (tensor.kind == TensorKind::output && !is_written) tensor.kind = TensorKind::workspace;
  }
  return result;
}

Errors errors_of(const Tensors& found, const std::map<std::string, Values>& expected) {
  Errors errors;
  for (const std::string& name : kGradients) errors[name] = relative_error(values(found.at(name)), expected.at(name));
  return errors;
}

Errors errors_of(const Plan& plan, const Case& c, std::uint64_t seed, const InterpOptions& options) {
  const Tensors inputs = make_inputs(c, seed);
  return errors_of(run_plan(plan, c, inputs, options), reference(c, inputs));
}

std::string table_row(const Errors& errors) {
  std::string row;
  for (const std::string& name : kGradients)
    row += fmt::format("{}{} {:.2f}", row.empty() ? "" : "  ", name, 1e3 * errors.at(name));
  return row;
}

double largest(const Errors& errors) {
  double most = 0;
  for (const auto& [name, error] : errors) most = std::max(most, error);
  return most;
}

double seconds_since_start() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace gdr::test
