// Which elements each warp computes, and the expressions of ops.
#include <algorithm>

#include "core/error.hpp"
#include "interp/program.hpp"
#include "interp/tensors.hpp"

namespace gdr::interp {
namespace {

constexpr int kLanes = 32;

bool contains(const Range& outer, const Range& inner) { return outer.begin <= inner.begin && inner.end <= outer.end; }
bool above_diagonal(int row, int col) { return col / kBlock > row / kBlock; }
bool is_register(const View& view) { return view.tile != nullptr && view.tile->tile->space == Space::reg; }
bool is_smem(const View& view) { return view.tile != nullptr && view.tile->tile->space == Space::smem; }

const char* index_name(IndexKind index) {
  switch (index) {
    case IndexKind::ij:
      return "i,j";
    case IndexKind::i:
      return "i";
    case IndexKind::j:
      return "j";
    case IndexKind::l:
      return "l";
    case IndexKind::zero:
      return "0";
    case IndexKind::last:
      return "C-1";
  }
  return "?";
}

// Rows and columns over which an op's expression is evaluated, in tile coordinates.
struct Domain {
  Range rows, cols;
};

bool covers(const View& view, IndexKind index, const Domain& domain) {
  const Operand& operand = *view.operand;
  const int last = view.tile->tile->cols - 1;
  switch (index) {
    case IndexKind::ij:
      return contains(view.transposed ? operand.cols : operand.rows, domain.rows) &&
             contains(view.transposed ? operand.rows : operand.cols, domain.cols);
    case IndexKind::i:
      return contains(operand.cols, domain.rows);
    case IndexKind::j:
    case IndexKind::l:
      return contains(operand.cols, domain.cols);
    case IndexKind::zero:
      return contains(operand.cols, {0, 1});
    case IndexKind::last:
      return contains(operand.cols, {last, last + 1});
  }
  return false;
}

class ExpressionCompiler {
 public:
  ExpressionCompiler(const Kernel& kernel, const CompiledOp& op, Domain domain)
      : kernel_(kernel), op_(op), domain_(domain) {}

  Expression run(const Expr& expr) {
    add(expr);
    return std::move(result_);
  }

 private:
  int add(const Expr& expr) {
    ExprNode node;
    node.kind = expr.kind;
    node.number = expr.number;
    node.index = expr.index;
    node.condition = expr.condition;
    if (expr.kind == ExprKind::element) node.view = find_view(expr);
    if (expr.kind == ExprKind::call) node.function = function(expr);
    if (op_.along_vector && (node.condition == Condition::i_ge_j || node.condition == Condition::i_gt_j))
      malformed(kernel_, *op_.op, "a vector has no i and j to compare");
    for (const Expr& argument : expr.arguments) node.arguments.push_back(add(argument));
    result_.nodes.push_back(std::move(node));
    return static_cast<int>(result_.nodes.size()) - 1;
  }

  Function function(const Expr& expr) const {
    if (expr.name == "exp") return Function::exp;
    if (expr.name == "select") return Function::select;
    if (op_.op->kind != OpKind::scan) malformed(kernel_, *op_.op, fmt::format("{} is for scan only", expr.name));
    if (expr.name == "prefix") return Function::prefix;
    return expr.name == "suffix" ? Function::suffix : Function::before;
  }

  int find_view(const Expr& expr) const {
    const bool matrix = expr.index == IndexKind::ij;
    if ((matrix || expr.index == IndexKind::l) && op_.along_vector != (expr.index == IndexKind::l))
      malformed(kernel_, *op_.op, fmt::format("index [{}] has no meaning here", index_name(expr.index)));
    for (std::size_t view = 0; view < op_.views.size(); ++view) {
      const View& candidate = op_.views[view];
      if (candidate.tile != nullptr && candidate.operand->name == expr.name && candidate.reads() &&
          (matrix || is_smem(candidate)) && covers(candidate, expr.index, domain_))
        return static_cast<int>(view);
    }
    malformed(kernel_, *op_.op,
              fmt::format("no operand reads the elements {}[{}] of the expression", expr.name, index_name(expr.index)));
  }

