#include "schedule/builder.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "schedule/expr.hpp"
#include "schedule/layout.hpp"

namespace gdr {
namespace {

// Whole 16-row and 8-column fragments are the least a warp can own.
constexpr int kRowBlock = 16;

const char* verb(OpKind kind) {
  switch (kind) {
    case OpKind::copy_in:
      return "in";
    case OpKind::copy_out:
      return "out";
    case OpKind::load:
      return "load";
    case OpKind::store:
      return "store";
    case OpKind::mma:
      return "mma";
    case OpKind::map:
      return "map";
    case OpKind::reduce:
      return "sum";
    case OpKind::scan:
      return "scan";
    case OpKind::tri_inverse:
      return "inverse";
    case OpKind::relayout:
      return "cast";
    default:
      return "sync";
  }
}

}  // namespace

View View::t() const {
  View v = *this;
  v.given_.transposed = !v.given_.transposed;
  return v;
}

View View::part(int p) const { return part_of(p, 0); }

View View::part_of(int p, int count) const {
  View v = *this;
  v.given_.part = p;
  v.part_count_ = count == 0 ? -1 : count;
  return v;
}

View View::rows(int begin, int end) const {
  View v = *this;
  v.given_.rows = {begin, end};
  v.has_rows_ = true;
  return v;
}

View View::cols(int begin, int end) const {
  View v = *this;
  v.given_.cols = {begin, end};
  v.has_cols_ = true;
  return v;
}

View View::head(int index) const {
  View v = *this;
  v.given_.head_index = index;
  return v;
}

View View::sliced() const {
  View v = *this;
  v.given_.v_sliced = true;
  return v;
}

View View::global() const {
  View v = *this;
  v.given_.is_tensor = true;
  return v;
}

KernelBuilder::KernelBuilder(std::string function, std::vector<GridAxis> grid, LoopKind loop,
                             const std::vector<TensorSpec>& tensors)
    : tensors_(tensors) {
  kernel_.function = std::move(function);
  kernel_.grid = std::move(grid);
  kernel_.loop = loop;
}

void KernelBuilder::role(const std::string& name, int warps) {
  Role role;
  role.name = name;
  role.warps = warps;
  kernel_.roles.push_back(role);
}

void KernelBuilder::smem(const std::string& name, int rows, int cols, DType dtype, Smem options) {
  Tile tile;
  tile.name = name;
  tile.rows = rows;
  tile.cols = cols;
  tile.dtype = dtype;
  tile.parts = options.parts;
  tile.resident = options.resident;
  tile.stages = options.stages;
  tile.smem = options.lower16 ? lower16_layout(dtype) : swizzled_layout(cols, dtype);
  kernel_.tiles.push_back(tile);
}

void KernelBuilder::vec(const std::string& name, int length, int partial_rows, int stages) {
  Tile tile;
  tile.name = name;
  tile.rows = partial_rows;
  tile.cols = length;
  tile.dtype = DType::fp32;
  tile.stages = stages;
  tile.smem = vector_layout(length);
  kernel_.tiles.push_back(tile);
}

void KernelBuilder::acc(const std::string& role, const std::string& name, int rows, int cols, WarpGrid grid) {
  Tile tile;
  tile.name = name;
  tile.space = Space::reg;
  tile.rows = rows;
  tile.cols = cols;
  tile.dtype = DType::fp32;
  tile.role = role;
  tile.reg = {RegKind::acc, grid.rows, grid.cols, grid.deal_cols > 0 ? grid.deal_cols : cols / grid.cols};
  kernel_.tiles.push_back(tile);
}

void KernelBuilder::frag(const std::string& role, const std::string& name, int rows, int cols, DType dtype,
                         WarpGrid grid) {
  acc(role, name, rows, cols, grid);
  kernel_.tiles.back().dtype = dtype;
  kernel_.tiles.back().reg.kind = RegKind::a;
}

Operand KernelBuilder::resolve(const View& view, Access access) const {
  Operand operand = view.given_;
  operand.name = view.name_;
  operand.access = access;
  int rows = 0, cols = 0, parts = 1;
  if (const Tile* tile = operand.is_tensor ? nullptr : kernel_.find_tile(view.name_)) {
    rows = tile->rows, cols = tile->cols, parts = tile->parts;
  } else {
    const auto found =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorSpec& t) { return t.name == view.name_; });
    internal_check(found != tensors_.end(), "builder: no tile or tensor " + view.name_);
    operand.is_tensor = true;
    rows = found->rows, cols = found->cols;
    if (operand.v_sliced) cols = kernel_.v_slice_cols;
  }
  if (view.part_count_ != 0) {
    const int count = view.part_count_ > 0 ? view.part_count_ : parts;
    operand.rows = {operand.part * (rows / count), (operand.part + 1) * (rows / count)};
    if (parts == 1) operand.part = 0;
  } else if (!view.has_rows_) {
    operand.rows = {0, rows};
  }
  if (!view.has_cols_) operand.cols = {0, cols};
  return operand;
}

