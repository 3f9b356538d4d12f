#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "schedule/builder.hpp"
#include "schedule/builders.hpp"
#include "schedule/pair_formulas.hpp"

namespace gdr {
namespace {

// One chunk of one k-head. V-head after v-head of its group, slice after slice of V; what a slice leaves is added up in
// registers: dQ and dK over everything, F = dO E^T and Y = dV E^T over the slices of a v-head, the scaled dP and dKK
// over the group, so that the products with Q and K that close the chunk (step 12) are done once.
class Gradients {
 public:
  Gradients(const Problem& problem, const GradientsOptions& options, const std::vector<TensorSpec>& tensors)
      : p_(problem),
        o_(options),
        values_(grid_for(o_.chunk, o_.v_slice_cols, o_.warps)),
        keys_(grid_for(o_.chunk, p_.head_dim_k, o_.warps)),
        pairs_(grid_for(o_.chunk, o_.chunk, o_.warps)),
        state_(grid_for(p_.head_dim_k, o_.v_slice_cols, o_.warps)),
        build_("gradients", {GridAxis::chunk, GridAxis::k_head}, LoopKind::once, tensors) {}

  Kernel build() && {
    build_.role("loader", o_.loader_warps);
    build_.role("compute", o_.warps);
    tiles();
    build_.copy_in("loader", "k", "k", "k", Where::row_valid);
    load_head(0);
    for (int n = 0; n < o_.resident; ++n) load_slice(n);
    load_values(0);
    build_.copy_in("loader", "q", "q", "q", Where::row_valid);
    for (int head = 0; head < p_.group; ++head) {
      for (int slice = 0; slice < num_slices(); ++slice) {
        values(head, slice);
        keys(head, slice);
        load_values(head * num_slices() + slice + 1);
        load_slice(head * num_slices() + slice + o_.resident);
      }
      load_head(head + 1);
      pairs(head);
      gates(head);
    }
    key_gradient_from_pairs();
    return std::move(build_).finish();
  }

 private:
  int c() const { return o_.chunk; }
  int num_slices() const { return p_.head_dim_v / o_.v_slice_cols; }
  bool sums_heads() const { return p_.group > 1; }

