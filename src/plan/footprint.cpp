#include "plan/footprint.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "schedule/expr.hpp"
#include "schedule/layout.hpp"

namespace gdr {
namespace {

Range shifted(Range range, int from, int to) { return {range.begin - from + to, range.end - from + to}; }

Range intersect(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

class Collector {
 public:
  // `elements`: what the op's expression reads.
  Collector(const Kernel& kernel, const Op& op, const std::vector<ElementUse>& elements, const Role& role, int warp)
      : kernel_(kernel), op_(op), elements_(elements), role_(role), warp_(warp) {}

  std::vector<RectAccess> run() && {
    switch (op_.kind) {
      case OpKind::copy_in:
        rows_in_turn(op_.operands[0]);
        break;
      case OpKind::copy_out:
        if (tile_of(op_.operands[1])->space == Space::smem) rows_in_turn(op_.operands[1]);
        break;
      case OpKind::load:
        follow(op_.operands[0], op_.operands[1]);
        break;
      case OpKind::store:
        follow(op_.operands[1], op_.operands[0]);
        break;
      case OpKind::mma:
        mma();
        break;
      case OpKind::map:
        map();
        break;
      case OpKind::reduce:
        reduce();
        break;
      case OpKind::scan:
        if (warp_ == 0)
          for (const Operand& operand : op_.operands) add(operand, operand.rows, operand.cols);
        break;
      case OpKind::tri_inverse:
        diagonal_blocks();
        break;
      case OpKind::relayout:
      case OpKind::arrive:
      case OpKind::wait:
      case OpKind::sync:
      case OpKind::fence:
        break;
    }
    return std::move(found_);
  }

 private:
  const Tile* tile_of(const Operand& operand) const {
    return operand.is_tensor ? nullptr : &kernel_.tile(operand.name);
  }

  void add(const Operand& operand, Range rows, Range cols) {
    const Tile* tile = tile_of(operand);
    if (!tile || tile->space != Space::smem || rows.size() <= 0 || cols.size() <= 0) return;
    found_.push_back({static_cast<int>(tile - kernel_.tiles.data()), rows, cols, operand.access != Access::write,
                      operand.access != Access::read});
  }

  void rows_in_turn(const Operand& operand) {
    for (int row = operand.rows.begin; row < operand.rows.end; ++row)
      if ((row - operand.rows.begin) % role_.warps == warp_) add(operand, {row, row + 1}, operand.cols);
  }

  // `other` takes the elements that this warp owns of the register operand, at the same place in its rectangle.
  void follow(const Operand& reg, const Operand& other) {
    const Tile& tile = *tile_of(reg);
    const Range rows = intersect(owned_rows(tile, warp_), reg.rows);
    for (const Range& run : owned_cols(tile, warp_)) {
      const Range cols = intersect(run, reg.cols);
      if (rows.size() <= 0 || cols.size() <= 0) continue;
      if (other.transposed)
        add(other, shifted(cols, reg.cols.begin, other.rows.begin), shifted(rows, reg.rows.begin, other.cols.begin));
      else
        add(other, shifted(rows, reg.rows.begin, other.rows.begin), shifted(cols, reg.cols.begin, other.cols.begin));
    }
  }

  void mma() {
    const Operand &d = op_.operands[0], &a = op_.operands[1], &b = op_.operands[2];
    const Tile& tile = *tile_of(d);
    const Range rows = intersect(owned_rows(tile, warp_), d.rows);
    if (rows.size() <= 0) return;
    bool works = false;
    for (const Range& run : owned_cols(tile, warp_)) {
      const Range cols = intersect(run, d.cols);
      if (cols.size() <= 0) continue;
      works = true;
      if (b.transposed)
        add(b, shifted(cols, d.cols.begin, b.rows.begin), b.cols);
      else
        add(b, b.rows, shifted(cols, d.cols.begin, b.cols.begin));
    }
    if (!works) return;
    if (a.transposed)
      add(a, a.rows, shifted(rows, d.rows.begin, a.cols.begin));
    else
      add(a, shifted(rows, d.rows.begin, a.rows.begin), a.cols);
    for (std::size_t i = 3; i < op_.operands.size(); ++i)
      add(op_.operands[i], op_.operands[i].rows, op_.operands[i].cols);
  }

  // Operands of an expression over the elements `rows` x `cols` that this warp works on.
  void expression(Range rows, Range cols) {
    for (const ElementUse& use : elements_)
      for (const Operand& operand : op_.operands) {
        if (operand.name != use.name || operand.access == Access::write) continue;
        Operand reading = operand;
        reading.access = Access::read;
        switch (use.index) {
          case IndexKind::ij:
            add(reading, rows, cols);
            break;
          case IndexKind::i:
            add(reading, reading.rows, rows);
            break;
          case IndexKind::j:
            add(reading, reading.rows, cols);
            break;
          case IndexKind::last:
            add(reading, reading.rows, {operand.cols.end - 1, operand.cols.end});
            break;
          case IndexKind::zero:
            add(reading, reading.rows, {0, 1});
            break;
          case IndexKind::l:
            break;
        }
      }
  }

  void map() {
    const Operand& dst = op_.operands[0];
    const Tile& tile = *tile_of(dst);
    if (tile.space == Space::smem) {  // a vector, 32 elements a warp in turn
      for (int begin = dst.cols.begin; begin < dst.cols.end; begin += 32)
        if ((begin - dst.cols.begin) / 32 % role_.warps == warp_) {
          const Range share = {begin, std::min(begin + 32, dst.cols.end)};
          add(dst, dst.rows, share);
          expression(share, share);
        }
      return;
    }
    const Range rows = intersect(owned_rows(tile, warp_), dst.rows);
    if (rows.size() <= 0) return;
    for (const Range& run : owned_cols(tile, warp_)) {
      const Range cols = intersect(run, dst.cols);
      if (cols.size() > 0) expression(rows, cols);
    }
  }

  void reduce() {
    const Operand &dst = op_.operands[0], &domain = op_.operands[1];
    const Tile& tile = *tile_of(domain);
    const Range rows = intersect(owned_rows(tile, warp_), domain.rows);
    if (rows.size() <= 0) return;
    const int grid_row = warp_ / tile.reg.grid_cols, grid_col = warp_ % tile.reg.grid_cols;
    bool works = false;
    for (const Range& run : owned_cols(tile, warp_)) {
      const Range cols = intersect(run, domain.cols);
      if (cols.size() <= 0) continue;
      works = true;
      expression(rows, cols);
      if (op_.axis == ReduceAxis::rows) add(dst, {grid_row, grid_row + 1}, cols);
    }
    if (!works) return;
    if (op_.axis == ReduceAxis::cols) add(dst, {grid_col, grid_col + 1}, rows);
    if (op_.axis == ReduceAxis::all) add(dst, {warp_, warp_ + 1}, {0, 1});
  }

  void diagonal_blocks() {
    constexpr int kBlock = 16;
    for (int b = 0; b * kBlock < op_.operands[0].rows.size(); ++b)
      if (b % role_.warps == warp_)
        for (const Operand& operand : op_.operands) {
          const auto block = [&](Range r) { return Range{r.begin + b * kBlock, r.begin + (b + 1) * kBlock}; };
          add(operand, block(operand.rows), block(operand.cols));
        }
  }

  const Kernel& kernel_;
  const Op& op_;
  const std::vector<ElementUse>& elements_;
  const Role& role_;
  const int warp_;
  std::vector<RectAccess> found_;
};

// For each 16-byte unit of each row of a tile the cell that holds it, relative to the stage, or -1 where the tile has
// nothing. Looking addresses up here is what makes footprints cheap.
class CellTable {
 public:
  explicit CellTable(Tile tile) {
    if (tile.space != Space::smem) return;
    tile.offset_bytes = 0;
    num_cells_ = stage_bytes(tile) / kCellBytes;
    per_cell_ = kCellBytes / static_cast<int>(size_bytes(tile.dtype));
    units_ = (tile.cols + per_cell_ - 1) / per_cell_;
    cells_.assign(static_cast<std::size_t>(tile.rows * units_), -1);
    for (int row = 0; row < tile.rows; ++row)
      for (int unit = 0; unit < units_; ++unit)
        if (element_exists(tile, row, unit * per_cell_))
          cells_[static_cast<std::size_t>(row * units_ + unit)] =
              element_byte(tile, 0, row, unit * per_cell_) / kCellBytes;
  }

  int num_cells() const { return num_cells_; }

  // Calls visit(cell) for every cell of the rectangle; a cell may come more than once (parts share slots).
  template <typename Visit>
  void for_each(const RectAccess& rect, const Visit& visit) const {
    const int begin = rect.cols.begin / per_cell_, end = (rect.cols.end - 1) / per_cell_ + 1;
    for (int row = rect.rows.begin; row < rect.rows.end; ++row)
      for (int unit = begin; unit < end; ++unit)
        if (const int cell = cells_[static_cast<std::size_t>(row * units_ + unit)]; cell >= 0) visit(cell);
  }

 private:
  int num_cells_ = 0, per_cell_ = 1, units_ = 0;
  std::vector<int> cells_;
};

std::vector<ElementUse> elements_read(const Op& op) {
  return op.expr.empty() ? std::vector<ElementUse>{} : elements_of(parse_assignment(op.expr).value);
}

// A rectangle and all warps that touch it: several warps read the same operand of a matrix product.
struct SharedRect {
  RectAccess rect;
  std::uint32_t readers = 0, writers = 0;
};

std::vector<SharedRect> shared_rects(const Kernel& kernel, const Op& op, const Role& role) {
  std::vector<SharedRect> rects;
  const std::vector<ElementUse> elements = elements_read(op);
  for (int warp = 0; warp < role.warps; ++warp)
    for (const RectAccess& access : Collector(kernel, op, elements, role, warp).run()) {
      auto at = std::find_if(rects.begin(), rects.end(), [&](const SharedRect& known) {
        return known.rect.tile == access.tile && known.rect.rows == access.rows && known.rect.cols == access.cols;
      });
      if (at == rects.end()) at = rects.insert(at, {access, 0, 0});
      if (access.read) at->readers |= 1u << warp;
      if (access.write) at->writers |= 1u << warp;
    }
  return rects;
}

// `known` is scratch: for each cell of each tile its place in the footprint, or -1; left as it was found.
Footprint footprint_of(const Kernel& kernel, const Op& op, int role_index, const std::vector<CellTable>& tables,
                       std::vector<std::vector<int>>& known) {
  Footprint footprint;
  footprint.role = role_index;
  for (const SharedRect& shared : shared_rects(kernel, op, kernel.roles[static_cast<std::size_t>(role_index)])) {
    const auto t = static_cast<std::size_t>(shared.rect.tile);
    tables[t].for_each(shared.rect, [&](int cell) {
      int& place = known[t][static_cast<std::size_t>(cell)];
      if (place < 0) {
        place = static_cast<int>(footprint.uses.size());
        footprint.uses.push_back({shared.rect.tile, cell, 0, 0});
      }
      CellUse& use = footprint.uses[static_cast<std::size_t>(place)];
      use.readers |= shared.readers;
      use.writers |= shared.writers;
    });
  }
  for (const CellUse& use : footprint.uses)
    known[static_cast<std::size_t>(use.tile)][static_cast<std::size_t>(use.cell)] = -1;
  return footprint;
}

}  // namespace

std::vector<RectAccess> rect_accesses(const Kernel& kernel, const Op& op, const Role& role, int warp) {
  return Collector(kernel, op, elements_read(op), role, warp).run();
}

std::vector<Footprint> footprints(const Kernel& kernel) {
  std::vector<Footprint> all(kernel.ops.size());
  std::vector<CellTable> tables;
  std::vector<std::vector<int>> known;
  for (const Tile& tile : kernel.tiles) {
    tables.emplace_back(tile);
    known.emplace_back(static_cast<std::size_t>(tables.back().num_cells()), -1);
  }
  for (std::size_t r = 0; r < kernel.roles.size(); ++r)
    for (const Step& step : kernel.roles[r].body)
      all[static_cast<std::size_t>(step.op)] =
          footprint_of(kernel, kernel.ops[static_cast<std::size_t>(step.op)], static_cast<int>(r), tables, known);
  return all;
}

}  // namespace gdr