Op& KernelBuilder::add(const std::string& role, Op op, const std::string& what) {
  const std::string base = what + "." + verb(op.kind);
  int count = 0;
  for (const Op& other : kernel_.ops)
    count += other.id == base || (other.id.starts_with(base) && other.id.size() > base.size() &&
                                  other.id[base.size()] >= '0' && other.id[base.size()] <= '9');
  op.id = count == 0 ? base : base + std::to_string(count + 1);
  kernel_.ops.push_back(std::move(op));
  for (Role& r : kernel_.roles)
    if (r.name == role) {
      auto& list = section_ == Section::prologue ? r.prologue : section_ == Section::body ? r.body : r.epilogue;
      const int slices = kernel_.ops.back().slices;
      list.push_back({static_cast<int>(kernel_.ops.size()) - 1, 0, slices});
      return kernel_.ops.back();
    }
  internal_check(false, "builder: no role " + role);
  return kernel_.ops.back();
}

Op& KernelBuilder::copy_in(const std::string& role, const View& dst, const View& src, const std::string& step,
                           Where where) {
  Op op;
  op.kind = OpKind::copy_in;
  op.mechanism = Mechanism::cp_async;
  op.where = where;
  op.step = step;
  op.operands = {resolve(dst, Access::write), resolve(src.global(), Access::read)};
  return add(role, op, dst.name_);
}

Op& KernelBuilder::copy_out(const std::string& role, const View& dst, const View& src, const std::string& step,
                            Where where) {
  Op op;
  op.kind = OpKind::copy_out;
  op.mechanism = Mechanism::plain;
  op.where = where;
  op.step = step;
  op.operands = {resolve(dst.global(), Access::write), resolve(src, Access::read)};
  return add(role, op, dst.name_);
}

Op& KernelBuilder::load(const std::string& role, const View& dst, const View& src, const std::string& step,
                        Where where) {
  Op op;
  op.kind = OpKind::load;
  op.where = where;
  op.step = step;
  op.operands = {resolve(dst, Access::write), resolve(src, Access::read)};
  return add(role, op, dst.name_);
}

Op& KernelBuilder::store(const std::string& role, const View& dst, const View& src, const std::string& step) {
  Op op;
  op.kind = OpKind::store;
  op.step = step;
  op.operands = {resolve(dst, Access::write), resolve(src, Access::read)};
  return add(role, op, dst.name_);
}

Op& KernelBuilder::relayout(const std::string& role, const View& dst, const View& src, const std::string& step) {
  Op op;
  op.kind = OpKind::relayout;
  op.step = step;
  op.operands = {resolve(dst, Access::write), resolve(src, Access::read)};
  return add(role, op, dst.name_);
}

Op& KernelBuilder::mma(const std::string& role, const View& d, const View& a, const View& b, const std::string& step,
                       bool accumulate, const std::string& scale_expr) {
  Op op;
  op.kind = OpKind::mma;
  op.step = step;
  op.operands = {resolve(d, accumulate ? Access::accumulate : Access::write), resolve(a, Access::read),
                 resolve(b, Access::read)};
  const Operand& left = op.operands[1];
  const auto lower = [&](const Operand& o) {
    const Tile* tile = kernel_.find_tile(o.name);
    return tile && tile->space == Space::smem && tile->smem.lower16 ? Mask::lower : Mask::none;
  };
  op.mask_a = lower(op.operands[1]);
  op.mask_b = lower(op.operands[2]);
  if (!scale_expr.empty()) {
    op.scale_expr = scale_expr;
    const Range contraction = left.transposed ? left.rows : left.cols;
    for (const ElementUse& use : elements_of(parse_expr(scale_expr))) {
      Operand vector = resolve(View(use.name), Access::read);
      if (use.index == IndexKind::l) vector.cols = contraction;
      if (use.index == IndexKind::last) vector.cols.begin = vector.cols.end - 1;
      op.operands.push_back(vector);
    }
  }
  return add(role, op, d.name_);
}

