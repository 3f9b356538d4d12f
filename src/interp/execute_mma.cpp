// Matrix products. Operands are decoded to rows of scalars; products are summed in the order of the contraction.
#include <algorithm>

#include "interp/execute.hpp"

namespace gdr::interp {
namespace {

constexpr std::size_t kGroupCols = 16;  // columns of a group, padded: what the inner loop runs over

// sums[n] += a[l] * b[l][n] for l in the range; b has kGroupCols columns.
template <typename Real>
void add_products(const Real* a, const Real* b, std::size_t begin, std::size_t end, Real* sums) {
  Real local[kGroupCols];
  std::copy_n(sums, kGroupCols, local);
  for (std::size_t l = begin; l < end; ++l)
    for (std::size_t n = 0; n < kGroupCols; ++n) local[n] += a[l] * b[l * kGroupCols + n];
  std::copy_n(local, kGroupCols, sums);
}

bool above_diagonal(int row, int col) { return col / kBlock > row / kBlock; }

}  // namespace

// a_[m][l] for the warp's rows and the slice; zero where the mask hides a.
template <typename Real>
void Executor<Real>::decode_a(const CompiledOp& op, const MmaShare& share, const Range& slice) {
  Bound& a = bound_[1];
  const auto length = static_cast<std::size_t>(slice.size());
  typename Scratch<Real>::Row factors(scratch_, length);
  const bool scaled = !op.expression.empty();
  if (scaled) {
    const std::vector<Run> along{{0, op.contraction_begin + slice.begin, slice.size()}};
    evaluate(op, static_cast<int>(op.expression.nodes.size()) - 1, along, length, factors.data(), nullptr);
  }
  a_.resize(static_cast<std::size_t>(share.row_end - share.row_begin) * length);
  Real* out = a_.data();
  for (int m = share.row_begin; m < share.row_end; ++m)
    for (int l = slice.begin; l < slice.end; ++l, ++out) {
      const int row = a.view->tile_row(m, l), col = a.view->tile_col(m, l);
      if (op.op->mask_a == Mask::lower && above_diagonal(row, col)) {
        *out = 0;
        continue;
      }
      *out = read_cell(a, a.tile->at(row, col));
      if (scaled) *out = rounded(*out * factors.data()[l - slice.begin], a.dtype);
    }
}

// b_[l][n] for the columns of a group and the slice; zero where the mask hides b.
template <typename Real>
void Executor<Real>::decode_b(const CompiledOp& op, const MmaGroup& group, const Range& slice) {
  Bound& b = bound_[2];
  b_.assign(static_cast<std::size_t>(slice.size()) * kGroupCols, Real{0});
  Real* out = b_.data();
  for (int l = slice.begin; l < slice.end; ++l, out += kGroupCols)
    for (std::size_t n = 0; n < group.cols.size(); ++n) {
      const int row = b.view->tile_row(l, group.cols[n]), col = b.view->tile_col(l, group.cols[n]);
      if (op.op->mask_b == Mask::lower && above_diagonal(row, col)) continue;
      out[n] = read_cell(b, b.tile->at(row, col));
    }
}

template <typename Real>
void Executor<Real>::multiply(const CompiledOp& op) {
  const MmaShare& share = op.mma[static_cast<std::size_t>(at_.warp)];
  if (share.groups.empty()) return;
  const int slice_length = op.contraction / op.op->slices;
  const Range slice{at_.slice_begin * slice_length, at_.slice_end * slice_length};
  Bound& d = bound_[0];
  const bool starts = at_.slice_begin == 0 && op.op->operands[0].access == Access::write;
  decode_a(op, share, slice);
  for (const MmaGroup& group : share.groups) {
    decode_b(op, group, slice);
    for (const MmaTask& task : group.tasks)
      for (int m = task.row_begin; m < task.row_end; ++m) {
        Real sums[kGroupCols] = {};
        const auto cell = [&](std::size_t n) {
          return d.tile->at(d.view->tile_row(m, group.cols[n]), d.view->tile_col(m, group.cols[n]));
        };
        if (!starts)
          for (std::size_t n = 0; n < group.cols.size(); ++n) sums[n] = read_cell(d, cell(n));
        const Real* a = a_.data() + static_cast<std::ptrdiff_t>(m - share.row_begin) * slice.size();
        for (const Range& range : task.contraction) {
          const int begin = std::max(range.begin, slice.begin), end = std::min(range.end, slice.end);
          if (begin < end)
            add_products(a, b_.data(), static_cast<std::size_t>(begin - slice.begin),
                         static_cast<std::size_t>(end - slice.begin), sums);
        }
        for (std::size_t n = 0; n < group.cols.size(); ++n) write_cell(d, cell(n), sums[n]);
      }
  }
  if (starts)
    for (const Run& run : share.zeroed)
      write_cell(d, d.tile->at(d.view->tile_row(run.row, run.col), d.view->tile_col(run.row, run.col)), 0);
}

template void Executor<float>::multiply(const CompiledOp&);
template void Executor<double>::multiply(const CompiledOp&);

}  // namespace gdr::interp
