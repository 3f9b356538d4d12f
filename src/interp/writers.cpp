// For every operand that is read, the writers whose values it may find: those that running Kernel::ops one by one,
// iteration after iteration, would have left there.
#include <algorithm>

#include "interp/program.hpp"
#include "interp/tensors.hpp"
#include "schedule/layout.hpp"

namespace gdr::interp {
namespace {

struct Rect {
  Range rows, cols;
};

Range common(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

bool overlap(const Rect& a, const Rect& b) {
  return common(a.rows, b.rows).size() > 0 && common(a.cols, b.cols).size() > 0;
}

// What `hole` leaves of the rectangles.
std::vector<Rect> subtract(const std::vector<Rect>& rects, const Rect& hole) {
  std::vector<Rect> left;
  for (const Rect& rect : rects) {
    if (!overlap(rect, hole)) {
      left.push_back(rect);
      continue;
    }
    const Range rows = common(rect.rows, hole.rows), cols = common(rect.cols, hole.cols);
    const Rect pieces[] = {{{rect.rows.begin, rows.begin}, rect.cols},
                           {{rows.end, rect.rows.end}, rect.cols},
                           {rows, {rect.cols.begin, cols.begin}},
                           {rows, {cols.end, rect.cols.end}}};
    for (const Rect& piece : pieces)
      if (piece.rows.size() > 0 && piece.cols.size() > 0) left.push_back(piece);
  }
  return left;
}

bool is_sum_into(const CompiledOp& op, std::size_t operand) {
  return op.op->kind == OpKind::mma && op.views[operand].operand->access == Access::accumulate;
}

// The elements that an op writes through an operand. A reduce leaves the partial rows of warps with no share alone,
// tri_inverse everything but the diagonal blocks.
std::vector<Rect> written_rects(const CompiledOp& op, std::size_t operand) {
  const Operand& target = *op.views[operand].operand;
  std::vector<Rect> rects;
  if (op.op->kind == OpKind::tri_inverse) {
    for (const Share& share : op.shares)
      for (const Run& run : share.runs)
        rects.push_back({{target.rows.begin + run.row, target.rows.begin + run.row + kBlock},
                         {target.cols.begin + run.col, target.cols.begin + run.col + kBlock}});
    return rects;
  }
  if (op.op->kind != OpKind::reduce) return {{target.rows, target.cols}};
  for (const Share& share : op.shares) {
    if (share.num_elems == 0) continue;
    const Range row{share.partial_row, share.partial_row + 1};
    if (op.op->axis == ReduceAxis::all) {
      rects.push_back({row, {0, 1}});
      continue;
    }
    for (const Run& run : share.runs) {
      const Range cols =
          op.op->axis == ReduceAxis::cols ? Range{run.row, run.row + 1} : Range{run.col, run.col + run.count};
      rects.push_back({row, cols});
    }
  }
  return rects;
}

// Writes through an operand leave nothing of what was there before.
bool replaces_all(const CompiledOp& op, std::size_t operand) {
  return op.views[operand].operand->access == Access::write ||
         (op.op->kind != OpKind::mma && op.op->mask_d == Mask::none);
}

class Search {
 public:
  Search(const Program& program, int reader, std::size_t operand)
      : program_(program), reader_(reader), operand_(operand), tile_(view().tile) {
    missing_ = {{view().operand->rows, view().operand->cols}};
  }

  std::vector<Writer> run() {
    const Section section = op(reader_).section;
    const int num_ops = static_cast<int>(program_.ops.size());
    if (is_accumulator()) add_commuting();
    if (!view().reads()) return std::move(found_);  // its first slice has set d to zero
    for (int at = reader_ - 1; at >= 0 && !missing_.empty(); --at) visit(at, section, {at, 0, false});
    const std::vector<Rect> missing_in_iteration = missing_;
    if (section == Section::body) {
      const int lag = std::max(1, tile_->tile->stages);
      for (int at = num_ops - 1; at >= reader_ && !missing_.empty(); --at) visit(at, section, {at, lag, false});
    } else if (section == Section::epilogue) {
      for (int at = num_ops - 1; at >= 0 && !missing_.empty(); --at) visit(at, Section::body, {at, 1, false});
    }
    // In the first iteration, or after none, what the loop has not written yet comes from the prologue.
    missing_ = missing_in_iteration;
    if (section != Section::prologue)
      for (int at = num_ops - 1; at >= 0 && !missing_.empty(); --at) visit(at, Section::prologue, {at, 0, true});
    return std::move(found_);
  }

 private:
  const CompiledOp& op(int index) const { return program_.ops[static_cast<std::size_t>(index)]; }
  const View& view() const { return op(reader_).views[operand_]; }
  bool is_accumulator() const { return op(reader_).op->kind == OpKind::mma && operand_ == 0; }

  void visit(int at, Section section, const Writer& writer) {
    if (op(at).section != section) return;
    for (std::size_t k = 0; k < op(at).views.size(); ++k) {
      const View& target = op(at).views[k];
      if (target.tile != tile_ || !target.writes()) continue;
      const std::vector<Rect> rects = written_rects(op(at), k);
      const auto meets = [&](const Rect& rect) {
        return std::any_of(missing_.begin(), missing_.end(), [&](const Rect& open) { return overlap(rect, open); });
      };
      if (std::none_of(rects.begin(), rects.end(), meets)) continue;
      found_.push_back(writer);
      if (replaces_all(op(at), k))
        for (const Rect& rect : rects) missing_ = subtract(missing_, rect);
    }
  }

  // The slices of sums into one accumulator may alternate: each sees its own earlier slices and those of the sums
  // that directly follow.
  void add_commuting() {
    found_.push_back({reader_, 0, false});
    for (int at = reader_ + 1; at < static_cast<int>(program_.ops.size()); ++at)
      for (std::size_t k = 0; k < op(at).views.size(); ++k) {
        if (op(at).views[k].tile != tile_ || op(at).section != op(reader_).section) continue;
        if (!is_sum_into(op(at), k)) return;
        found_.push_back({at, 0, false});
      }
  }

  const Program& program_;
  const int reader_;
  const std::size_t operand_;
  const TileCells* tile_;
  std::vector<Rect> missing_;
  std::vector<Writer> found_;
};

}  // namespace

void find_writers(Program& program) {
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    CompiledOp& op = program.ops[index];
    for (std::size_t operand = 0; operand < op.views.size(); ++operand) {
      View& view = op.views[operand];
      const bool reads = view.reads() || (op.op->kind == OpKind::mma && operand == 0);
      if (view.tile != nullptr && reads) view.writers = Search(program, static_cast<int>(index), operand).run();
    }
  }
}

}  // namespace gdr::interp
