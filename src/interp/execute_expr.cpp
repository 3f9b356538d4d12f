// Ops with an expression: map, reduce, scan, and the scale factors of mma. An expression is evaluated node by node over
// all elements that a warp computes. The side of a select that is not chosen is neither read nor checked.
#include <algorithm>
#include <cmath>

#include "interp/execute.hpp"

namespace gdr::interp {

template <typename Real>
void Executor<Real>::evaluate(const CompiledOp& op, int node_index, const std::vector<Run>& runs, std::size_t count,
                              Real* out, const char* active) {
  const ExprNode& node = op.expression.nodes[static_cast<std::size_t>(node_index)];
  switch (node.kind) {
    case ExprKind::number:
      std::fill_n(out, count, static_cast<Real>(node.number));
      return;
    case ExprKind::scale:
      std::fill_n(out, count, static_cast<Real>(context_.program->launch->shape.scale));
      return;
    case ExprKind::element:
      evaluate_element(op, node, runs, out, active);
      return;
    case ExprKind::call:
      evaluate_call(op, node, runs, count, out, active);
      return;
    default:
      break;
  }
  evaluate(op, node.arguments[0], runs, count, out, active);
  if (node.kind == ExprKind::negate) {
    for (std::size_t k = 0; k < count; ++k) out[k] = -out[k];
    return;
  }
  typename Scratch<Real>::Row row(scratch_, count);
  Real* right = row.data();
  evaluate(op, node.arguments[1], runs, count, right, active);
  for (std::size_t k = 0; k < count; ++k) switch (node.kind) {
      case ExprKind::add:
        out[k] += right[k];
        break;
      case ExprKind::subtract:
        out[k] -= right[k];
        break;
      case ExprKind::multiply:
        out[k] *= right[k];
        break;
      default:
        out[k] /= right[k];
        break;
    }
}

template <typename Real>
void Executor<Real>::evaluate_element(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs,
                                      Real* out, const char* active) {
  Bound& bound = bound_[static_cast<std::size_t>(node.view)];
  const TileCells& tile = *bound.tile;
  // The element that (row, col) needs, and whether it is the same for a whole row or for everything.
  int known_col = -1;
  Real known = 0;
  const auto element = [&](int row, int col) {
    if (node.index == IndexKind::ij)
      return read_cell(bound, bound.view->transposed ? tile.at(col, row) : tile.at(row, col));
    int at = col;
    if (node.index == IndexKind::i && !op.along_vector) at = row;
    if (node.index == IndexKind::zero) at = 0;
    if (node.index == IndexKind::last) at = tile.tile->cols - 1;
    if (at != known_col) {
      known = read_vector(bound, at);
      known_col = at;
    }
    return known;
  };
  std::size_t k = 0;
  for (const Run& run : runs)
    for (int col = run.col; col < run.col + run.count; ++col, ++k)
      out[k] = active == nullptr || active[k] != 0 ? element(run.row, col) : Real{0};
}

template <typename Real>
void Executor<Real>::evaluate_call(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs,
                                   std::size_t count, Real* out, const char* active) {
  if (node.function == Function::select) {
    evaluate_select(op, node, runs, count, out, active);
    return;
  }
  const bool sums = node.function != Function::exp;
  evaluate(op, node.arguments[0], runs, count, out, sums ? nullptr : active);  // a sum needs all elements
  Real sum = 0;
  switch (node.function) {
    case Function::exp:
      for (std::size_t k = 0; k < count; ++k) out[k] = std::exp(out[k]);
      break;
    case Function::prefix:
      for (std::size_t k = 0; k < count; ++k) out[k] = sum += out[k];
      break;
    case Function::suffix:
      for (std::size_t k = count; k-- > 0;) out[k] = sum += out[k];
      break;
    default:  // before
      for (std::size_t k = 0; k < count; ++k) {
        const Real here = out[k];
        out[k] = sum;
        sum += here;
      }
  }
}

template <typename Real>
void Executor<Real>::evaluate_select(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs,
                                     std::size_t count, Real* out, const char* active) {
  typename Scratch<char>::Row holds_row(conditions_, count), side_row(conditions_, count);
  char *holds = holds_row.data(), *side = side_row.data();
  typename Scratch<Real>::Row row(scratch_, count);
  Real* other = row.data();
  std::size_t first = 0;  // argument that is the value where the condition holds
  if (node.condition == Condition::greater) {
    evaluate(op, node.arguments[0], runs, count, out, active);
    evaluate(op, node.arguments[1], runs, count, other, active);
    for (std::size_t k = 0; k < count; ++k) holds[k] = out[k] > other[k] ? 1 : 0;
    first = 2;
  } else {
    const int least = node.condition == Condition::i_ge_j ? 0 : 1;
    std::size_t k = 0;
    for (const Run& run : runs)
      for (int col = run.col; col < run.col + run.count; ++col, ++k) holds[k] = run.row - col >= least ? 1 : 0;
  }
  const auto is_active = [&](std::size_t k) { return active == nullptr || active[k] != 0; };
  for (std::size_t k = 0; k < count; ++k) side[k] = is_active(k) && holds[k] != 0 ? 1 : 0;
  evaluate(op, node.arguments[first], runs, count, out, side);
  for (std::size_t k = 0; k < count; ++k) side[k] = is_active(k) && holds[k] == 0 ? 1 : 0;
  evaluate(op, node.arguments[first + 1], runs, count, other, side);
  for (std::size_t k = 0; k < count; ++k)
    if (holds[k] == 0) out[k] = other[k];
}

template <typename Real>
void Executor<Real>::map(const CompiledOp& op) {
  const Share& share = op.shares[static_cast<std::size_t>(at_.warp)];
  const auto count = static_cast<std::size_t>(share.num_elems);
  Bound& dst = bound_[0];
  typename Scratch<Real>::Row values(scratch_, count);
  evaluate(op, static_cast<int>(op.expression.nodes.size()) - 1, share.runs, count, values.data(), nullptr);
  const Real* value = values.data();
  for (const Run& run : share.runs)
    for (int col = run.col; col < run.col + run.count; ++col) write_cell(dst, dst.tile->at(run.row, col), *value++);
  if (op.op->operands[0].access != Access::write) return;
  for (const Run& run : share.zeroed)
    for (int col = run.col; col < run.col + run.count; ++col) write_cell(dst, dst.tile->at(run.row, col), 0);
}

// Sums in the order of the elements: row by row.
template <typename Real>
void Executor<Real>::reduce(const CompiledOp& op) {
  const Share& share = op.shares[static_cast<std::size_t>(at_.warp)];
  if (share.num_elems == 0) return;
  const auto count = static_cast<std::size_t>(share.num_elems);
  Bound& dst = bound_[0];
  typename Scratch<Real>::Row values(scratch_, count);
  evaluate(op, static_cast<int>(op.expression.nodes.size()) - 1, share.runs, count, values.data(), nullptr);
  const auto length = static_cast<std::size_t>(dst.tile->tile->cols);
  typename Scratch<Real>::Row sums_row(scratch_, length);
  typename Scratch<char>::Row touched_row(conditions_, length);
  Real* sums = sums_row.data();
  char* touched = touched_row.data();
  std::fill_n(sums, length, Real{0});
  std::fill_n(touched, length, char{0});
  const Real* value = values.data();
  for (const Run& run : share.runs)
    for (int col = run.col; col < run.col + run.count; ++col) {
      const int at = op.op->axis == ReduceAxis::cols ? run.row : op.op->axis == ReduceAxis::rows ? col : 0;
      sums[at] += *value++;
      touched[at] = 1;
    }
  for (std::size_t at = 0; at < length; ++at) {
    if (touched[at] == 0) continue;
    const std::int32_t cell = dst.tile->at(share.partial_row, static_cast<int>(at));
    write_cell(dst, cell, op.op->operands[0].access == Access::accumulate ? read_cell(dst, cell) + sums[at] : sums[at]);
  }
}

template <typename Real>
void Executor<Real>::scan(const CompiledOp& op) {
  map(op);  // warp 0's share is the whole vector, that of the others is empty
}

template void Executor<float>::map(const CompiledOp&);
template void Executor<float>::reduce(const CompiledOp&);
template void Executor<float>::scan(const CompiledOp&);
template void Executor<double>::map(const CompiledOp&);
template void Executor<double>::reduce(const CompiledOp&);
template void Executor<double>::scan(const CompiledOp&);
template void Executor<float>::evaluate(const CompiledOp&, int, const std::vector<Run>&, std::size_t, float*,
                                        const char*);
template void Executor<double>::evaluate(const CompiledOp&, int, const std::vector<Run>&, std::size_t, double*,
                                         const char*);

}  // namespace gdr::interp
