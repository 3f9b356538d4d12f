// The Schedule: what a kernel is. A kernel is a set of roles (groups of warps), each an ordered list of operations on
// named tiles; a Plan is a list of kernels in launch order over a table of tensors, with every decision filled in.
// Builders write dataflow only (no offset, no barrier); the passes of src/plan fill in the rest. Everything that
// src/emit, src/interp and src/verify do is decided by these fields and nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"

namespace gdr {

// ---------------------------------------------------------------------------------------------------- tensors

enum class TensorKind { input, output, workspace };

// How a block finds its tile in a tensor.
//   token     [T_total, heads, cols]                tile row i is token chunk_begin + i; rows >= n (valid) do not exist
//   chunk     [num_chunks, heads, rows, cols]       one tile per chunk (chunks counted over all sequences in order)
//   sequence  [num_sequences, heads, rows, cols]    one tile per sequence (states)
enum class TensorIndex { token, chunk, sequence };

enum class HeadAxis { k_head, v_head };

// Element order inside a chunk tile in global memory. `rows`: row-major. `lower16`: only the 16x16 blocks on or below
// the diagonal, block after block (row of blocks by row of blocks), each row-major. `fragment`: private to the kernels
// of one plan, 16 bytes a lane; the interpreter may use row-major for it since nothing else reads it.
enum class GlobalOrder { rows, lower16, fragment };

struct TensorSpec {
  std::string name;
  TensorKind kind = TensorKind::input;
  TensorIndex index = TensorIndex::token;
  HeadAxis heads = HeadAxis::v_head;
  int rows = 0;  // of one tile; the chunk for token tensors
  int cols = 0;
  DType dtype = DType::bf16;
  GlobalOrder order = GlobalOrder::rows;
  bool optional = false;  // may be absent at run time: reads give zeros, writes are dropped

  bool operator==(const TensorSpec&) const = default;
};

// ------------------------------------------------------------------------------------------------------ tiles

enum class Space { smem, reg };

// One address function for shared memory, see tile_byte() in layout.hpp.
struct SmemLayout {
  int panel_cols = 0;  // columns of one panel; a row of a panel is contiguous: pitch = panel_cols * element size,
                       // rounded up to 16 bytes
  int xor_mask = 0;    // 16-byte unit u of row r lies at unit u ^ ((r >> xor_shift) & xor_mask)
  int xor_shift = 0;
  bool lower16 = false;  // only the 16x16 blocks on or below the diagonal, each a panel of 16 rows

  bool operator==(const SmemLayout&) const = default;
};

enum class RegKind { acc, a };  // fp32 accumulator fragments; bf16/fp16 A-operand fragments

// A register tile is dealt to the warps of one role: warp w sits at grid row w / grid_cols, grid column w % grid_cols.
// Rows are split into grid_rows equal runs; columns are dealt to grid columns cyclically in blocks of deal_cols, so
// that a warp owns an equal share of every part of a tile that is split along its columns.
struct RegLayout {
  RegKind kind = RegKind::acc;
  int grid_rows = 1;
  int grid_cols = 1;
  int deal_cols = 0;

  bool operator==(const RegLayout&) const = default;
};

struct Tile {
  std::string name;
  Space space = Space::smem;
  int rows = 0;
  int cols = 0;
  DType dtype = DType::bf16;
  // Shared memory only. A tile of `parts` equal runs of rows of which `resident` have a slot: part p lives in slot
  // p % resident. `stages`: iteration i uses copy i % stages. Its bytes are stages * resident * part bytes.
  // A vector is a tile of one or more rows by `cols`; several rows are partial sums, read as their sum in row order.
  int parts = 1;
  int resident = 1;
  int stages = 1;
  SmemLayout smem;
  int offset_bytes = -1;  // decided by pack
  // Registers only.
  std::string role;
  RegLayout reg;

  bool operator==(const Tile&) const = default;
};

// -------------------------------------------------------------------------------------------------- operations

// A rectangle [begin, end) of rows or columns, in coordinates of the whole (logical) tile.
struct Range {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

enum class Access { read, write, accumulate };  // accumulate reads and writes
enum class Proxy { generic, async };            // async: bulk and tensor copies (cp.async is generic)

struct Operand {
  std::string name;        // of a tile of the kernel or, if
  bool is_tensor = false;  // this is set, of a tensor of the plan (k is the name of both a tile and a tensor)
  Access access = Access::read;
  Range rows, cols;         // of the tile; inside one part where the tile is split
  int part = 0;             // which part of a split tile (0 when it is not split)
  bool transposed = false;  // the operation sees the transpose of the rectangle
  Proxy proxy = Proxy::generic;
  // Tensors only.
  int head_index = 0;     // v-head k_head * group + head_index, where the grid runs over k-heads
  bool v_sliced = false;  // columns are offset by v_slice * cols.size()

