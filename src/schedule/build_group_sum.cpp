#include "schedule/builder.hpp"
#include "schedule/builders.hpp"

namespace gdr {

Kernel build_group_sum(const Problem& problem, const GroupSumOptions& options, const std::vector<TensorSpec>& tensors) {
  KernelBuilder build("group_sum", {GridAxis::chunk, GridAxis::k_head}, LoopKind::once, tensors);
  build.role("adders", options.warps);
  const WarpGrid grid = grid_for(options.chunk, problem.head_dim_k, options.warps);
  build.acc("adders", "sum", options.chunk, problem.head_dim_k, grid);
  build.acc("adders", "term", options.chunk, problem.head_dim_k, grid);
  const auto add_up = [&](const char* heads, const char* total, const char* step) {
    build.load("adders", "sum", View(heads).head(0), step, Where::row_valid);
    for (int head = 1; head < problem.group; ++head) {
      build.load("adders", "term", View(heads).head(head), step, Where::row_valid);
      build.map("adders", "sum[i,j] = sum[i,j] + term[i,j]", step);
    }
    build.copy_out("adders", total, "sum", step, Where::row_valid);
  };
  add_up("dq_head", "dq", "12: dq of the k-head");
  add_up("dk_head", "dk", "12: dk of the k-head");
  return std::move(build).finish();
}

}  // namespace gdr
