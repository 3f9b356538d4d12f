#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/error.hpp"
#include "schedule/builder.hpp"
#include "schedule/builders.hpp"
#include "schedule/pair_formulas.hpp"

namespace gdr {
namespace {

using enum KernelBuilder::Section;

constexpr int kBlock = 16;     // rows of a fragment
constexpr int kLeastCols = 8;  // columns of a fragment

// The kernel in the order of the specification's step table; each function below adds one stretch of it.
class FusedBackward {
 public:
  FusedBackward(const Problem& problem, const FusedOptions& options, const std::vector<TensorSpec>& tensors)
      : p_(problem),
        o_(options),
        build_("bwd_fused", {GridAxis::sequence, GridAxis::v_head}, LoopKind::chunks_descending, tensors) {}

  Kernel build() && {
    roles();
    tiles();
    build_.section(prologue);
    build_.load("state", "dS", "dht", "dS of the last chunk is dht");
    build_.section(body);
    load_chunk();
    pair_products();
    if (o_.solve_first) {
      solve_for_e();
      value_gradient();
      key_gradient_from_state_again();
    } else {
      value_gradient();
      solve_for_e();
    }
    value_dots();
    pair_gradients();
    key_gradient_from_next_state();
    key_gradient_from_pairs();
    gate_gradients();
    update_state_gradient();
    build_.section(epilogue);
    build_.copy_out("state", "dh0", "dS", "dS before the first chunk is dh0", Where::all);
    return std::move(build_).finish();
  }

 private:
  int c() const { return o_.chunk; }
  int k() const { return p_.head_dim_k; }
  int v() const { return p_.head_dim_v; }
  int part_cols() const { return k() / o_.state_split; }
  // The columns of a [chunk, K] tile that belong to part p of the state.
  View state_cols(const char* name, int p) const { return View(name).cols(p * part_cols(), (p + 1) * part_cols()); }

  void roles() {
    build_.role("state", o_.state_warps);
    build_.role("keys", o_.keys_warps);
    build_.role("pairs", o_.pairs_warps);
    build_.role("loader", o_.loader_warps);
  }

  void tiles() {
    const DType t = p_.dtype;
    const KernelBuilder::Smem staged{.stages = o_.stages}, lower{.lower16 = true};
    build_.smem("q", c(), k(), t, staged);
    build_.smem("k", c(), k(), t, staged);
    build_.smem("do", c(), v(), t, staged);
    if (o_.v_in_smem) build_.smem("v", c(), v(), t);
    build_.smem("a", c(), c(), t, lower);
    build_.smem("h", k(), v(), t, {.parts = o_.state_split, .resident = o_.h_resident});
    build_.smem("ds", k(), v(), t, {.parts = o_.state_split, .resident = o_.ds_resident});
    for (const char* name : {"pg", "dp", "dkk"}) build_.smem(name, c(), c(), t, lower);
    for (const char* name : {"bd", "dvb", "w", "e", "eb"}) build_.smem(name, c(), v(), t);
    const WarpGrid values = grid_for(c(), v(), o_.state_warps),
                   keys = grid_for(c(), k(), o_.keys_warps, o_.state_split), pairs = grid_for(c(), c(), o_.pairs_warps),
                   state{o_.state_warps, 1};
    build_.vec("gam", c(), 1, o_.stages);
    build_.vec("be", c(), 1, o_.stages);
    build_.vec("qdq", c(), keys.cols);
    build_.vec("dvu", c(), o_.solve_first ? keys.cols : values.cols);
    build_.vec("ed", c(), values.cols);
    build_.vec("edv", c(), values.cols);
    build_.vec("cs", 1, o_.state_warps);
    build_.vec("xrow", c(), pairs.cols);
    for (const char* name : {"xcol", "tcol"}) build_.vec(name, c(), pairs.rows);
    build_.vec("dgv", c());
    build_.vec("dbv", c());

    build_.acc("state", "dS", k(), v(), state);
    build_.acc("state", "d", c(), v(), values);
    build_.acc("state", "u", c(), v(), values);
    if (!o_.solve_first) build_.acc("state", "d1", c(), v(), values);
    if (!o_.v_in_smem) build_.frag("state", "vr", c(), v(), t, values);
    build_.acc("keys", "dQ", c(), k(), keys);
    build_.acc("keys", "dK", c(), k(), keys);
    for (const char* name : {"P", "M", "F", "Y"}) build_.acc("pairs", name, c(), c(), pairs);
  }

