// A kernel made ready to run: every operand resolved to cells of the block's memory, every warp's share of every op
// listed, every expression compiled, and for every read the writers whose values it may see.
//
// A block's memory is an array of cells: two bytes of shared memory each (an fp32 element takes two), then one for
// each register element.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "interp/launch.hpp"
#include "schedule/expr.hpp"
#include "schedule/model.hpp"

namespace gdr::interp {

constexpr int kCellBytes = 2;

enum class Section { prologue, body, epilogue };

struct TileCells {
  const Tile* tile = nullptr;
  std::vector<std::int32_t> cell;  // [rows * cols], of stage 0; -1 where a lower16 tile stores nothing
  int width = 1;                   // cells an element takes
  int stage_cells = 0;             // from one stage to the next

  std::int32_t at(int row, int col) const {
    return cell[static_cast<std::size_t>(row) * static_cast<std::size_t>(tile->cols) + static_cast<std::size_t>(col)];
  }
};

// A read in iteration `it` may see what `op` wrote in iteration it - lag, or in the prologue.
struct Writer {
  int op = 0;
  int lag = 0;
  bool in_prologue = false;
};

// An operand as the op sees it: element (i, j) of `rows()` x `cols()` is (rows.begin + i, cols.begin + j) of the tile
// or tensor, or with i and j exchanged where `transposed`.
struct View {
  const Operand* operand = nullptr;
  const TileCells* tile = nullptr;  // nullptr: a tensor
  int tensor = -1;                  // index in Plan::tensors
  bool transposed = false;
  std::vector<Writer> writers;  // for reads of tiles

  int rows() const { return (transposed ? operand->cols : operand->rows).size(); }
  int cols() const { return (transposed ? operand->rows : operand->cols).size(); }
  int tile_row(int i, int j) const { return operand->rows.begin + (transposed ? j : i); }
  int tile_col(int i, int j) const { return operand->cols.begin + (transposed ? i : j); }
  bool reads() const { return operand->access != Access::write; }
  bool writes() const { return operand->access != Access::read; }
};

// Elements (row, col), (row, col + 1) ... of an op's result or domain.
struct Run {
  int row = 0;
  int col = 0;
  int count = 0;
};

// An expression in the order of evaluation; arguments are indices of earlier nodes.
enum class Function { exp, select, prefix, suffix, before };
struct ExprNode {
  ExprKind kind = ExprKind::number;
  double number = 0;
  int view = -1;
  IndexKind index = IndexKind::ij;
  Function function = Function::exp;
  Condition condition = Condition::none;
  std::vector<int> arguments;
};
struct Expression {
  std::vector<ExprNode> nodes;  // the last is the value
  bool empty() const { return nodes.empty(); }
};

// What one warp does in one op.
// map, reduce and scan count rows and columns in the whole tile, as their expressions do; the others in their views.
struct Share {
  std::vector<Run> runs;    // elements it computes
  std::vector<Run> zeroed;  // map with a mask: elements above the diagonal, set to zero
  int num_elems = 0;        // in `runs`
  int partial_row = 0;      // reduce: the row of the vector that takes its sums
};

// mma: up to 16 columns of d that lie in the same 16-blocks, and the rows and contraction ranges that meet there.
struct MmaTask {
  int row_begin = 0, row_end = 0;
  std::vector<Range> contraction;  // what the masks leave
};
struct MmaGroup {
  std::vector<int> cols;
  std::vector<MmaTask> tasks;
};
struct MmaShare {
  int row_begin = 0, row_end = 0;
  std::vector<MmaGroup> groups;
  std::vector<Run> zeroed;  // blocks of d above the diagonal
};

struct CompiledOp {
  const Op* op = nullptr;
  int role = -1;
  Section section = Section::body;
  std::vector<View> views;    // one for each operand
  Expression expression;      // map, reduce, scan; mma: the scale factor
  bool along_vector = false;  // i, j and l all are the column of a vector (map on a vector, scan, scale factors)
  bool sums_rows = false;     // copy_out of partial rows to one row
  std::vector<Share> shares;  // one for each warp of the role
  std::vector<MmaShare> mma;
  int contraction = 0;        // mma: its length
  int contraction_begin = 0;  // and where in a's tile it begins: what l counts from
  int barrier = -1;
};

struct Program {
  const Plan* plan = nullptr;
  const Kernel* kernel = nullptr;
  const Launch* launch = nullptr;
  int smem_cells = 0;
  int num_cells = 0;
  std::map<std::string, TileCells> tiles;  // nodes stay where they are: views point at them
  std::vector<CompiledOp> ops;             // as Kernel::ops

  Program() = default;
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;
  Program(const Program&) = delete;
};

// Throws Error (check_failed): GDR-I02 where the kernel is not complete or its ops do not fit together, GDR-I12 where
// an operand reaches outside its tile, its part, its tensor or the block's shared memory.
Program compile(const Plan& plan, const Kernel& kernel, const Launch& launch);

// Steps of compile. They take the program as far as the ones before have filled it in.
TileCells place_tile(const Kernel& kernel, const Tile& tile, int first_register_cell);  // cells.cpp
int warp_of(const Tile& tile, int row, int col);  // of its role, owner of a register element
void resolve_views(const Program& program, CompiledOp& op);
void compile_expression(const Kernel& kernel, CompiledOp& op);  // shares.cpp
void share_out(const Kernel& kernel, CompiledOp& op);
void share_out_mma(const Kernel& kernel, CompiledOp& op);  // mma_shares.cpp
void find_writers(Program& program);                       // writers.cpp

[[noreturn]] void malformed(const Kernel& kernel, const Op& op, const std::string& what);  // GDR-I02

}  // namespace gdr::interp
