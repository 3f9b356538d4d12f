// The kernels that gdrjit knows, as dataflow: each function returns a Kernel without offsets, barriers or registers,
// which src/plan fills in. Mathematics and step numbers: docs/spec/ALGORITHM.md, scheme R ('right' form).
#pragma once

#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// Names of the tensors that the kernels of one call share, with their shapes for a chunk of `chunk` rows.
// `partial_sums`: dq and dk leave the backward kernel per v-head, in fp32, for group_sum.
struct TensorTable {
  Problem problem;
  int chunk = 0;
  bool partial_sums = false;
  bool stored_gradients = false;  // Pg and the state gradients are handed on to state_bwd and gradients
  bool final_state = false;       // ht, the state after the last chunk, is an output
};
std::vector<TensorSpec> backward_tensors(const TensorTable& table);

// prepare: per (chunk, v_head) the clamped running sum of g, beta as fp32, and A' - I from an fp32 inverse (spec F1 to
// F3). Rows past the end repeat the last gamma and have beta 0.
struct PrepareOptions {
  int chunk = 0;
  int warps = 4;  // at most chunk / 8
  int loader_warps = 1;
  bool pg = false;  // also Pg = s P o G (F7), for state_bwd and gradients
};
Kernel build_prepare(const Problem& problem, const PrepareOptions& options, const std::vector<TensorSpec>& tensors);

// state_fwd: the recurrence over the chunks of one (sequence, v_head, slice of V); writes the state at every chunk's
// start (spec F4 to F6, F9). A warp owns 16 columns of V; its state never leaves its registers.
struct StateOptions {
  int chunk = 0;
  int v_slice_cols = 32;
  int loader_warps = 4;
  int stages = 2;
  bool final_state = false;  // state_fwd: also write ht
};
Kernel build_state_fwd(const Problem& problem, const StateOptions& options, const std::vector<TensorSpec>& tensors);

// state_bwd: the reverse recurrence of the state's gradient; writes dS at every chunk's end and dh0 (steps 3, 4, 13).
// Its dV is an operand of the recurrence only: gradients, which needs it unrounded, computes it again and writes dv.
Kernel build_state_bwd(const Problem& problem, const StateOptions& options, const std::vector<TensorSpec>& tensors);

// bwd_fused: the whole backward of one (sequence, v_head), chunk after chunk in reverse: a loader and three consumers.
//   state  owns dS in registers: steps 3, 4, 5, 7, 8, 13, 14
//   keys   owns dQ and dK: steps 6, 11, 12
//   pairs  owns the chunk x chunk tiles and the gate gradients: steps 1, 2, 9, 10
struct FusedOptions {
  int chunk = 32;
  int state_split = 2;       // parts of the state tiles h and ds along K
  int h_resident = 1;        // parts of h that have a slot
  int ds_resident = 1;       // parts of bf16(dS) that have a slot; the others are published again for step 11
  bool republish = false;    // publish all parts again for step 11, so that ds need not live from step 3 to 11
  bool h_early = false;      // fetch the first resident parts of h at the start of the chunk
  bool v_in_smem = false;    // else v goes straight to registers
  bool solve_first = false;  // E (steps 5, 7, 8) before dV (3, 4): fewer registers, h passes twice
  int stages = 1;            // of q, k and do
  int state_warps = 8, keys_warps = 4, pairs_warps = 4, loader_warps = 4;
  bool operator==(const FusedOptions&) const = default;
};
// Why these options cannot be built, for people; empty if they can.
std::string bwd_fused_refusal(const Problem& problem, const FusedOptions& options);
Kernel build_bwd_fused(const Problem& problem, const FusedOptions& options, const std::vector<TensorSpec>& tensors);

// gradients: everything of a chunk but the recurrences, per (chunk, k_head), looping over the group's v-heads and over
// slices of V (steps 1 to 12), dq and dk summed over the group in accumulators.
struct GradientsOptions {
  int chunk = 0;
  int v_slice_cols = 32;
  int resident = 1;        // slices of h, dS and do that have a slot
  bool v_in_smem = false;  // else v goes straight to registers
  int loader_warps = 4;
  int warps = 8;
};
std::string gradients_refusal(const Problem& problem, const GradientsOptions& options);
Kernel build_gradients(const Problem& problem, const GradientsOptions& options, const std::vector<TensorSpec>& tensors);

// group_sum: dq and dk of a k-head as the sum of its v-heads' fp32 partial results, in v-head order.
struct GroupSumOptions {
  int chunk = 0;
  int warps = 4;
};
Kernel build_group_sum(const Problem& problem, const GroupSumOptions& options, const std::vector<TensorSpec>& tensors);

}  // namespace gdr