  bool operator==(const Operand&) const = default;
};

// Operand order by kind; `dst` first. Semantics (what src/interp executes) in short:
//   copy_in      dst smem, src tensor     asynchronous copy, lands at any time until an arrive `after_copies` fires;
//                                         rows dealt cyclically to the role's warps (row r: warp r % warps)
//   copy_out     dst tensor, src smem|reg cast to the tensor's dtype; smem rows dealt cyclically, reg tiles by owner
//   load         dst reg, src smem|tensor element by element (transposed: dst(i,j) = src(j,i)), cast
//   store        dst smem, src reg        cast (round to nearest even)
//   mma          d reg, a reg|smem, b smem [, scale vector]     d (+)= a b; fp32 accumulation, operands as stored;
//                                         scale: a(i,l) is multiplied by `scale_expr`(l) and rounded to its dtype;
//                                         products of fp32 tiles may leave out 2^-16 of each product (the emitted
//                                         kernels take each operand as the sum of two bf16)
//   map          dst reg|smem vector      elementwise `expr`
//   reduce       dst smem vector          sum of `expr` over a warp's share of the domain, one partial row per warp
//                                         (grid) column, row or warp: see ReduceAxis; accumulate: added to what that
//                                         partial row holds
//   scan         dst smem vector          `expr` with prefix/suffix/before sums, by warp 0 of the role alone
//   tri_inverse  dst smem, src smem fp32  inverses of unit lower 16x16 diagonal blocks, stored without the unit
//   diagonal relayout     dst reg, src reg         same elements, cast; equal warp grid is free arrive/wait  barrier
//   arrive: once per warp; wait: for the phase of iteration i - distance sync         barrier (named)          all
//   warps of the role arrive and wait fence        proxy fence of this warp's generic writes before async-proxy
//   accesses
enum class OpKind {
  copy_in,
  copy_out,
  load,
  store,
  mma,
  map,
  reduce,
  scan,
  tri_inverse,
  relayout,
  arrive,
  wait,
  sync,
  fence
};

enum class Mechanism { none, cp_async, bulk, tensor, plain };
enum class Where { all, row_valid };  // row_valid: rows >= n are zero-filled on the way in, dropped on the way out
// Triangular operands, in tile coordinates (before `transposed`): lower keeps column <= row, strict_lower column < row.
// For an operand read, whole 16x16 blocks above the diagonal are not touched (they count as zero); for mma's d, blocks
// above the diagonal are neither computed nor touched (they are zeroed when d is written, not accumulated).
enum class Mask { none, lower };
enum class ReduceAxis { none, cols, rows, all };  // cols: over columns, one value a row; rows: over rows; all: scalar

struct Op {
  std::string id;  // unique in its kernel, e.g. "d_from_state.p0"
  OpKind kind = OpKind::map;
  std::vector<Operand> operands;
  std::string expr;  // map, reduce, scan: the closed language of expr.hpp, e.g. "w[i,j] = v[i,j] - exp(gam[i])*u[i,j]"
  std::string scale_expr;  // mma: factor of a along the contraction index l, e.g. "scale*exp(gam[l])"
  ReduceAxis axis = ReduceAxis::none;
  Mechanism mechanism = Mechanism::none;
  Where where = Where::all;
  Mask mask_d = Mask::none, mask_a = Mask::none, mask_b = Mask::none;  // mma (mask_d also for map on triangular tiles)
  int slices = 1;    // mma: the contraction in `slices` equal runs; other kinds: 1
  std::string step;  // formula of the specification, e.g. "3: D1 = er (K dS)"
  // arrive, wait, sync
  std::string barrier;
  int distance = 0;           // wait: phase of iteration i - distance; iterations before the first count as done
  bool after_copies = false;  // arrive: fires when all earlier copy_in of this warp have landed