  const Kernel& kernel_;
  const CompiledOp& op_;
  Domain domain_;
  Expression result_;
};

// Deals the elements of a register rectangle to their owners. `relative` to the rectangle, else in tile coordinates;
// blocks above the diagonal go to `zeroed` if the op masks them.
void deal_by_owner(CompiledOp& op, const View& owner, bool relative) {
  const Operand& operand = *owner.operand;
  const Tile& tile = *owner.tile->tile;
  for (int row = operand.rows.begin; row < operand.rows.end; ++row)
    for (int col = operand.cols.begin; col < operand.cols.end; ++col) {
      Share& share = op.shares[static_cast<std::size_t>(warp_of(tile, row, col))];
      const bool masked = op.op->mask_d == Mask::lower && above_diagonal(row, col);
      std::vector<Run>& runs = masked ? share.zeroed : share.runs;
      const int i = relative ? row - operand.rows.begin : row, j = relative ? col - operand.cols.begin : col;
      if (!runs.empty() && runs.back().row == i && runs.back().col + runs.back().count == j) {
        ++runs.back().count;
      } else {
        runs.push_back({i, j, 1});
      }
      if (!masked) ++share.num_elems;
    }
}

void add_run(Share& share, const Run& run) {
  share.runs.push_back(run);
  share.num_elems += run.count;
}

// Registers of another warp cannot be read.
void check_same_owner(const Kernel& kernel, const CompiledOp& op, const View& view, bool relative) {
  if (!is_register(view)) return;
  const Tile& tile = *view.tile->tile;
  for (std::size_t warp = 0; warp < op.shares.size(); ++warp)
    for (const Run& run : op.shares[warp].runs)
      for (int k = 0; k < run.count; ++k) {
        const int i = run.row, j = run.col + k;
        const int row = relative ? view.tile_row(i, j) : view.transposed ? j : i;
        const int col = relative ? view.tile_col(i, j) : view.transposed ? i : j;
        if (warp_of(tile, row, col) != static_cast<int>(warp))
          malformed(kernel, *op.op,
                    fmt::format("warp {} needs element ({}, {}) of register tile {}, which warp {} owns", warp, row,
                                col, tile.name, warp_of(tile, row, col)));
      }
}

void share_elementwise(const Kernel& kernel, CompiledOp& op) {
  const OpKind kind = op.op->kind;
  if (op.views.size() != 2 || !op.views[0].writes() || !op.views[1].reads())
    malformed(kernel, *op.op, "it needs one operand that it writes, then one that it reads");
  View &dst = op.views[0], &src = op.views[1];
  const bool spaces_fit = kind == OpKind::copy_in    ? is_smem(dst) && src.tile == nullptr
                          : kind == OpKind::copy_out ? dst.tile == nullptr && src.tile != nullptr
                          : kind == OpKind::load     ? is_register(dst) && !is_register(src)
                          : kind == OpKind::store    ? is_smem(dst) && is_register(src)
                                                     : is_register(dst) && is_register(src);
  if (!spaces_fit) malformed(kernel, *op.op, "its operands lie in the wrong kind of memory");
  View& owner = kind == OpKind::store || kind == OpKind::copy_out ? src : dst;
  if (owner.transposed) {  // see the op in the owner's rows and columns
    dst.transposed = !dst.transposed;
    src.transposed = !src.transposed;
  }
  op.sums_rows = kind == OpKind::copy_out && is_smem(src) && src.rows() > 1 && dst.rows() == 1;
  if (dst.cols() != src.cols() || (dst.rows() != src.rows() && !op.sums_rows))
    malformed(kernel, *op.op,
              fmt::format("{} x {} elements cannot go to {} x {}", src.rows(), src.cols(), dst.rows(), dst.cols()));
  if (is_register(owner)) {
    deal_by_owner(op, owner, true);
    check_same_owner(kernel, op, src, true);
    return;
  }
  for (int row = 0; row < dst.rows(); ++row)
    add_run(op.shares[static_cast<std::size_t>(row) % op.shares.size()], {row, 0, dst.cols()});
}

void share_map(const Kernel& kernel, CompiledOp& op) {
  const View& dst = op.views[0];
  if (!op.along_vector) {
    deal_by_owner(op, dst, false);
  } else {
    for (int col = dst.operand->cols.begin; col < dst.operand->cols.end; ++col)
      add_run(op.shares[static_cast<std::size_t>((col - dst.operand->cols.begin) / kLanes) % op.shares.size()],
              {dst.operand->rows.begin, col, 1});
  }
  for (const ExprNode& node : op.expression.nodes)
    if (node.kind == ExprKind::element && node.index == IndexKind::ij)
      check_same_owner(kernel, op, op.views[static_cast<std::size_t>(node.view)], false);
}

void share_reduce(const Kernel& kernel, CompiledOp& op) {
  const View& domain = op.views[1];
  const RegLayout& reg = domain.tile->tile->reg;
  deal_by_owner(op, domain, false);
  for (const ExprNode& node : op.expression.nodes)
    if (node.kind == ExprKind::element && node.index == IndexKind::ij)
      check_same_owner(kernel, op, op.views[static_cast<std::size_t>(node.view)], false);
  const Operand& dst = *op.views[0].operand;
  for (std::size_t warp = 0; warp < op.shares.size(); ++warp) {
    Share& share = op.shares[warp];
    const int w = static_cast<int>(warp);
    share.partial_row = dst.rows.begin + (op.op->axis == ReduceAxis::cols   ? w % reg.grid_cols
                                          : op.op->axis == ReduceAxis::rows ? w / reg.grid_cols
                                                                            : w);
    if (share.num_elems > 0 && share.partial_row >= dst.rows.end)
      fail(ErrorKind::check_failed, "GDR-I12",
           "interp: kernel {}, op {}: warp {} needs partial row {} of {}, the operand ends at row {}.", kernel.name,
           op.op->id, warp, share.partial_row, dst.name, dst.rows.end - 1);
  }
}

// The vector that a map or scan writes, or the register tile.
void check_target(const Kernel& kernel, const CompiledOp& op, const Assignment& assignment) {
  const View& dst = op.views[0];
  const bool one_row = dst.operand->rows.size() == 1;
  if (dst.tile == nullptr || !dst.writes() || dst.transposed || dst.operand->name != assignment.target)
    malformed(kernel, *op.op, fmt::format("its first operand must be the written tile {}", assignment.target));
  const bool fits = op.op->kind == OpKind::reduce ? is_smem(dst)
                    : op.op->kind == OpKind::scan ? is_smem(dst) && one_row && op.along_vector
                    : is_register(dst)            ? !op.along_vector
                                                  : one_row && op.along_vector;
  if (!fits)
    malformed(kernel, *op.op, fmt::format("it cannot write {}[{}]", assignment.target, index_name(assignment.index)));
}

void check_reduce(const Kernel& kernel, const CompiledOp& op, const Assignment& assignment) {
  if (op.views.size() < 2 || !is_register(op.views[1]) || op.views[1].transposed)
    malformed(kernel, *op.op, "its second operand must be the register tile that it sums over");
  const Operand &dst = *op.views[0].operand, &domain = *op.views[1].operand;
  const bool fits =
      op.op->axis == ReduceAxis::cols   ? assignment.index == IndexKind::i && contains(dst.cols, domain.rows)
      : op.op->axis == ReduceAxis::rows ? assignment.index == IndexKind::j && contains(dst.cols, domain.cols)
      : op.op->axis == ReduceAxis::all  ? assignment.index == IndexKind::zero && contains(dst.cols, {0, 1})
                                        : false;
  if (!fits) malformed(kernel, *op.op, "its axis, its target's index and the target's columns do not fit together");
}

}  // namespace

void compile_expression(const Kernel& kernel, CompiledOp& op) {
  if (op.op->kind == OpKind::mma) {
    if (op.op->scale_expr.empty()) return;
    const Range l{op.contraction_begin, op.contraction_begin + op.contraction};
    op.along_vector = true;
    op.expression = ExpressionCompiler(kernel, op, {l, l}).run(parse_expr(op.op->scale_expr));
    return;
  }
  const Assignment assignment = parse_assignment(op.op->expr);
  if (op.views.empty()) malformed(kernel, *op.op, "it has no operands");
  op.along_vector = op.op->kind != OpKind::reduce && assignment.index != IndexKind::ij;
  check_target(kernel, op, assignment);
  if (op.op->kind == OpKind::reduce) check_reduce(kernel, op, assignment);
  const Operand& domain = *op.views[op.op->kind == OpKind::reduce ? 1 : 0].operand;
  op.expression =
      ExpressionCompiler(kernel, op, {op.along_vector ? domain.cols : domain.rows, domain.cols}).run(assignment.value);
}

void share_out(const Kernel& kernel, CompiledOp& op) {
  op.shares.resize(static_cast<std::size_t>(kernel.roles[static_cast<std::size_t>(op.role)].warps));
  switch (op.op->kind) {
    case OpKind::copy_in:
    case OpKind::copy_out:
    case OpKind::load:
    case OpKind::store:
    case OpKind::relayout:
      share_elementwise(kernel, op);
      break;
    case OpKind::map:
      share_map(kernel, op);
      break;
    case OpKind::reduce:
      share_reduce(kernel, op);
      break;
    case OpKind::scan: {
      const Operand& dst = *op.views[0].operand;
      add_run(op.shares[0], {dst.rows.begin, dst.cols.begin, dst.cols.size()});
      break;
    }
    case OpKind::tri_inverse: {
      if (op.views.size() != 2 || !is_smem(op.views[0]) || !is_smem(op.views[1]) || op.views[0].transposed ||
          op.views[1].transposed)
        malformed(kernel, *op.op, "it needs two tiles in shared memory, neither transposed");
      const View &dst = op.views[0], &src = op.views[1];
      if (dst.rows() != src.rows() || dst.cols() != src.cols() || dst.rows() != dst.cols() || dst.rows() % kBlock != 0)
        malformed(kernel, *op.op, "it needs two equal squares of whole 16-blocks");
      for (int block = 0; block < dst.rows() / kBlock; ++block)
        add_run(op.shares[static_cast<std::size_t>(block) % op.shares.size()],
                {block * kBlock, block * kBlock, kBlock});
      break;
    }
    default:
      break;
  }
}

}  // namespace gdr::interp
