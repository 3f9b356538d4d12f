#include "gpu/keys.hpp"

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "core/hash.hpp"

namespace gdr {

PlanRequest request_for(const PlanRequest& request, const CompileTarget& target) {
  PlanRequest adapted = request;
  for (const FeatureName& feature : feature_names())
    adapted.arch.features.*feature.field = request.arch.features.*feature.field && target.features.*feature.field;
  return adapted;
}

std::string request_key(const PlanRequest& request, const std::string& target) {
  const Arch& arch = request.arch;
  const Problem problem = problem_of(request.shape);
  std::string text = fmt::format("{} target {} strategy {} limit {} blocks {}", build_hash(), target, request.strategy,
                                 smem_limit_bytes(request.budget, arch), request.budget.blocks_per_sm);
  text += fmt::format(" problem {} {} {} {} {} {}", problem.head_dim_k, problem.head_dim_v, problem.group,
                      to_string(problem.dtype), to_string(problem.gate_dtype), to_string(problem.state_dtype));
  // An architecture may come from a user's file: every figure that planning may read.
  text += fmt::format(" arch {} {}.{} limits {} {} {} {} {} {} {} {} {}", arch.name, arch.compute_capability_major,
                      arch.compute_capability_minor, arch.smem_per_block_optin_bytes, arch.smem_per_sm_bytes,
                      arch.smem_reserved_per_block_bytes, arch.registers_per_sm, arch.max_registers_per_thread,
                      arch.register_allocation_unit, arch.max_threads_per_block, arch.max_threads_per_sm,
                      arch.max_blocks_per_sm);
  for (const FeatureName& feature : feature_names())
    text += fmt::format(" {} {}", feature.name, arch.features.*feature.field);
  const ArchRates& rates = arch.rates;
  text +=
      fmt::format(" rates {} {} {} {} {} {}", rates.num_sms, rates.sm_clock_mhz, rates.bf16_mma_flops_per_clock_per_sm,
                  rates.smem_bytes_per_clock_per_sm, rates.hbm_bytes_per_second, rates.l2_bytes);
  return hash_hex(text);
}

}  // namespace gdr
