#include "plans.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "config/registry.hpp"
#include "core/hash.hpp"
#include "emit/emit.hpp"
#include "plan/planner.hpp"

namespace gdr::host {

const Plan& shipped_plan(const std::string& arch, const std::string& strategy) {
  static std::map<std::pair<std::string, std::string>, Plan> plans;
  const auto known = plans.find({arch, strategy});
  if (known != plans.end()) return known->second;
  PlanRequest request;
  request.arch = load_arch(arch);
  request.shape = load_shape("qwen3_next");
  request.budget = load_budget("default");
  request.strategy = strategy;
  return plans.emplace(std::pair(arch, strategy), make_plan(request).plan).first->second;
}

const Kernel& kernel_of(const Plan& plan, const std::string& function) {
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.function == function; });
  if (found == plan.kernels.end()) throw std::runtime_error("the plan has no kernel " + function);
  return *found;
}

std::string host_text(const Plan& plan, const Kernel& kernel) { return emit_kernel(plan, kernel, Primitives::host); }

std::string text_hash(const std::string& text) { return hash_hex(text); }

}  // namespace gdr::host