void KernelBuilder::add_expr_operands(Op& op, const std::string& target, const Range& rows, const Range& cols) {
  for (const ElementUse& use : elements_of(parse_assignment(op.expr).value)) {
    const auto same = [&](const Operand& o) { return o.name == use.name; };
    if (use.name == target) continue;
    Operand operand = resolve(View(use.name), Access::read);
    switch (use.index) {
      case IndexKind::ij:
        operand.rows = rows, operand.cols = cols;
        if (const Tile* tile = kernel_.find_tile(use.name); tile && tile->parts > 1)
          operand.part = rows.begin / part_rows(*tile);
        break;
      case IndexKind::i:
        operand.cols = rows;
        break;
      case IndexKind::j:
        operand.cols = cols;
        break;
      case IndexKind::last:
        operand.cols.begin = operand.cols.end - 1;
        break;
      case IndexKind::zero:
        operand.cols = {0, 1};
        break;
      case IndexKind::l:
        internal_check(false, "builder: index l outside a scale factor: " + op.expr);
    }
    const auto known = std::find_if(op.operands.begin(), op.operands.end(), same);
    if (known == op.operands.end()) {
      op.operands.push_back(operand);
    } else {  // read under two indices: one operand that covers both
      known->cols = {std::min(known->cols.begin, operand.cols.begin), std::max(known->cols.end, operand.cols.end)};
    }
  }
}

Op& KernelBuilder::map(const std::string& role, const std::string& expr, const std::string& step) {
  return map(role, expr, step, View(parse_assignment(expr).target));
}

Op& KernelBuilder::map(const std::string& role, const std::string& expr, const std::string& step, const View& domain) {
  const Assignment assignment = parse_assignment(expr);
  Op op;
  op.kind = OpKind::map;
  op.expr = expr;
  op.step = step;
  bool reads_target = false;
  for (const ElementUse& use : elements_of(assignment.value)) reads_target |= use.name == assignment.target;
  Operand dst = resolve(domain, reads_target ? Access::accumulate : Access::write);
  op.operands.push_back(dst);
  const bool is_vector = assignment.index != IndexKind::ij;
  add_expr_operands(op, assignment.target, is_vector ? dst.cols : dst.rows, dst.cols);
  return add(role, op, assignment.target);
}

Op& KernelBuilder::reduce(const std::string& role, ReduceAxis axis, const std::string& expr, const View& domain,
                          const std::string& step, bool accumulate) {
  const Assignment assignment = parse_assignment(expr);
  Op op;
  op.kind = OpKind::reduce;
  op.expr = expr;
  op.axis = axis;
  op.step = step;
  const Operand rect = resolve(domain, Access::read);
  Operand dst = resolve(View(assignment.target), accumulate ? Access::accumulate : Access::write);
  dst.cols = axis == ReduceAxis::cols ? rect.rows : axis == ReduceAxis::rows ? rect.cols : Range{0, 1};
  op.operands = {dst, rect};
  add_expr_operands(op, assignment.target, rect.rows, rect.cols);
  return add(role, op, assignment.target);
}

Op& KernelBuilder::scan(const std::string& role, const std::string& expr, const std::string& step) {
  const Assignment assignment = parse_assignment(expr);
  Op op;
  op.kind = OpKind::scan;
  op.expr = expr;
  op.step = step;
  const Operand dst = resolve(View(assignment.target), Access::write);
  op.operands.push_back(dst);
  add_expr_operands(op, assignment.target, dst.cols, dst.cols);
  return add(role, op, assignment.target);
}

Op& KernelBuilder::tri_inverse(const std::string& role, const View& dst, const View& src, const std::string& step) {
  Op op;
  op.kind = OpKind::tri_inverse;
  op.step = step;
  op.operands = {resolve(dst, Access::write), resolve(src, Access::read)};
  return add(role, op, dst.name_);
}

Kernel KernelBuilder::finish() && { return std::move(kernel_); }

WarpGrid grid_for(int rows, int cols, int warps, int col_parts) {
  WarpGrid grid;
  grid.rows = std::min(warps, rows / kRowBlock);
  grid.cols = warps / grid.rows;
  grid.deal_cols = cols / col_parts / grid.cols;
  return grid;
}

}  // namespace gdr
