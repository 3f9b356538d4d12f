#include "verify/form_op.hpp"

#include <algorithm>
#include <set>

#include "verify/footprint.hpp"

namespace gdr::verifying {

Shape shape_of(const Operand& operand) {
  if (operand.transposed) return {operand.cols.size(), operand.rows.size()};
  return {operand.rows.size(), operand.cols.size()};
}

bool covers(const Range& outer, const Range& inner) { return outer.begin <= inner.begin && inner.end <= outer.end; }

bool is_block_aligned(const Range& range) {
  constexpr int kBlock = 16;
  return range.begin % kBlock == 0 && range.end % kBlock == 0;
}

void OpForm::report(const char* code, const std::string& what) {
  const std::string& role = index_.role_of(i_).name;
  Finding& finding = out_.add(code, "op `{}` ({}, role {}) {}", op_.id, to_string(op_.kind), role, what);
  finding.a = {op_.id, role, -1, -1};
}

bool OpForm::has_matrix_elements() const {
  return (op_.kind == OpKind::map && entry_.target_index == IndexKind::ij) || op_.kind == OpKind::reduce;
}

bool OpForm::same_shape(int a, int b) {
  const Shape x = shape_of(operand(a)), y = shape_of(operand(b));
  return require(x == y, "GDR-V03", "sees {} as {} x {} and {} as {} x {}", operand(a).name, x.rows, x.cols,
                 operand(b).name, y.rows, y.cols);
}

bool OpForm::same_owner(int a, int b) {
  const auto relative = [&](int k, int warp) {
    Share share = share_of(tile(k), operand(k), warp);
    const Operand& o = operand(k);
    share.rows = {share.rows.begin - o.rows.begin, share.rows.end - o.rows.begin};
    for (Range& run : share.cols) run = {run.begin - o.cols.begin, run.end - o.cols.begin};
    return share;
  };
  for (int warp = 0; warp < index_.role_of(i_).warps; ++warp) {
    const Share x = relative(a, warp), y = relative(b, warp);
    const bool same = (x.empty() && y.empty()) || (x.rows == y.rows && x.cols == y.cols);
    if (!require(same, "GDR-V04",
                 "pairs elements of {} and {} that different warps own (warp {} owns other elements "
                 "of one than of the other)",
                 operand(a).name, operand(b).name, warp))
      return false;
  }
  return true;
}

bool OpForm::names_agree(int first) {
  std::set<std::string> given;
  for (int k = first; k < count(); ++k)
    if (!require(
            given.insert(operand(k).name).second && (op_.kind == OpKind::mma || operand(k).name != operand(0).name),
            "GDR-V06", "has operand {} twice", operand(k).name))
      return false;
  std::set<std::string> read;
  for (const ElementUse& use : entry_.uses)
    if (use.name != entry_.target) read.insert(use.name);
  for (const std::string& name : read)
    if (!require(given.contains(name), "GDR-V06", "reads {} in its expression, which is no operand", name))
      return false;
  for (const std::string& name : given)
    if (!require(read.contains(name), "GDR-V06", "has operand {}, which its expression does not read", name))
      return false;
  return true;
}

bool OpForm::elements(int domain) {
  for (int k = 0; k < count(); ++k)
    for (const ElementUse& use : entry_.uses) {
      const Operand& o = operand(k);
      if (use.name != o.name || use.index != IndexKind::ij) continue;
      if (!require(!o.transposed && o.rows == operand(domain).rows && o.cols == operand(domain).cols, "GDR-V03",
                   "reads {} at rows {}..{}, columns {}..{}; its domain is rows {}..{}, columns {}..{}", o.name,
                   o.rows.begin, o.rows.end, o.cols.begin, o.cols.end, operand(domain).rows.begin,
                   operand(domain).rows.end, operand(domain).cols.begin, operand(domain).cols.end))
        return false;
    }
  return true;
}

bool OpForm::vectors(const Range& i, const Range& j, const Range& l) {
  for (int k = 0; k < count(); ++k)
    for (const ElementUse& use : entry_.uses) {
      const Operand& o = operand(k);
      if (use.name != o.name || use.index == IndexKind::ij || (k == 0 && op_.kind != OpKind::mma)) continue;
      if (op_.kind == OpKind::mma && k < 3) continue;
      const Range none{0, 0};
      Range elements = use.index == IndexKind::i ? i : use.index == IndexKind::j ? j : none;
      if (use.index == IndexKind::l) elements = l;
      if (use.index == IndexKind::zero) elements = {0, 1};
      if (use.index == IndexKind::last) elements = {tile(k).cols - 1, tile(k).cols};
      if (!require(elements != none, "GDR-V06", "reads {} under an index that has no meaning here", o.name))
        return false;
      if (!require(kind(k) == kSmem && o.rows == Range{0, tile(k).rows} && !o.transposed, "GDR-V02",
                   "reads {} as a vector; it must be in shared memory, all its partial rows", o.name) ||
          !require(covers(o.cols, elements), "GDR-V16", "reads elements {}..{} of {}; its operand has {}..{}",
                   elements.begin, elements.end, o.name, o.cols.begin, o.cols.end))
        return false;
    }
  return true;
}

bool OpForm::functions(const Expr& expr) {
  const bool matrix = has_matrix_elements();
  const bool sums = expr.kind == ExprKind::call && expr.name != "exp" && expr.name != "select";
  const bool on_indices = expr.condition == Condition::i_ge_j || expr.condition == Condition::i_gt_j;
  if (!require(!sums || op_.kind == OpKind::scan, "GDR-V06", "uses {}, which belongs to scan", expr.name) ||
      !require(!on_indices || matrix, "GDR-V06", "has a condition on i and j; it has no matrix elements"))
    return false;
  return std::all_of(expr.arguments.begin(), expr.arguments.end(), [&](const Expr& e) { return functions(e); });
}

}  // namespace gdr::verifying