  void load_chunk() {
    if (o_.h_early)
      for (int p = 0; p < o_.h_resident; ++p) load_h(p);
    build_.copy_in("loader", "k", "k", "k", Where::row_valid);
    build_.copy_in("loader", "q", "q", "q", Where::row_valid);
    build_.copy_in("loader", "gam", "gamma_chunk", "F1: gamma", Where::all);
    build_.copy_in("loader", "be", "beta_chunk", "beta", Where::all);
    build_.copy_in("loader", "do", "do", "do", Where::row_valid);
    build_.copy_in("loader", "a", "a_chunk", "F3: A' - I", Where::all);
  }

  void load_h(int p) {
    build_.copy_in("loader", View("h").part(p), View("h_chunk").part_of(p, o_.state_split), "S0", Where::all);
  }

  void pair_products() {
    build_.mma("pairs", "P", "q", View("k").t(), "1: P = Q K^T", false).mask_d = Mask::lower;
    build_.map("pairs", "P[i,j] = select(i>=j, scale*exp(gam[i]-gam[j])*P[i,j], 0)", "1: Pg = s P o G");
    build_.store("pairs", "pg", "P", "1: Pg");
    build_.mma("pairs", "M", "k", View("k").t(), "2: KK = K K^T", false).mask_d = Mask::lower;
    build_.map("pairs", "M[i,j] = select(i>j, exp(gam[i]-gam[j])*M[i,j], 0)", "2: M = strictLower(KK o G)");
  }

  void publish(int p, const char* step) {
    const int rows = k() / o_.state_split;
    build_.store("state", View("ds").part(p), View("dS").rows(p * rows, (p + 1) * rows), step);
  }

  void value_gradient() {
    const bool all_resident = o_.ds_resident == o_.state_split;
    if (all_resident)
      for (int p = 0; p < o_.state_split; ++p) publish(p, "14: dSb = bf16(dS)");
    for (int p = 0; p < o_.state_split; ++p) {
      if (!all_resident) publish(p, "14: dSb = bf16(dS)");
      build_.mma("state", "d", state_cols("k", p), View("ds").part(p), "3: K dS", p > 0);
    }
    build_.map("state", "d[i,j] = exp(gam[C-1]-gam[i])*d[i,j]", "3: D1 = er (K dS)");
    if (o_.solve_first)
      build_.reduce("state", ReduceAxis::cols, "ed[i] = u[i,j]*d[i,j]", "u", "8: E.D1");
    else
      build_.map("state", "d1[i,j] = d[i,j]", "3: D1");
    build_.mma("state", "d", View("pg").t(), "do", "3: D = D1 + Pg^T dO", true);
    build_.map("state", "d[i,j] = be[i]*d[i,j]", "3: beta D");
    build_.store("state", "bd", "d", "3: bf16(beta D)");
    build_.mma("state", "d", View("a").t(), "bd", "4: dV = beta D + (A'-I)^T (beta D)", true);
    build_.store("state", "dvb", "d", "4: bf16(dV)");
    build_.copy_out("state", "dv", "dvb", "4: dv", Where::row_valid);
  }

