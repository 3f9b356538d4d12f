#include "core/error.hpp"
#include "schedule/builder.hpp"
#include "schedule/builders.hpp"

namespace gdr {
namespace {

constexpr int kBlock = 16;  // rows of a triangle that tri_inverse inverts at once

class Prepare {
 public:
  Prepare(const Problem& problem, const PrepareOptions& options, const std::vector<TensorSpec>& tensors)
      : p_(problem),
        o_(options),
        grid_(grid_for(options.chunk, options.chunk, options.warps)),
        build_("prepare", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors) {}

  Kernel build() && {
    build_.role("loader", o_.loader_warps);
    build_.role("solver", o_.warps);
    tiles();
    load_chunk();
    gates();
    products();
    triangle();
    inverse();
    return std::move(build_).finish();
  }

 private:
  int c() const { return o_.chunk; }

  void tiles() {
    build_.smem("k", c(), p_.head_dim_k, p_.dtype);
    if (o_.pg) build_.smem("q", c(), p_.head_dim_k, p_.dtype);
    build_.vec("g", c());
    build_.vec("be", c());
    build_.vec("gam", c());
    build_.vec("eg", c());
    build_.vec("er", c());
    build_.smem("l", c(), c(), DType::fp32, {.lower16 = true});
    build_.smem("inv", c(), c(), DType::fp32, {.lower16 = true});
    build_.acc("solver", "M", c(), c(), grid_);
    if (o_.pg) build_.acc("solver", "P", c(), c(), grid_);
    if (c() > kBlock) {
      build_.smem("t", c() / 2, c() / 2, DType::fp32);
      // Columns in turn by eights, so that every level of merges is shared by all warps of its rows.
      build_.acc("solver", "T", c(), c() / 2, {grid_.rows, grid_.cols, 8});
    }
  }

  void load_chunk() {
    // One element a token: too narrow and too far apart for cp.async, and to be converted where gates are not fp32.
    build_.copy_in("loader", "g", View("g").t(), "g", Where::row_valid).mechanism = Mechanism::plain;
    build_.copy_in("loader", "be", View("beta").t(), "beta", Where::row_valid).mechanism = Mechanism::plain;
    build_.copy_in("loader", "k", "k", "k", Where::row_valid);
    if (o_.pg) build_.copy_in("loader", "q", "q", "q", Where::row_valid);
  }

  // g of rows that do not exist is 0, so gamma repeats the last valid value and their beta is 0.
  void gates() {
    build_.scan("solver", "gam[i] = prefix(select(-120 > g[i], -120, g[i]))", "F1: gamma, g clamped at -120");
    build_.copy_out("solver", "gamma_chunk", "gam", "F1: gamma", Where::all);
    build_.copy_out("solver", "beta_chunk", "be", "beta", Where::all);
    // For the state passes, whose warps would each need the exponentials of the whole chunk.
    build_.map("solver", "eg[i] = exp(gam[i])", "F1: eg");
    build_.map("solver", "er[i] = exp(gam[C-1]-gam[i])", "F1: er");
    build_.copy_out("solver", "eg_chunk", "eg", "F1: eg", Where::all);
    build_.copy_out("solver", "er_chunk", "er", "F1: er", Where::all);
  }

  // Both before the triangle is stored, so that it may lie where k and q lay.
  void products() {
    build_.mma("solver", "M", "k", View("k").t(), "F2: KK = K K^T", false).mask_d = Mask::lower;
    if (!o_.pg) return;
    build_.mma("solver", "P", "q", View("k").t(), "F7: P = Q K^T", false).mask_d = Mask::lower;
    build_.map("solver", "P[i,j] = select(i>=j, scale*exp(gam[i]-gam[j])*P[i,j], 0)", "F7: Pg = s P o G");
    build_.copy_out("solver", "pg_chunk", "P", "F7: bf16(Pg)", Where::all);
  }

  void triangle() {
    build_.map("solver", "M[i,j] = select(i>j, exp(gam[i]-gam[j])*be[j]*M[i,j], 0)",
               "F3: L = strictLower(KK o G) diag(beta)");
    build_.store("solver", "l", "M", "F3: L");
  }

  // Everything in fp32. The inverse is kept without its unit diagonal: A = I + X.
  void inverse() {
    build_.tri_inverse("solver", "inv", "l", "F3: (I + L)^-1 in blocks of 16");
    for (int width = kBlock; width < c(); width *= 2) merge(width);
    build_.copy_out("solver", "a_chunk", "inv", "F3: bf16(A' - I)", Where::all);
  }

  // Pairs of neighbouring diagonal blocks of `width` rows: A21 = -A22 (L21 A11) = -(T + X22 T), T = L21 + L21 X11.
  // The pairs go step by step together, so that their warps work side by side and meet once for all.
  void merge(int width) {
    const auto each_pair = [&](const auto& step) {
      for (int begin = 0; begin < c(); begin += 2 * width) step(begin, begin + width, begin + 2 * width);
    };
    const auto square = [](const char* tile, int rows, int cols, int size) {
      return View(tile).rows(rows, rows + size).cols(cols, cols + size);
    };
    const auto result = [&](int middle) { return square("T", middle, 0, width); };
    const auto scratch = [&](int begin) { return square("t", begin / 2, 0, width); };
    each_pair([&](int begin, int middle, int) {
      build_.load("solver", result(middle), square("l", middle, begin, width), "F3: merge, L21");
    });
    each_pair([&](int begin, int middle, int) {
      build_.mma("solver", result(middle), square("l", middle, begin, width), square("inv", begin, begin, width),
                 "F3: merge, T = L21 + L21 X11", true);
    });
    each_pair(
        [&](int begin, int middle, int) { build_.store("solver", scratch(begin), result(middle), "F3: merge, T"); });
    each_pair([&](int begin, int middle, int) {
      build_.mma("solver", result(middle), square("inv", middle, middle, width), scratch(begin), "F3: merge, T + X22 T",
                 true);
    });
    each_pair([&](int, int middle, int) {
      build_.map("solver", "T[i,j] = -T[i,j]", "F3: merge, A21 = -(T + X22 T)", result(middle));
    });
    each_pair([&](int begin, int middle, int) {
      build_.store("solver", square("inv", middle, begin, width), result(middle), "F3: merge, A21");
    });
  }

  const Problem& p_;
  const PrepareOptions& o_;
  const WarpGrid grid_;
  KernelBuilder build_;
};

}  // namespace

Kernel build_prepare(const Problem& problem, const PrepareOptions& options, const std::vector<TensorSpec>& tensors) {
  internal_check(options.warps <= options.chunk / kBlock * 2,
                 "prepare: a warp needs 8 of the 16 columns of the first merges");
  return Prepare(problem, options, tensors).build();
}

}  // namespace gdr
