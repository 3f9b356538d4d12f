#include "present/report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "schedule/json_text.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

using nlohmann::ordered_json;

// Enough for reading, and the same text on machines whose last bits differ.
double rounded(double value) { return std::round(value * 1000) / 1000; }

// A copy of `object` with `key` after the key `after`.
void insert_after(ordered_json& object, std::string_view after, const std::string& key, ordered_json value) {
  ordered_json result = ordered_json::object();
  for (auto item = object.begin(); item != object.end(); ++item) {
    result[item.key()] = std::move(*item);
    if (item.key() == after) result[key] = std::move(value);
  }
  object = std::move(result);
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::chosen:
      return "chosen";
    case Verdict::runner_up:
      return "runner_up";
    case Verdict::refused:
      return "refused";
  }
  return {};
}

void add_kernel_facts(ordered_json& kernel, const KernelFacts& facts) {
  if (!facts.kernel_key.empty()) insert_after(kernel, "function", "kernel_key", facts.kernel_key);
  ordered_json& smem = kernel["smem"];
  if (facts.direct_port_bytes) insert_after(smem, "headroom_bytes", "direct_port_bytes", *facts.direct_port_bytes);
  insert_after(smem, "headroom_bytes", "packing_is_optimal", facts.packing_is_optimal);
  insert_after(smem, "headroom_bytes", "lower_bound_bytes", facts.lower_bound_bytes);
  kernel["blocks"] = facts.blocks;
  kernel["flops"] = facts.flops;
  kernel["hbm_bytes"] = facts.hbm_bytes;
  kernel["l2_bytes"] = facts.l2_bytes;
  kernel["workspace_bytes"] = facts.workspace_bytes;
  kernel["floor_us"] = rounded(facts.floor_us);
  kernel["predicted_us"] = rounded(facts.predicted_us);
  kernel["cycles_per_iteration"] = rounded(facts.cycles_per_iteration);
}

ordered_json candidate_tree(const CandidateFacts& candidate) {
  return {{"name", candidate.name},
          {"verdict", verdict_text(candidate.verdict)},
          {"smem_bytes", candidate.smem_bytes},
          {"registers", candidate.registers},
          {"predicted_us", rounded(candidate.predicted_us)},
          {"reason", candidate.reason}};
}

}  // namespace

std::string report_json(const Plan& plan, const PlanFacts& facts, const ReportOptions& options) {
  internal_check(facts.kernels.size() == plan.kernels.size(), "facts of another plan");
  ordered_json tree = plan_to_tree(plan);
  if (!facts.request_key.empty()) insert_after(tree, "strategy", "request_key", facts.request_key);
  if (!facts.budget.empty()) insert_after(tree, "arch", "budget", facts.budget);
  if (!facts.shape.empty()) insert_after(tree, "arch", "shape", facts.shape);
  insert_after(tree, "problem", "workload",
               {{"tokens", facts.workload.tokens},
                {"sequences", facts.workload.sequences},
                {"k_heads", facts.workload.k_heads},
                {"v_heads", facts.workload.v_heads}});
  for (std::size_t i = 0; i < facts.kernels.size(); ++i) add_kernel_facts(tree["kernels"][i], facts.kernels[i]);
  if (options.explain) {
    tree["candidates"] = ordered_json::array();
    for (const CandidateFacts& candidate : facts.candidates) tree["candidates"].push_back(candidate_tree(candidate));
  }
  return json_text(tree);
}

}  // namespace gdr