  void solve_for_e() {
    if (!o_.v_in_smem) build_.load("state", "vr", View("v").global(), "7: v", Where::row_valid);
    for (int p = 0; p < o_.state_split; ++p) {
      if (!o_.h_early || p >= o_.h_resident) load_h(p);
      const int rows = k() / o_.state_split;
      build_.mma("state", "u", state_cols("k", p), View("h").part(p), "5: U = K S0", p > 0);
      build_.reduce("state", ReduceAxis::all, "cs[0] = dS[i,j]*h[i,j]", View("dS").rows(p * rows, (p + 1) * rows),
                    "6: <dS, S0>");
      build_.mma("keys", state_cols("dQ", p), "do", View("h").part(p).t(), "6: dO S0^T", false);
      if (!o_.solve_first) value_to_key(p);
    }
    build_.map("keys", "dQ[i,j] = scale*exp(gam[i])*dQ[i,j]", "6: dQ1 = s eg (dO S0^T)");
    build_.reduce("keys", ReduceAxis::cols, "qdq[i] = q[i,j]*dQ[i,j]", "dQ", "6: q.dQ1");
    if (!o_.solve_first) {
      build_.map("keys", "dK[i,j] = -exp(gam[i])*dK[i,j]", "6: dK2 = -eg (dV S0^T)");
      build_.reduce("state", ReduceAxis::cols, "dvu[i] = -exp(gam[i])*d[i,j]*u[i,j]", "d", "7: -eg dV.U");
    }
    if (o_.v_in_smem) build_.copy_in("loader", "v", "v", "7: v", Where::row_valid);
    build_.map("state", o_.v_in_smem ? "u[i,j] = v[i,j] - exp(gam[i])*u[i,j]" : "u[i,j] = vr[i,j] - exp(gam[i])*u[i,j]",
               "7: W = V - eg U");
    build_.store("state", "w", "u", "7: bf16(W)");
    build_.mma("state", "u", "a", "w", "8: E = W + (A'-I) W", true);
    build_.store("state", "e", "u", "8: bf16(E)");
  }

  void value_to_key(int p) {
    build_.mma("keys", state_cols("dK", p), "dvb", View("h").part(p).t(), "6: dV S0^T", false);
  }

  // With E first, dV is known only after h went by: its parts pass again, last part first. The row sum of dK2 then
  // stands for -eg dV.U (they are equal: both are -eg dV_i^T S0^T k_i), since U is gone.
  void key_gradient_from_state_again() {
    for (int p = o_.state_split - 1; p >= 0; --p) {
      if (p < o_.state_split - o_.h_resident) load_h(p);
      value_to_key(p);
    }
    build_.map("keys", "dK[i,j] = -exp(gam[i])*dK[i,j]", "6: dK2 = -eg (dV S0^T)");
    build_.reduce("keys", ReduceAxis::cols, "dvu[i] = k[i,j]*dK[i,j]", "dK", "7: -eg dV.U = k.dK2");
  }

  void value_dots() {
    if (!o_.solve_first) build_.reduce("state", ReduceAxis::cols, "ed[i] = u[i,j]*d1[i,j]", "u", "8: E.D1");
    build_.reduce("state", ReduceAxis::cols, "edv[i] = u[i,j]*d[i,j]", "u", "8: dV.E");
    build_.map("state", "u[i,j] = exp(gam[C-1]-gam[i])*be[i]*u[i,j]", "11: er beta E");
    build_.store("state", "eb", "u", "11: bf16(er beta E)");
  }

  // What goes to `keys` comes before the sums.
  void pair_gradients() {
    build_.mma("pairs", "F", "do", View("e").t(), "9: dO E^T", false).mask_d = Mask::lower;
    map_pairs(formulas::kPairsOfP);
    build_.map("pairs", "F[i,j] = select(i>=j, scale*exp(gam[i]-gam[j])*be[j]*F[i,j], 0)", "9: dP = s G o dPg");
    build_.store("pairs", "dp", "F", "9: bf16(dP)");
    build_.mma("pairs", "Y", "dvb", View("e").t(), "10: Y = dV E^T", false).mask_d = Mask::lower;
    map_pairs(formulas::kLessPairsOfK);
    build_.map("pairs", "Y[i,j] = select(i>j, -exp(gam[i]-gam[j])*be[j]*Y[i,j], 0)", "10: dKK = -G o Y diag(beta)");
    build_.store("pairs", "dkk", "Y", "10: bf16(dKK)");
    const auto sum = [&](ReduceAxis axis, const formulas::Formula& formula) {
      build_.reduce("pairs", axis, formula.expr, "P", formula.step);
    };
    sum(ReduceAxis::cols, formulas::kRowsOfX);
    sum(ReduceAxis::rows, formulas::kColumnsOfX);
    sum(ReduceAxis::rows, formulas::kColumnsWithDiagonal);
  }

