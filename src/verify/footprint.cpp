#include "verify/footprint.hpp"

#include <algorithm>

namespace gdr::verifying {
namespace {

constexpr int kVectorRun = 32;  // elements of a vector that one warp computes at a time
constexpr int kBlock = 16;      // of triangular tiles

Range meet(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// Moves a range from the coordinates where `from` begins to those where `to` begins.
Range shifted(const Range& range, const Range& from, const Range& to) {
  return {range.begin - from.begin + to.begin, range.end - from.begin + to.begin};
}

std::vector<Range> shifted(const std::vector<Range>& ranges, const Range& from, const Range& to) {
  std::vector<Range> out;
  for (const Range& range : ranges) out.push_back(shifted(range, from, to));
  return out;
}

// Every `step`-th run of `run` elements of the range, beginning with run number `first`.
std::vector<Range> dealt(const Range& range, int run, int first, int step) {
  std::vector<Range> out;
  for (int begin = range.begin + first * run; begin < range.end; begin += step * run)
    out.push_back({begin, std::min(begin + run, range.end)});
  return out;
}

class Footprint {
 public:
  Footprint(const KernelIndex& index, const Step& step, int warp)
      : index_(index), entry_(at(index.ops, step.op)), op_(index.op(step.op)), step_(step), warp_(warp) {}

  std::vector<Touch> find() && {
    switch (op_.kind) {
      case OpKind::copy_in:
        by_rows(0);
        break;
      case OpKind::copy_out:
        if (smem(1)) by_rows(1);
        break;
      case OpKind::load:
        if (smem(1)) like_registers(1, 0);
        break;
      case OpKind::store:
        like_registers(0, 1);
        break;
      case OpKind::mma:
        mma();
        break;
      case OpKind::map:
        if (entry_.target_index == IndexKind::ij) {
          elementwise(share(0));
        } else {
          vector_map();
        }
        break;
      case OpKind::reduce:
        reduce();
        break;
      case OpKind::scan:
        scan();
        break;
      case OpKind::tri_inverse:
        tri_inverse();
        break;
      case OpKind::relayout:
      case OpKind::arrive:
      case OpKind::wait:
      case OpKind::sync:
      case OpKind::fence:
        break;
    }
    return std::move(touches_);
  }

 private:
  const Operand& operand(int i) const { return at(op_.operands, i); }
  const Tile& tile(int i) const { return *index_.tile(step_.op, i); }
  bool smem(int i) const { return index_.is_smem(step_.op, i); }
  Share share(int i) const { return share_of(tile(i), operand(i), warp_); }

  // Elements above the diagonal of a lower16 tile do not exist.
  void touch(int i, std::vector<Range> rows, std::vector<Range> cols, bool lower = false) {
    Area area{std::move(rows), std::move(cols), lower || tile(i).smem.lower16};
    if (!area.empty()) touches_.push_back({i, std::move(area)});
  }

  // Copies deal the rows of the rectangle to the role's warps; a tensor that keeps lower blocks only has no others.
  void by_rows(int i) {
    const int warps = index_.role_of(step_.op).warps;
    const TensorSpec& tensor = *index_.tensor(step_.op, 1 - i);
    touch(i, dealt(operand(i).rows, 1, warp_, warps), {operand(i).cols}, tensor.order == GlobalOrder::lower16);
  }

  // Operand i, element for element what the warp owns of register operand `reg`.
  void like_registers(int i, int reg) {
    const Share own = share(reg);
    if (own.empty()) return;
    const Operand& there = operand(i);
    const Operand& here = operand(reg);
    if (there.transposed) {
      touch(i, shifted(own.cols, here.cols, there.rows), {shifted(own.rows, here.rows, there.cols)});
    } else {
      touch(i, {shifted(own.rows, here.rows, there.rows)}, shifted(own.cols, here.cols, there.cols));
    }
  }

  void mma() {
    const Share own = share(0);
    if (own.empty()) return;
    const Operand& d = operand(0);
    if (smem(1)) {
      const Operand& a = operand(1);
      const Range k = contraction_of(op_, 1, step_);
      const bool lower = op_.mask_a == Mask::lower;
      if (a.transposed) {
        touch(1, {k}, {shifted(own.rows, d.rows, a.cols)}, lower);
      } else {
        touch(1, {shifted(own.rows, d.rows, a.rows)}, {k}, lower);
      }
    }
    const Operand& b = operand(2);
    const Range k = contraction_of(op_, 2, step_);
    const bool lower = op_.mask_b == Mask::lower;
    if (b.transposed) {
      touch(2, shifted(own.cols, d.cols, b.rows), {k}, lower);
    } else {
      touch(2, {k}, shifted(own.cols, d.cols, b.cols), lower);
    }
    for (const ElementUse& use : entry_.uses) vector_use(use, {}, {}, contraction_of(op_, 1, step_));
  }

  // A vector read under an index; all its partial rows, since it reads as their sum.
  void vector_use(const ElementUse& use, const std::vector<Range>& i, const std::vector<Range>& j, const Range& l) {
    const int found = operand_named(use.name);
    const int cols = tile(found).cols;
    std::vector<Range> elements;
    if (use.index == IndexKind::i) elements = i;
    if (use.index == IndexKind::j) elements = j;
    if (use.index == IndexKind::l) elements = {l};
    if (use.index == IndexKind::zero) elements = {{0, 1}};
    if (use.index == IndexKind::last) elements = {{cols - 1, cols}};
    touch(found, {{0, tile(found).rows}}, std::move(elements));
  }

  int operand_named(const std::string& name) const {
    for (int i = count_of(op_.operands) - 1; i > 0; --i)
      if (operand(i).name == name) return i;
    return 0;
  }

  // What an expression over matrix elements reads where the warp owns `own`.
  void elementwise(const Share& own) {
    if (own.empty()) return;
    for (const ElementUse& use : entry_.uses) {
      const int i = operand_named(use.name);
      if (!smem(i)) continue;
      if (use.index == IndexKind::ij) {
        touch(i, {own.rows}, own.cols);
      } else {
        vector_use(use, {own.rows}, own.cols, {});
      }
    }
  }

  void vector_map() {
    const std::vector<Range> own = dealt(operand(0).cols, kVectorRun, warp_, index_.role_of(step_.op).warps);
    if (own.empty()) return;
    for (const ElementUse& use : entry_.uses)
      if (use.name != entry_.target) vector_use(use, own, own, {});
    touch(0, {operand(0).rows}, own);
  }

  void reduce() {
    const Share own = share(1);
    if (own.empty()) return;
    elementwise(own);
    const RegLayout& grid = tile(1).reg;
    const auto partial = [](int row) { return std::vector<Range>{{row, row + 1}}; };
    if (op_.axis == ReduceAxis::cols) touch(0, partial(warp_ % grid.grid_cols), {own.rows});
    if (op_.axis == ReduceAxis::rows) touch(0, partial(warp_ / grid.grid_cols), own.cols);
    if (op_.axis == ReduceAxis::all) touch(0, partial(warp_), {{0, 1}});
  }

  // Warp 0 alone; sums run over whole vectors.
  void scan() {
    if (warp_ != 0) return;
    const std::vector<Range> all = {operand(0).cols};
    for (const ElementUse& use : entry_.uses) vector_use(use, all, all, {});
    touch(0, {operand(0).rows}, all);
  }

  void tri_inverse() {
    const int warps = index_.role_of(step_.op).warps;
    for (const int i : {1, 0}) {
      const Operand& o = operand(i);
      for (int at = warp_ * kBlock; at < o.rows.size(); at += warps * kBlock)
        touch(i, {{o.rows.begin + at, o.rows.begin + at + kBlock}}, {{o.cols.begin + at, o.cols.begin + at + kBlock}});
    }
  }

  const KernelIndex& index_;
  const OpIndex& entry_;
  const Op& op_;
  const Step& step_;
  int warp_;
  std::vector<Touch> touches_;
};

}  // namespace

Share share_of(const Tile& tile, const Operand& operand, int warp) {
  Share share;
  const RegLayout& reg = tile.reg;
  const int rows = tile.rows / reg.grid_rows;
  const int grid_row = warp / reg.grid_cols;
  share.rows = meet({grid_row * rows, (grid_row + 1) * rows}, operand.rows);
  for (const Range& run : dealt({0, tile.cols}, reg.deal_cols, warp % reg.grid_cols, reg.grid_cols)) {
    const Range own = meet(run, operand.cols);
    if (own.size() <= 0) continue;
    if (!share.cols.empty() && share.cols.back().end == own.begin) {
      share.cols.back().end = own.end;
    } else {
      share.cols.push_back(own);
    }
  }
  return share;
}

Range contraction_of(const Op& op, int operand) {
  const Operand& o = at(op.operands, operand);
  return (operand == 1) != o.transposed ? o.cols : o.rows;
}

Range contraction_of(const Op& op, int operand, const Step& step) {
  const Range all = contraction_of(op, operand);
  const int run = all.size() / op.slices;
  return {all.begin + step.slice_begin * run, all.begin + step.slice_end * run};
}

std::vector<Touch> smem_touches(const KernelIndex& index, const Step& step, int warp) {
  return Footprint(index, step, warp).find();
}

}  // namespace gdr::verifying
