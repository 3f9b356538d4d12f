// The two recurrences over chunks. The state is kept transposed, rows are columns of V: every product contracts over
// chunk rows or columns of K, never over V, so a warp that owns 16 columns of V needs nothing from another warp.
#include "core/error.hpp"
#include "schedule/builder.hpp"
#include "schedule/builders.hpp"

namespace gdr {
namespace {

using enum KernelBuilder::Section;

constexpr int kRowsPerWarp = 16;

class StatePass {
 public:
  StatePass(const char* function, LoopKind loop, const Problem& problem, const StateOptions& options,
            const std::vector<TensorSpec>& tensors)
      : p_(problem),
        o_(options),
        grid_{options.v_slice_cols / kRowsPerWarp, 1},
        build_(function, {GridAxis::sequence, GridAxis::v_head, GridAxis::v_slice}, loop, tensors) {
    internal_check(o_.v_slice_cols % kRowsPerWarp == 0 && p_.head_dim_v % o_.v_slice_cols == 0,
                   "state pass: slices of V are equal and of whole warps");
    build_.v_slice(o_.v_slice_cols);
    build_.role("loader", o_.loader_warps);
    build_.role("cols", grid_.rows);
  }

  Kernel forward() && {
    staged("k", o_.chunk, p_.head_dim_k), staged("v", o_.chunk, o_.v_slice_cols), staged_lower("a"), gates();
    state_registers();
    fragments("vt");
    fragments("wb");
    fragments("eb");
    begin_with("h0", "S0 of the first chunk is h0");
    load("k", "k", Where::row_valid);
    load_gates();
    load("a", "a_chunk", Where::all);
    load("v", View("v").sliced(), Where::row_valid);

    publish("h_chunk", "F9: bf16(S0)");
    build_.mma("cols", "D", "Sb", View("k").t(), "F4: U^T = S0^T K^T", false);
    build_.load("cols", "vt", View("v").t(), "F5: V^T");
    build_.map("cols", "D[i,j] = vt[i,j] - eg[j]*D[i,j]", "F5: W = V - eg U");
    build_.relayout("cols", "wb", "D", "F5: bf16(W)");
    build_.mma("cols", "D", "wb", View("a").t(), "F6: E = W + (A'-I) W", true);
    build_.map("cols", "D[i,j] = er[j]*be[j]*D[i,j]", "F6: er beta E");
    build_.relayout("cols", "eb", "D", "F6: bf16(er beta E)");
    build_.map("cols", "S[i,j] = eg[C-1]*S[i,j]", "F9: eL S0");
    build_.mma("cols", "S", "eb", "k", "F9: S1 = eL S0 + K^T (er V')", true);
    if (o_.final_state) end_with("ht", "the state after the last chunk");
    return std::move(build_).finish();
  }

  Kernel backward() && {
    staged("k", o_.chunk, p_.head_dim_k), staged("q", o_.chunk, p_.head_dim_k), staged("do", o_.chunk, o_.v_slice_cols);
    staged_lower("a"), staged_lower("pg"), gates();
    state_registers();
    fragments("dot");
    fragments("bdb");
    fragments("dub");
    begin_with("dht", "dS of the last chunk is dht");
    load("k", "k", Where::row_valid);
    load_gates();
    load("pg", "pg_chunk", Where::all);
    load("do", View("do").sliced(), Where::row_valid);
    load("a", "a_chunk", Where::all);
    load("q", "q", Where::row_valid);

    publish("ds_chunk", "14: bf16(dS)");
    build_.mma("cols", "D", "Sb", View("k").t(), "3: (K dS)^T", false);
    build_.map("cols", "D[i,j] = er[j]*D[i,j]", "3: D1 = er (K dS)");
    build_.load("cols", "dot", View("do").t(), "3: dO^T");
    build_.mma("cols", "D", "dot", "pg", "3: D = D1 + Pg^T dO", true);
    build_.map("cols", "D[i,j] = be[j]*D[i,j]", "3: beta D");
    build_.relayout("cols", "bdb", "D", "3: bf16(beta D)");
    build_.mma("cols", "D", "bdb", "a", "4: dV = beta D + (A'-I)^T (beta D)", true);
    build_.map("cols", "D[i,j] = -eg[j]*D[i,j]", "13: -eg dV");
    build_.relayout("cols", "dub", "D", "13: bf16(-eg dV)");
    build_.map("cols", "S[i,j] = eg[C-1]*S[i,j]", "13: eL dS");
    build_.mma("cols", "S", "dot", "q", "13: dS += Q^T (s eg dO)", true, "scale*eg[l]");
    build_.mma("cols", "S", "dub", "k", "13: dS += K^T (-eg dV)", true);
    end_with("dh0", "dS before the first chunk is dh0");
    return std::move(build_).finish();
  }

 private:
  void staged(const char* name, int rows, int cols) { build_.smem(name, rows, cols, p_.dtype, {.stages = o_.stages}); }
  void staged_lower(const char* name) {
    build_.smem(name, o_.chunk, o_.chunk, p_.dtype, {.stages = o_.stages, .lower16 = true});
  }
  void gates() {
    for (const char* name : {"eg", "er", "be"}) build_.vec(name, o_.chunk, 1, o_.stages);
  }
  void state_registers() {
    build_.acc("cols", "S", o_.v_slice_cols, p_.head_dim_k, grid_);
    build_.frag("cols", "Sb", o_.v_slice_cols, p_.head_dim_k, p_.dtype, grid_);
    build_.acc("cols", "D", o_.v_slice_cols, o_.chunk, grid_);
  }
  void fragments(const char* name) { build_.frag("cols", name, o_.v_slice_cols, o_.chunk, p_.dtype, grid_); }

  void load(const char* name, const View& tensor, Where where) { build_.copy_in("loader", name, tensor, name, where); }
  void load_gates() {
    load("eg", "eg_chunk", Where::all);
    load("er", "er_chunk", Where::all);
    load("be", "beta_chunk", Where::all);
  }

  void begin_with(const char* tensor, const char* step) {
    build_.section(prologue);
    build_.load("cols", "S", View(tensor).t().sliced(), step);
    build_.section(body);
  }
  void publish(const char* tensor, const char* step) {
    build_.relayout("cols", "Sb", "S", step);
    build_.copy_out("cols", View(tensor).t().sliced(), "Sb", step, Where::all);
  }
  void end_with(const char* tensor, const char* step) {
    build_.section(epilogue);
    build_.copy_out("cols", View(tensor).t().sliced(), "S", step, Where::all);
  }

  const Problem& p_;
  const StateOptions& o_;
  const WarpGrid grid_;
  KernelBuilder build_;
};

}  // namespace

Kernel build_state_fwd(const Problem& problem, const StateOptions& options, const std::vector<TensorSpec>& tensors) {
  return StatePass("state_fwd", LoopKind::chunks_ascending, problem, options, tensors).forward();
}

Kernel build_state_bwd(const Problem& problem, const StateOptions& options, const std::vector<TensorSpec>& tensors) {
  return StatePass("state_bwd", LoopKind::chunks_descending, problem, options, tensors).backward();
}

}  // namespace gdr