  // A view of one slice of a token or chunk tensor.
  View sliced(const char* tensor, int head, int slice) const {
    return View(tensor).cols(slice * o_.v_slice_cols, (slice + 1) * o_.v_slice_cols).head(head);
  }
  // The slot of a streamed tile that holds this slice.
  View slot(const char* name, int head, int slice) const {
    return View(name).part((head * num_slices() + slice) % o_.resident);
  }
  // Two heads take turns in the gate vectors, so that the next one's can be fetched early.
  static std::string gate(const char* name, int head) { return fmt::format("{}{}", name, head % 2); }
  // `text` with the vectors of this head: gam and be become gam0, be0 or gam1, be1.
  static std::string with_gates(const std::string& text, int head) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '[' && (result.ends_with("gam") || result.ends_with("be")))
        result.push_back(head % 2 == 0 ? '0' : '1');
      result.push_back(text[at]);
    }
    return result;
  }

  void tiles() {
    const DType t = p_.dtype;
    const KernelBuilder::Smem ring{.parts = o_.resident, .resident = o_.resident}, lower{.lower16 = true};
    build_.smem("k", c(), p_.head_dim_k, t);
    build_.smem("q", c(), p_.head_dim_k, t);
    build_.smem("h", o_.resident * p_.head_dim_k, o_.v_slice_cols, t, ring);
    build_.smem("ds", o_.resident * p_.head_dim_k, o_.v_slice_cols, t, ring);
    build_.smem("do", o_.resident * c(), o_.v_slice_cols, t, ring);
    if (o_.v_in_smem) build_.smem("v", c(), o_.v_slice_cols, t);
    for (const char* name : {"pg", "a", "dp", "dkk"}) build_.smem(name, c(), c(), t, lower);
    for (const char* name : {"bd", "dvb", "w", "e"}) build_.smem(name, c(), o_.v_slice_cols, t);
    for (int head = 0; head < std::min(p_.group, 2); ++head)
      for (const char* name : {"gam", "be"}) build_.vec(gate(name, head), c());
    build_.vec("qdq", c(), keys_.cols);
    for (const char* name : {"dvu", "ed", "edv"}) build_.vec(name, c(), values_.cols);
    build_.vec("cs", 1, o_.warps);
    build_.vec("xrow", c(), pairs_.cols);
    for (const char* name : {"xcol", "tcol"}) build_.vec(name, c(), pairs_.rows);
    for (const char* name : {"dgv", "dbv"}) build_.vec(name, c());

    for (const char* name : {"dQ", "dK", "T"}) build_.acc("compute", name, c(), p_.head_dim_k, keys_);
    for (const char* name : {"d", "d1", "u"}) build_.acc("compute", name, c(), o_.v_slice_cols, values_);
    build_.frag("compute", "vr", c(), o_.v_slice_cols, t, values_);
    for (const char* name : {"hr", "dsr"}) build_.frag("compute", name, p_.head_dim_k, o_.v_slice_cols, t, state_);
    for (const char* name : {"F", "Y", "P", "M"}) build_.acc("compute", name, c(), c(), pairs_);
    if (sums_heads())
      for (const char* name : {"dP", "dKK"}) build_.acc("compute", name, c(), c(), pairs_);
  }

  void load_head(int head) {
    if (head == p_.group) return;
    build_.copy_in("loader", gate("gam", head), View("gamma_chunk").head(head), "F1: gamma", Where::all);
    build_.copy_in("loader", gate("be", head), View("beta_chunk").head(head), "beta", Where::all);
    build_.copy_in("loader", "pg", View("pg_chunk").head(head), "F7: bf16(Pg)", Where::all);
    build_.copy_in("loader", "a", View("a_chunk").head(head), "F3: bf16(A' - I)", Where::all);
  }

  // `n` counts the slices of all heads.
  void load_slice(int n) {
    const int head = n / num_slices(), slice = n % num_slices();
    if (head >= p_.group) return;
    const auto load = [&](const char* tile, const char* tensor, Where where) {
      build_.copy_in("loader", slot(tile, head, slice), sliced(tensor, head, slice), tensor, where);
    };
    load("ds", "ds_chunk", Where::all);
    load("h", "h_chunk", Where::all);
    load("do", "do", Where::row_valid);
  }

  // v has one slot only: it is read early in a slice, so the next one's has time to arrive.
  void load_values(int n) {
    const int head = n / num_slices(), slice = n % num_slices();
    if (o_.v_in_smem && head < p_.group)
      build_.copy_in("loader", "v", sliced("v", head, slice), "7: V", Where::row_valid);
  }

  void map(const std::string& expr, int head, const char* step) { build_.map("compute", with_gates(expr, head), step); }
  void map(const formulas::Formula& formula, int head) { map(formula.expr, head, formula.step); }
  void sum(ReduceAxis axis, const char* expr, int head, const char* domain, const char* step, bool accumulate = false) {
    build_.reduce("compute", axis, with_gates(expr, head), domain, step, accumulate);
  }
  Op& mma(const char* d, const View& a, const View& b, const char* step, bool accumulate) {
    return build_.mma("compute", d, a, b, step, accumulate);
  }

  // dV and E of one slice, in registers d and u and, rounded, in dvb and e. dV is computed as in state_bwd, from the
  // same operands: its unrounded value is wanted in dbeta and dg.
  void values(int head, int slice) {
    const bool more = slice > 0;
    const View h = slot("h", head, slice), ds = slot("ds", head, slice), d_out = slot("do", head, slice);
    if (!o_.v_in_smem) build_.load("compute", "vr", sliced("v", head, slice).global(), "7: V", Where::row_valid);
    mma("d", "k", ds, "3: K dS", false);
    map("d[i,j] = exp(gam[C-1]-gam[i])*d[i,j]", head, "3: D1 = er (K dS)");
    map("d1[i,j] = d[i,j]", head, "3: D1");
    mma("u", "k", h, "5: U = K S0", false);
    mma("d", View("pg").t(), d_out, "3: D = D1 + Pg^T dO", true);
    map("d[i,j] = be[i]*d[i,j]", head, "3: beta D");
    build_.store("compute", "bd", "d", "3: bf16(beta D)");
    mma("d", View("a").t(), "bd", "4: dV = beta D + (A'-I)^T (beta D)", true);
    build_.store("compute", "dvb", "d", "4: bf16(dV)");
    sum(ReduceAxis::cols, "dvu[i] = -exp(gam[i])*d[i,j]*u[i,j]", head, "d", "7: -eg dV.U", more);
    if (o_.v_in_smem) build_.load("compute", "vr", "v", "7: V");
    map("u[i,j] = vr[i,j] - exp(gam[i])*u[i,j]", head, "7: W = V - eg U");
    build_.store("compute", "w", "u", "7: bf16(W)");
    mma("u", "a", "w", "8: E = W + (A'-I) W", true);
    build_.store("compute", "e", "u", "8: bf16(E)");
    build_.copy_out("compute", sliced("dv", head, slice), "dvb", "4: dv", Where::row_valid);
    sum(ReduceAxis::cols, "ed[i] = u[i,j]*d1[i,j]", head, "u", "8: E.D1", more);
    sum(ReduceAxis::cols, "edv[i] = u[i,j]*d[i,j]", head, "u", "8: dV.E", more);
  }

  // What one slice adds to dQ, dK, F, Y and <dS, S0>.
  void keys(int head, int slice) {
    const bool more = slice > 0, add = head > 0 || more;
    const View h = slot("h", head, slice), ds = slot("ds", head, slice), d_out = slot("do", head, slice);
    mma("T", d_out, h.t(), "6: dO S0^T", false);
    map("T[i,j] = scale*exp(gam[i])*T[i,j]", head, "6: dQ1 = s eg (dO S0^T)");
    sum(ReduceAxis::cols, "qdq[i] = q[i,j]*T[i,j]", head, "T", "6: q.dQ1", more);
    map(add ? "dQ[i,j] = dQ[i,j] + T[i,j]" : "dQ[i,j] = T[i,j]", head, "6: dQ += dQ1");
    mma("T", "dvb", h.t(), "6: dV S0^T", false);
    map(add ? "dK[i,j] = dK[i,j] - exp(gam[i])*T[i,j]" : "dK[i,j] = -exp(gam[i])*T[i,j]", head,
        "6: dK += -eg (dV S0^T)");
    build_.load("compute", "hr", h, "6: S0");
    build_.load("compute", "dsr", ds, "6: dS");
    sum(ReduceAxis::all, "cs[0] = dsr[i,j]*hr[i,j]", head, "dsr", "6: <dS, S0>", more);
    mma("F", d_out, View("e").t(), "9: dO E^T", more).mask_d = Mask::lower;
    mma("Y", "dvb", View("e").t(), "10: dV E^T", more).mask_d = Mask::lower;
    mma("T", "e", ds.t(), "11: E dS^T", false);
    map("dK[i,j] = dK[i,j] + exp(gam[C-1]-gam[i])*be[i]*T[i,j]", head, "11: dK += er beta (E dS^T)");
  }

  void pairs(int head) {
    mma("P", "q", View("k").t(), "1: P = Q K^T", false).mask_d = Mask::lower;
    map("P[i,j] = select(i>=j, scale*exp(gam[i]-gam[j])*P[i,j], 0)", head, "1: Pg = s P o G");
    map(formulas::kPairsOfP, head);
    scaled_pair("F", "dP", "i>=j", "scale*exp(gam[i]-gam[j])*be[j]*F[i,j]", head, "9: dP = s G o dPg");
    mma("M", "k", View("k").t(), "2: KK = K K^T", false).mask_d = Mask::lower;
    map("M[i,j] = select(i>j, exp(gam[i]-gam[j])*M[i,j], 0)", head, "2: M = strictLower(KK o G)");
    map(formulas::kLessPairsOfK, head);
    scaled_pair("Y", "dKK", "i>j", "-exp(gam[i]-gam[j])*be[j]*Y[i,j]", head, "10: dKK = -G o Y diag(beta)");
    const auto sum_pairs = [&](ReduceAxis axis, const formulas::Formula& formula) {
      sum(axis, formula.expr, head, "P", formula.step);
    };
    sum_pairs(ReduceAxis::cols, formulas::kRowsOfX);
    sum_pairs(ReduceAxis::rows, formulas::kColumnsOfX);
    sum_pairs(ReduceAxis::rows, formulas::kColumnsWithDiagonal);
  }

  // Scales a chunk x chunk tile under its triangle: in place, or into the sum over the group.
  void scaled_pair(const char* tile, const char* total, const char* triangle, const char* scaled, int head,
                   const char* step) {
    const char* target = sums_heads() ? total : tile;
    const std::string before = head > 0 ? fmt::format("{}[i,j] + ", target) : "";
    map(fmt::format("{}[i,j] = {}select({}, {}, 0)", target, before, triangle, scaled), head, step);
  }

  void gates(int head) {
    build_.scan("compute", with_gates(formulas::kGateGradient.expr, head), formulas::kGateGradient.step);
    map(formulas::kBetaGradient, head);
    build_.copy_out("compute", View("dg").head(head).t(), "dgv", "dg", Where::row_valid);
    build_.copy_out("compute", View("dbeta").head(head).t(), "dbv", "dbeta", Where::row_valid);
  }

  void key_gradient_from_pairs() {
    build_.store("compute", "dp", sums_heads() ? "dP" : "F", "9: bf16(dP)");
    build_.store("compute", "dkk", sums_heads() ? "dKK" : "Y", "10: bf16(dKK)");
    mma("dQ", "dp", "k", "12: dQ += dP K", true);
    mma("dK", View("dp").t(), "q", "12: dK += dP^T Q", true);
    mma("dK", "dkk", "k", "12: dK += dKK K", true);
    mma("dK", View("dkk").t(), "k", "12: dK += dKK^T K", true);
    build_.copy_out("compute", "dq", "dQ", "12: dq", Where::row_valid);
    build_.copy_out("compute", "dk", "dK", "12: dk", Where::row_valid);
  }

  const Problem& p_;
  const GradientsOptions& o_;
  const WarpGrid values_, keys_, pairs_, state_;
  KernelBuilder build_;
};

}  // namespace

std::string gradients_refusal(const Problem& problem, const GradientsOptions& o) {
  const int k = problem.head_dim_k;
  if (problem.head_dim_v % o.v_slice_cols != 0)
    return fmt::format("V {} is not whole slices of {}", problem.head_dim_v, o.v_slice_cols);
  constexpr int kRows = 16, kCols = 8;  // of the least fragment
  for (const auto& [rows, cols] :
       {std::pair(o.chunk, o.v_slice_cols), {o.chunk, k}, {o.chunk, o.chunk}, {k, o.v_slice_cols}}) {
    const WarpGrid grid = grid_for(rows, cols, o.warps);
    if (grid.rows * grid.cols != o.warps || rows % (grid.rows * kRows) != 0 || cols % (grid.cols * kCols) != 0)
      return fmt::format("{} warps would not own equal whole fragments of {} x {}", o.warps, rows, cols);
  }
  return "";
}

Kernel build_gradients(const Problem& problem, const GradientsOptions& options,
                       const std::vector<TensorSpec>& tensors) {
  internal_check(gradients_refusal(problem, options).empty() && options.resident >= 1,
                 "gradients: options that cannot be built");
  return Gradients(problem, options, tensors).build();
}

}  // namespace gdr
