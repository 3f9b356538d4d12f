#include "plan/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr {
namespace {

// A kernel that is built in one way only.
KernelSlot only_way(const char* function, KernelCandidate candidate) {
  Family family;
  family.candidates.push_back(std::move(candidate));
  return {function, {family}};
}

KernelSlot prepare(const Problem& problem, int chunk, bool pg) {
  PrepareOptions options;
  options.chunk = chunk;
  options.warps = std::max(1, std::min(4, chunk / 16));
  options.pg = pg;
  return only_way("prepare",
                  {fmt::format("prepare c{}, {} warps", chunk, options.warps), 1,
                   [=](const std::vector<TensorSpec>& tensors) { return build_prepare(problem, options, tensors); }});
}

KernelSlot state_pass(const Problem& problem, int chunk, const char* function,
                      Kernel (*build)(const Problem&, const StateOptions&, const std::vector<TensorSpec>&)) {
  KernelSlot slot{function, {}};
  for (const int slice : {16, 32, 64}) {
    if (problem.head_dim_v % slice != 0) continue;
    Family family;
    for (const int stages : {1, 2, 3}) {
      StateOptions options;
      options.chunk = chunk;
      options.v_slice_cols = slice;
      options.stages = stages;
      family.candidates.push_back(
          {fmt::format("{} c{}, {} columns of V a block, {} stages", function, chunk, slice, stages), 1,
           [=](const std::vector<TensorSpec>& tensors) { return build(problem, options, tensors); }});
    }
    slot.families.push_back(std::move(family));
  }
  return slot;
}

// Parts of the state tiles and how many of each have a slot.
struct StateResidency {
  int split, h, ds;
  bool republish;
};
constexpr StateResidency kResidencies[] = {{1, 1, 1, false}, {1, 1, 1, true},  {2, 1, 2, false},
                                           {2, 1, 1, false}, {4, 2, 2, false}, {4, 1, 1, false}};

// Warps of the roles. The first is for targets that move registers between warpgroups and so wants whole ones; the
// second gives 512 threads 128 registers each; a chunk of 16 rows has one 16x16 block for `pairs` to own.
struct RoleWarps {
  int state, keys, pairs, loader;
};
constexpr RoleWarps kRoleWarps[] = {{8, 4, 4, 4}, {8, 4, 2, 2}, {8, 4, 1, 3}};

std::string label(const FusedOptions& o) {
  const std::string state =
      o.state_split == 1
          ? fmt::format("state tiles whole{}", o.republish ? ", dS published twice" : "")
          : fmt::format("state in {} parts (resident: h {}, dS {})", o.state_split, o.h_resident, o.ds_resident);
  return fmt::format("fused c{}: {}, v {}, {}{}{}, {} warps", o.chunk, state, o.v_in_smem ? "in smem" : "to registers",
                     o.stages == 1 ? "single-buffered" : "q k do double-buffered", o.h_early ? ", h early" : "",
                     o.solve_first ? ", E before dV" : "",
                     o.state_warps + o.keys_warps + o.pairs_warps + o.loader_warps);
}

Family fused_family(const Problem& problem, FusedOptions o) {
  Family family;
  for (const StateResidency& residency : kResidencies)
    for (const int stages : {2, 1})
      for (const bool h_early : {true, false}) {
        o.state_split = residency.split;
        o.h_resident = residency.h;
        o.ds_resident = residency.ds;
        o.republish = residency.republish;
        o.h_early = h_early;
        o.stages = stages;
        if (!bwd_fused_refusal(problem, o).empty()) continue;
        family.candidates.push_back({label(o), o.state_split, [=](const std::vector<TensorSpec>& tensors) {
                                       return build_bwd_fused(problem, o, tensors);
                                     }});
      }
  return family;
}

KernelSlot fused(const Problem& problem, int chunk) {
  KernelSlot slot{"bwd_fused", {}};
  for (const RoleWarps& warps : kRoleWarps)
    for (const bool solve_first : {false, true}) {
      for (const bool v_in_smem : {true, false}) {
        FusedOptions o;
        o.chunk = chunk;
        o.v_in_smem = v_in_smem;
        o.solve_first = solve_first;
        o.state_warps = std::min(warps.state, problem.head_dim_k / 16);
        o.keys_warps = warps.keys;
        o.pairs_warps = warps.pairs;
        o.loader_warps = warps.loader;
        Family family = fused_family(problem, o);
        if (family.candidates.empty()) continue;
        slot.families.push_back(std::move(family));
        // Computing E before dV saves fragments but reads h twice; fewer warps for `pairs` and the loader are slower.
        slot.families.back().is_fallback = solve_first || warps.pairs != kRoleWarps[0].pairs;
      }
    }
  return slot;
}

KernelSlot gradients(const Problem& problem, int chunk) {
  KernelSlot slot{"gradients", {}};
  for (const int warps : {16, 8, 4, 2})
    for (const bool v_in_smem : {true, false}) {
      Family family;
      for (const int slice : {32, 64, 128})
        for (const int resident : {1, 2}) {
          GradientsOptions o;
          o.chunk = chunk;
          o.v_slice_cols = slice;
          o.resident = resident;
          o.v_in_smem = v_in_smem;
          o.warps = warps;
          if (!gradients_refusal(problem, o).empty()) continue;
          family.candidates.push_back(
              {fmt::format("gradients c{}: V in slices of {}, {} resident, v {}, {} warps", chunk, slice, resident,
                           v_in_smem ? "in smem" : "to registers", warps + o.loader_warps),
               1, [=](const std::vector<TensorSpec>& tensors) { return build_gradients(problem, o, tensors); }});
        }
      if (!family.candidates.empty()) slot.families.push_back(std::move(family));
    }
  return slot;
}

KernelSlot group_sum(const Problem& problem, int chunk) {
  GroupSumOptions options;
  options.chunk = chunk;
  options.warps = std::min(4, chunk / 16);
  return only_way("group_sum", {fmt::format("group_sum c{}", chunk), 1, [=](const std::vector<TensorSpec>& tensors) {
                                  return build_group_sum(problem, options, tensors);
                                }});
}

std::vector<KernelSlot> fused_kernels(const Problem& problem, int chunk) {
  std::vector<KernelSlot> slots = {prepare(problem, chunk, false),
                                   state_pass(problem, chunk, "state_fwd", build_state_fwd), fused(problem, chunk)};
  if (problem.group > 1) slots.push_back(group_sum(problem, chunk));
  return slots;
}

std::vector<KernelSlot> chunk_parallel_kernels(const Problem& problem, int chunk) {
  return {prepare(problem, chunk, true), state_pass(problem, chunk, "state_fwd", build_state_fwd),
          state_pass(problem, chunk, "state_bwd", build_state_bwd), gradients(problem, chunk)};
}

}  // namespace

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {{"fused",
                                             [](const Problem& problem, int chunk) {
                                               TensorTable table{problem, chunk};
                                               table.partial_sums = problem.group > 1;
                                               return table;
                                             },
                                             fused_kernels},
                                            {"chunk_parallel",
                                             [](const Problem& problem, int chunk) {
                                               TensorTable table{problem, chunk};
                                               table.stored_gradients = true;
                                               return table;
                                             },
                                             chunk_parallel_kernels}};
  return all;
}

}  // namespace gdr