  void map_pairs(const formulas::Formula& formula) { build_.map("pairs", formula.expr, formula.step); }

  void key_gradient_from_next_state() {
    for (int p = o_.state_split - 1; p >= 0; --p) {
      if (o_.republish || p < o_.state_split - o_.ds_resident) publish(p, "11: dSb again");
      build_.mma("keys", state_cols("dK", p), "eb", View("ds").part(p).t(), "11: dK1 = (er beta E) dS^T", true);
    }
  }

  void key_gradient_from_pairs() {
    build_.mma("keys", "dQ", "dp", "k", "12: dQ += dP K", true);
    build_.mma("keys", "dK", View("dp").t(), "q", "12: dK += dP^T Q", true);
    build_.mma("keys", "dK", "dkk", "k", "12: dK += dKK K", true);
    build_.mma("keys", "dK", View("dkk").t(), "k", "12: dK += dKK^T K", true);
    const bool direct = p_.group == 1;
    build_.copy_out("keys", direct ? "dq" : "dq_head", "dQ", "12: dq", Where::row_valid);
    build_.copy_out("keys", direct ? "dk" : "dk_head", "dK", "12: dk", Where::row_valid);
  }

  void gate_gradients() {
    build_.scan("pairs", formulas::kGateGradient.expr, formulas::kGateGradient.step);
    map_pairs(formulas::kBetaGradient);
    build_.copy_out("pairs", View("dg").t(), "dgv", "dg", Where::row_valid);
    build_.copy_out("pairs", View("dbeta").t(), "dbv", "dbeta", Where::row_valid);
  }

  void update_state_gradient() {
    build_.map("state", "dS[i,j] = exp(gam[C-1])*dS[i,j]", "13: eL dS");
    build_.mma("state", "dS", View("q").t(), "do", "13: dS += (s eg Q)^T dO", true, "scale*exp(gam[l])");
    build_.mma("state", "dS", View("k").t(), "dvb", "13: dS += (-eg K)^T dV", true, "-exp(gam[l])");
  }

  const Problem& p_;
  const FusedOptions& o_;
  KernelBuilder build_;
};

}  // namespace

std::string bwd_fused_refusal(const Problem& problem, const FusedOptions& o) {
  const int k = problem.head_dim_k, v = problem.head_dim_v;
  const auto too_narrow = [](const WarpGrid& grid) {
    return grid.deal_cols < kLeastCols || grid.deal_cols % kLeastCols != 0;
  };
  if (o.chunk % kBlock != 0 || k % (kBlock * o.state_split) != 0 || v % kBlock != 0)
    return fmt::format("chunk {}, K / {} and V are whole blocks of {} only", o.chunk, o.state_split, kBlock);
  // A warp's rows of dS lie in one part, or its partial sum of <dS, S0> would be overwritten by the next part's.
  if (k % (kBlock * o.state_warps) != 0 || o.state_warps % o.state_split != 0)
    return fmt::format("{} warps of role state do not own equal whole blocks of {} rows of dS in {} parts",
                       o.state_warps, k, o.state_split);
  const std::pair<WarpGrid, int> grids[] = {{grid_for(o.chunk, v, o.state_warps), o.state_warps},
                                            {grid_for(o.chunk, k, o.keys_warps, o.state_split), o.keys_warps},
                                            {grid_for(o.chunk, o.chunk, o.pairs_warps), o.pairs_warps}};
  for (const auto& [grid, warps] : grids) {
    if (too_narrow(grid)) return fmt::format("a warp would own less than {} columns of a tile", kLeastCols);
    if (grid.rows * grid.cols != warps || o.chunk % (grid.rows * kBlock) != 0)
      return fmt::format("{} warps would not own equal whole blocks of a tile", warps);
  }
  return "";
}

Kernel build_bwd_fused(const Problem& problem, const FusedOptions& options, const std::vector<TensorSpec>& tensors) {
  internal_check(bwd_fused_refusal(problem, options).empty(), "bwd_fused: options that cannot be built");
  return FusedBackward(problem, options, tensors).build();
}

}  // namespace gdr
