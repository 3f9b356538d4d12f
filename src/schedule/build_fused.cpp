#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "schedule/builder.hpp"
#include "schedule/builders.hpp"

namespace gdr {
namespace {

using enum KernelBuilder::Section;

// The kernel in the order of the specification's step table; each function below adds one stretch of it.
class FusedBackward {
 public:
  FusedBackward(const Problem& problem, const FusedOptions& options, const std::vector<Tensor>& tensors)
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
    build_.role("loader", o_.loader_warps);
    build_.role("state", o_.state_warps);
    build_.role("keys", o_.keys_warps);
    build_.role("pairs", o_.pairs_warps);
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
    const WarpGrid values = grid_for(c(), v(), o_.state_warps), keys = grid_for(c(), k(), o_.keys_warps, o_.state_split),
                   pairs = grid_for(c(), c(), o_.pairs_warps), state{o_.state_warps, 1};
    build_.vec("gam", c(), 1, o_.stages);
    build_.vec("be", c(), 1, o_.stages);
    build_.vec("qdq", c(), keys.cols);
    build_.vec("dvu", c(), values.cols);
    build_.vec("ed", c(), values.cols);
    build_.vec("edv", c(), values.cols);
    build_.vec("cs", 1, o_.state_warps);
    for (const char* name : {"xrow", "yrow"}) build_.vec(name, c(), pairs.cols);
    for (const char* name : {"xcol", "ycol", "ecol", "mcol"}) build_.vec(name, c(), pairs.rows);
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
    const auto rows = Where::row_valid;
    build_.copy_in("loader", "k", "k_tokens", "k of the chunk", rows);
    build_.copy_in("loader", "q", "q", "q of the chunk", rows);
  }