  bool operator==(const Op&) const = default;
};

// A stretch of an op in a role's list: slices [begin, end).
struct Step {
  int op = 0;  // index into Kernel::ops
  int slice_begin = 0;
  int slice_end = 1;
  bool operator==(const Step&) const = default;
};

struct Role {
  std::string name;
  int warps = 0;
  int registers = 0;           // per thread, decided by `registers`
  std::vector<Step> prologue;  // once per block, before the loop; registers and tensors only
  std::vector<Step> body;      // once per iteration
  std::vector<Step> epilogue;  // once per block, after the loop; registers and tensors only
  bool operator==(const Role&) const = default;
};

enum class BarrierKind { mbarrier, named };

// mbarrier: phase of iteration i is kept in copy i % stages; it completes after `arrivals` arrivals (one a warp).
// named: a hardware barrier of one role; `arrivals` is its thread count.
struct Barrier {
  std::string name;  // by event: k_arrived, h_free
  BarrierKind kind = BarrierKind::mbarrier;
  int stages = 1;
  int arrivals = 0;
  int id = -1;      // named: hardware id 1..15
  std::string why;  // which hazards it orders, in words; required when set by hand
  bool operator==(const Barrier&) const = default;
};

// ------------------------------------------------------------------------------------------------------ kernels

enum class GridAxis { sequence, v_head, k_head, chunk, v_slice };
// once: the body runs once (the block's chunk is a grid axis). Otherwise it runs over the chunks of the sequence,
// 0 times if the sequence is empty.
enum class LoopKind { once, chunks_ascending, chunks_descending };

struct Kernel {
  std::string name;      // e.g. gdr_bwd_fused_bf16_k128v128_c32_s2__sm_120
  std::string function;  // what it computes: prepare, state_fwd, state_bwd, bwd_fused, gradients, group_sum
  std::vector<GridAxis> grid;
  LoopKind loop = LoopKind::once;
  int v_slice_cols = 0;  // width of a slice, where v_slice is a grid axis
  std::vector<Tile> tiles;
  std::vector<Op> ops;  // in an order in which running them one by one gives the right result
  std::vector<Role> roles;
  std::vector<Barrier> barriers;
  int barrier_offset_bytes = -1;  // mbarriers lie here, 8 bytes each
  int smem_bytes = 0;             // tiles and barriers
  int blocks_per_sm = 1;
  // Registers a thread starts with. With setmaxnreg, roles give some back or take more; without, all keep these.
  int launch_registers = 0;
  bool setmaxnreg = false;
  bool operator==(const Kernel&) const = default;

  int threads() const;
  const Tile& tile(const std::string& name) const;  // throws Error (internal) if absent
  const Tile* find_tile(const std::string& name) const;
  const Role& role_of(int op) const;  // the role whose lists hold the op
};

// What is computed for which shape class: everything that shapes a kernel's text (T, B, N and head counts do not).
struct Problem {
  int head_dim_k = 128;
  int head_dim_v = 128;
  int group = 1;  // v-heads per k-head; only its being 1 matters where sums over the group go through partial tiles
  DType dtype = DType::bf16;        // q, k, v, do and their gradients
  DType gate_dtype = DType::fp32;   // g, beta and their gradients
  DType state_dtype = DType::fp32;  // initial and final state and their gradients
  bool operator==(const Problem&) const = default;
};

// What the axes of a grid run over at run time.
struct GridSizes {
  std::int64_t sequences = 0;
  std::int64_t chunks = 0;  // of all sequences
  std::int64_t k_heads = 0;
  std::int64_t v_heads = 0;
};

struct Plan {
  int schema_version = 1;
  std::string arch;      // name of the arch config
  std::string strategy;  // fused, chunk_parallel
  Problem problem;
  int chunk = 0;
  int state_split = 1;
  int smem_limit_bytes = 0;  // what one block may have under the budget
  std::vector<TensorSpec> tensors;
  std::vector<Kernel> kernels;  // in launch order
  bool operator==(const Plan&) const = default;

  const TensorSpec& tensor(const std::string& name) const;  // throws Error (internal) if absent
  const TensorSpec* find_tensor(const std::string& name) const;
  // The tensors that a kernel touches, in the order of `tensors`: that of its arguments.
  std::vector<const TensorSpec*> tensors_of(const Kernel& kernel) const;
  // The blocks of a launch of a kernel.
  std::int64_t num_blocks(const Kernel& kernel, const GridSizes& sizes) const;
};

}  // namespace gdr
