// A warp's part of a matrix product: its rows and columns of d, cut where a mask changes.
#include <algorithm>

#include "core/error.hpp"
#include "interp/program.hpp"
#include "interp/tensors.hpp"

namespace gdr::interp {
namespace {

constexpr std::size_t kGroupCols = 16;

bool above_diagonal(int row, int col) { return col / kBlock > row / kBlock; }

struct Product {
  const CompiledOp& op;
  const View &d, &a, &b;

  bool masked_d(int m, int n) const {
    return op.op->mask_d == Mask::lower && above_diagonal(d.tile_row(m, n), d.tile_col(m, n));
  }
  bool masked_a(int m, int l) const {
    return op.op->mask_a == Mask::lower && above_diagonal(a.tile_row(m, l), a.tile_col(m, l));
  }
  bool masked_b(int l, int n) const {
    return op.op->mask_b == Mask::lower && above_diagonal(b.tile_row(l, n), b.tile_col(l, n));
  }
  // Rows (columns) with equal keys meet the same masks.
  std::pair<int, int> row_key(int m) const {
    return {d.tile_row(m, 0) / kBlock, (a.transposed ? a.tile_col(m, 0) : a.tile_row(m, 0)) / kBlock};
  }
  std::pair<int, int> col_key(int n) const {
    return {d.tile_col(0, n) / kBlock, (b.transposed ? b.tile_row(0, n) : b.tile_col(0, n)) / kBlock};
  }

  std::vector<Range> contraction_of(int m, int n) const {
    std::vector<Range> ranges;
    for (int l = 0; l < op.contraction; ++l) {
      if (masked_a(m, l) || masked_b(l, n)) continue;
      if (!ranges.empty() && ranges.back().end == l) {
        ++ranges.back().end;
      } else {
        ranges.push_back({l, l + 1});
      }
    }
    return ranges;
  }
};

MmaShare share_of(const Product& product, const std::vector<int>& rows, const std::vector<int>& cols) {
  MmaShare share;
  if (rows.empty() || cols.empty()) return share;
  share.row_begin = rows.front();
  share.row_end = rows.back() + 1;
  for (const int col : cols) {
    if (share.groups.empty() || share.groups.back().cols.size() == kGroupCols ||
        product.col_key(share.groups.back().cols.back()) != product.col_key(col))
      share.groups.emplace_back();
    share.groups.back().cols.push_back(col);
  }
  for (MmaGroup& group : share.groups) {
    const int n = group.cols.front();
    for (int begin = share.row_begin; begin < share.row_end;) {
      int end = begin + 1;
      while (end < share.row_end && product.row_key(end) == product.row_key(begin)) ++end;
      if (product.masked_d(begin, n)) {
        for (int m = begin; m < end; ++m)
          for (const int col : group.cols) share.zeroed.push_back({m, col, 1});
      } else {
        group.tasks.push_back({begin, end, product.contraction_of(begin, n)});
      }
      begin = end;
    }
  }
  return share;
}

// A fragment of a in registers comes from the warp that uses it.
void check_owner_of_a(const Kernel& kernel, const Product& product, std::size_t warp, const MmaShare& share) {
  const Tile& tile = *product.a.tile->tile;
  for (const MmaGroup& group : share.groups)
    for (const MmaTask& task : group.tasks)
      for (int m = task.row_begin; m < task.row_end; ++m)
        for (int l = 0; l < product.op.contraction; ++l) {
          const int row = product.a.tile_row(m, l), col = product.a.tile_col(m, l);
          if (!product.masked_a(m, l) && warp_of(tile, row, col) != static_cast<int>(warp))
            malformed(kernel, *product.op.op,
                      fmt::format("warp {} needs element ({}, {}) of register tile {}, which warp {} owns", warp, row,
                                  col, tile.name, warp_of(tile, row, col)));
        }
}

// Blocks that a lower16 tile does not store may be met only under a mask.
void check_stored(const Kernel& kernel, const CompiledOp& op, const View& view, Mask mask) {
  if (view.tile->tile->smem.lower16 && mask == Mask::none &&
      view.tile->at(view.operand->rows.begin, view.operand->cols.end - 1) < 0)
    malformed(kernel, *op.op,
              fmt::format("{} stores no blocks above its diagonal, but the operand has no mask", view.operand->name));
}

}  // namespace

void share_out_mma(const Kernel& kernel, CompiledOp& op) {
  for (std::size_t view = 0; view < op.views.size(); ++view)
    if (op.views[view].tile == nullptr) malformed(kernel, *op.op, "its operands must be tiles");
  if (op.views.size() < 3) malformed(kernel, *op.op, "it needs d, a and b");
  const View &d = op.views[0], &a = op.views[1], &b = op.views[2];
  if (d.tile->tile->space != Space::reg || d.transposed || !d.writes() || b.tile->tile->space != Space::smem ||
      !a.reads() || !b.reads())
    malformed(kernel, *op.op, "d must be registers that it writes, b shared memory that it reads");
  op.contraction = a.cols();
  op.contraction_begin = a.transposed ? a.operand->rows.begin : a.operand->cols.begin;
  if (a.rows() != d.rows() || b.cols() != d.cols() || b.rows() != op.contraction)
    malformed(kernel, *op.op,
              fmt::format("[{}, {}] times [{}, {}] does not give [{}, {}]", a.rows(), a.cols(), b.rows(), b.cols(),
                          d.rows(), d.cols()));
  if (op.op->slices <= 0 || op.contraction % op.op->slices != 0)
    malformed(kernel, *op.op,
              fmt::format("its contraction of {} is not {} equal slices", op.contraction, op.op->slices));
  check_stored(kernel, op, a, op.op->mask_a);
  check_stored(kernel, op, b, op.op->mask_b);

  const Product product{op, d, a, b};
  const Tile& tile = *d.tile->tile;
  const int warps = kernel.roles[static_cast<std::size_t>(op.role)].warps;
  for (int warp = 0; warp < warps; ++warp) {
    std::vector<int> rows, cols;
    const int grid_row = warp / tile.reg.grid_cols, first_col = warp % tile.reg.grid_cols * tile.reg.deal_cols;
    for (int m = 0; m < d.rows(); ++m)
      if (warp_of(tile, d.tile_row(m, 0), first_col) == warp) rows.push_back(m);
    const int first_row = grid_row * (tile.rows / tile.reg.grid_rows);
    for (int n = 0; n < d.cols(); ++n)
      if (first_row < tile.rows && warp_of(tile, first_row, d.tile_col(0, n)) == warp) cols.push_back(n);
    op.mma.push_back(share_of(product, rows, cols));
    if (a.tile->tile->space == Space::reg)
      check_owner_of_a(kernel, product, static_cast<std::size_t>(warp), op.mma.back());
  }
}

}  // namespace gdr::interp
