#include "core/dtype.hpp"
#include "verify/footprint.hpp"
#include "verify/form.hpp"
#include "verify/form_op.hpp"

namespace gdr::verifying {
namespace {

bool is_16_bit(DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16; }

// What each kind of op asks of its operands together.
class KindForm : public OpForm {
 public:
  using OpForm::OpForm;

  void check() {
    if (!check_operands(index_, i_, out_)) return;
    switch (op_.kind) {
      case OpKind::copy_in:
      case OpKind::copy_out:
        copy();
        break;
      case OpKind::load:
        transfer(0, 1);
        break;
      case OpKind::store:
        transfer(1, 0);
        break;
      case OpKind::relayout:
        relayout();
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
        scan();
        break;
      case OpKind::tri_inverse:
        tri_inverse();
        break;
      case OpKind::arrive:
      case OpKind::wait:
      case OpKind::sync:
      case OpKind::fence:
        break;
    }
  }

 private:
  void copy() {
    const bool in = op_.kind == OpKind::copy_in;
    const Mechanism m = op_.mechanism;
    const bool bulk = m == Mechanism::bulk || m == Mechanism::tensor;
    const bool good = in ? m != Mechanism::none : m == Mechanism::plain || (bulk && kind(1) == kSmem);
    if (!require(good, "GDR-V02", "has mechanism {}", to_string(m))) return;
    const int on_chip = in ? 0 : 1;
    if (!require(!operand(on_chip).transposed, "GDR-V02", "transposes {}; a copy transposes the tensor",
                 operand(on_chip).name))
      return;
    if (!same_shape(0, 1)) return;
    // Only what passes through registers can be converted.
    require(dtype(0) == dtype(1) || (!in && !bulk) || m == Mechanism::plain, "GDR-V02",
            "copies {} ({}) to {} ({}); {} cannot convert", operand(1).name, to_string(dtype(1)), operand(0).name,
            to_string(dtype(0)), to_string(m));
  }

  void transfer(int reg, int other) {
    if (same_shape(reg, other)) no_mechanism();
  }

  bool no_mechanism() {
    return require(op_.mechanism == Mechanism::none || op_.mechanism == Mechanism::plain, "GDR-V02",
                   "has mechanism {}, which belongs to copies", to_string(op_.mechanism));
  }

  void relayout() {
    if (no_mechanism() && same_shape(0, 1)) same_owner(0, 1);
  }

  void mma() {
    const Operand &d = operand(0), &a = operand(1), &b = operand(2);
    const Shape sd = shape_of(d), sa = shape_of(a), sb = shape_of(b);
    if (!require(sa.rows == sd.rows && sb.cols == sd.cols && sa.cols == sb.rows, "GDR-V03",
                 "multiplies {} ({} x {}) by {} ({} x {}) into {} ({} x {})", a.name, sa.rows, sa.cols, b.name, sb.rows,
                 sb.cols, d.name, sd.rows, sd.cols))
      return;
    const int run_unit = is_16_bit(dtype(1)) ? 16 : 8;  // contraction of mma.sync for 16-bit and tf32 operands
    if (!require(sa.cols % (op_.slices * run_unit) == 0, "GDR-V03",
                 "cuts a contraction of {} into {} slices; each must be a multiple of {}", sa.cols, op_.slices,
                 run_unit) ||
        !require(tile(0).reg.kind == RegKind::acc, "GDR-V02", "accumulates in {}, which is no accumulator", d.name) ||
        !require(kind(1) != kReg || tile(1).reg.kind == RegKind::a, "GDR-V02",
                 "multiplies by accumulator {}; a relayout makes fragments", a.name) ||
        !require(dtype(1) == dtype(2), "GDR-V02", "multiplies {} by {}", to_string(dtype(1)), to_string(dtype(2))))
      return;
    if (kind(1) == kReg && !a_owned()) return;
    for (const int k : {1, 2}) {
      const bool lower16 = kind(k) == kSmem && tile(k).smem.lower16;
      if (!require(!lower16 || (k == 1 ? op_.mask_a : op_.mask_b) == Mask::lower, "GDR-V16",
                   "reads blocks above the diagonal of {}, which keeps none; it needs a mask", operand(k).name))
        return;
    }
    if (!require(entry_.expr.has_value() || count() == 3, "GDR-V06", "has vectors and no scale_expr")) return;
    if (!names_agree(3)) return;
    vectors({}, {}, contraction_of(op_, 1));
  }

  // A fragments are read where they lie: a warp needs the whole contraction of its rows.
  bool a_owned() {
    const Operand &d = operand(0), &a = operand(1);
    for (int warp = 0; warp < index_.role_of(i_).warps; ++warp) {
      const Share need = share_of(tile(0), d, warp), have = share_of(tile(1), a, warp);
      if (need.empty()) continue;
      const int shift = a.rows.begin - d.rows.begin;
      const bool owned = !have.empty() && covers(have.rows, {need.rows.begin + shift, need.rows.end + shift}) &&
                         have.cols.size() == 1 && have.cols.front() == a.cols;
      if (!require(owned, "GDR-V04",
                   "needs rows {}..{} of {} over the whole contraction in warp {}, which does not own "
                   "them",
                   need.rows.begin + shift, need.rows.end + shift, a.name, warp))
        return false;
    }
    return true;
  }

  void map() {
    if (!no_mechanism() || !functions(*entry_.expr)) return;
    if (!require(operand(0).name == entry_.target, "GDR-V06", "assigns {}; its first operand is {}", entry_.target,
                 operand(0).name) ||
        !names_agree(1))
      return;
    bool reads_target = false;
    for (const ElementUse& use : entry_.uses) reads_target |= use.name == entry_.target;
    if (!require(reads_target == (operand(0).access == Access::accumulate), "GDR-V06",
                 "{} its target {} and has access {}", reads_target ? "reads" : "does not read", entry_.target,
                 to_string(operand(0).access)))
      return;
    if (entry_.target_index == IndexKind::ij) {
      for (int k = 1; k < count(); ++k)
        if (kind(k) == kReg && !same_owner(0, k)) return;
      if (elements(0)) vectors(operand(0).rows, operand(0).cols, {});
    } else if (vector_target()) {
      vectors(operand(0).cols, operand(0).cols, {});
    }
  }

  // map and scan write one row of fp32, indexed as the target says.
  bool vector_target() {
    const IndexKind index = entry_.target_index;
    if (!require(tile(0).rows == 1 && dtype(0) == DType::fp32, "GDR-V03",
                 "writes vector {} of {} rows of {}; it must be "
                 "one row of fp32",
                 entry_.target, tile(0).rows, to_string(dtype(0))))
      return false;
    if (!require(index == IndexKind::i || index == IndexKind::j ||
                     (index == IndexKind::zero && operand(0).cols == Range{0, 1}),
                 "GDR-V06", "assigns a vector; the index must be i, j, or 0 for its first element alone"))
      return false;
    for (const ElementUse& use : entry_.uses) {
      const bool element = use.index == index || use.index == IndexKind::zero || use.index == IndexKind::last;
      if (!require(element && (use.name != entry_.target || use.index == index), "GDR-V06",
                   "reads {} under another index than it assigns {}", use.name, entry_.target))
        return false;
    }
    return true;
  }

  void reduce() {
    const RegLayout& grid = tile(1).reg;
    struct Form {
      IndexKind index;
      int partials;
      Range elements;
    };
    Form form{IndexKind::zero, index_.role_of(i_).warps, {0, 1}};
    if (op_.axis == ReduceAxis::cols) form = {IndexKind::i, grid.grid_cols, operand(1).rows};
    if (op_.axis == ReduceAxis::rows) form = {IndexKind::j, grid.grid_rows, operand(1).cols};
    const Operand& dst = operand(0);
    if (!no_mechanism() || !functions(*entry_.expr) ||
        !require(op_.axis != ReduceAxis::none, "GDR-V02", "says no axis") ||
        !require(dst.name == entry_.target && entry_.target_index == form.index, "GDR-V06",
                 "assigns {} under an index that does not belong to axis {}", entry_.target, to_string(op_.axis)) ||
        !require(dtype(0) == DType::fp32 && tile(0).rows == form.partials && dst.rows == Range{0, form.partials} &&
                     dst.cols == form.elements,
                 "GDR-V03",
                 "writes rows {}..{}, elements {}..{} of {} [{} x {}, {}]; axis {} makes {} partial rows of "
                 "elements {}..{}, fp32",
                 dst.rows.begin, dst.rows.end, dst.cols.begin, dst.cols.end, dst.name, tile(0).rows, tile(0).cols,
                 to_string(dtype(0)), to_string(op_.axis), form.partials, form.elements.begin, form.elements.end))
      return;
    // The first register tile gives the domain, whether the expression reads it or not.
    bool reads_domain = false, reads_target = false;
    for (const ElementUse& use : entry_.uses) {
      reads_domain |= use.name == operand(1).name;
      reads_target |= use.name == entry_.target;
    }
    if (!require(!reads_target, "GDR-V06", "reads its own target {}", entry_.target) ||
        !names_agree(reads_domain ? 1 : 2))
      return;
    for (int k = 2; k < count(); ++k)
      if (kind(k) == kReg && !same_owner(1, k)) return;
    if (elements(1)) vectors(operand(1).rows, operand(1).cols, {});
  }

  void scan() {
    if (!no_mechanism() ||
        !require(operand(0).name == entry_.target, "GDR-V06", "assigns {}; its first operand is {}", entry_.target,
                 operand(0).name) ||
        !names_agree(1) || !vector_target() || !functions(*entry_.expr))
      return;
    for (const ElementUse& use : entry_.uses)
      if (!require(use.name != entry_.target, "GDR-V06", "reads its own target {}", entry_.target)) return;
    vectors(operand(0).cols, operand(0).cols, {});
  }

  void tri_inverse() {
    if (!no_mechanism() || !same_shape(0, 1)) return;
    require(dtype(1) == DType::fp32, "GDR-V02", "reads {} in {}; it must be fp32", operand(1).name,
            to_string(dtype(1)));
    for (const int k : {0, 1}) {
      const Operand& o = operand(k);
      if (!require(!o.transposed && o.rows == o.cols && is_block_aligned(o.rows), "GDR-V03",
                   "inverts rows {}..{}, columns {}..{} of {}; it takes whole 16 x 16 blocks on the diagonal",
                   o.rows.begin, o.rows.end, o.cols.begin, o.cols.end, o.name))
        return;
    }
  }
};

}  // namespace

void check_op_forms(const KernelIndex& index, Findings& findings) {
  for (int i = 0; i < count_of(index.ops); ++i) KindForm(index, i, findings).check();
}

}  // namespace gdr::verifying
