#include <algorithm>
#include <set>

#include "core/dtype.hpp"
#include "schedule/names.hpp"
#include "verify/footprint.hpp"
#include "verify/form.hpp"

namespace gdr::verifying {
namespace {

constexpr int kBlock = 16;  // of triangular tiles

struct Shape {
  int rows = 0;
  int cols = 0;
  bool operator==(const Shape&) const = default;
};

// As the operation sees it.
Shape shape_of(const Operand& operand) {
  if (operand.transposed) return {operand.cols.size(), operand.rows.size()};
  return {operand.rows.size(), operand.cols.size()};
}

bool covers(const Range& outer, const Range& inner) { return outer.begin <= inner.begin && inner.end <= outer.end; }

bool is_16_bit(DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16; }

bool is_block_aligned(const Range& range) { return range.begin % kBlock == 0 && range.end % kBlock == 0; }

// One op; stops at its first fault, since later rules build on earlier ones.
class OpForm {
 public:
  OpForm(const KernelIndex& index, int i, Findings& findings)
      : index_(index), i_(i), entry_(at(index.ops, i)), op_(index.op(i)), out_(findings) {}

  void check() {
    if (!operands() || !where()) return;
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
  // Kinds an operand may be of.
  enum : unsigned { kSmem = 1, kReg = 2, kTensor = 4 };

  // Reports unless `holds`, with the op in front; gives `holds`.
  template <typename... Args>
  bool require(bool holds, const char* code, fmt::format_string<Args...> format, Args&&... args) {
    if (holds) return true;
    Finding& finding = out_.add(code, "op `{}` ({}, role {}) {}", op_.id, to_string(op_.kind), index_.role_of(i_).name,
                                fmt::format(format, std::forward<Args>(args)...));
    finding.a = {op_.id, index_.role_of(i_).name, -1, -1};
    return false;
  }

  int count() const { return count_of(op_.operands); }
  const Operand& operand(int k) const { return at(op_.operands, k); }
  const Tile& tile(int k) const { return *index_.tile(i_, k); }
  DType dtype(int k) const { return operand(k).is_tensor ? index_.tensor(i_, k)->dtype : tile(k).dtype; }
  unsigned kind(int k) const { return operand(k).is_tensor ? kTensor : index_.is_smem(i_, k) ? kSmem : kReg; }

  // ------------------------------------------------------------------------------------------- all operands

  bool operands() {
    if (!counts()) return false;
    for (int k = 0; k < count(); ++k)
      if (!kind_and_access(k) || !rectangle(k) || !registers(k) || !proxy(k)) return false;
    return masks();
  }

  bool counts() {
    int least = 2, most = 2;
    switch (op_.kind) {
      case OpKind::mma:
        least = 3, most = 8;
        break;
      case OpKind::map:
        least = 1, most = 32;
        break;
      case OpKind::reduce:
      case OpKind::scan:
        most = 32;
        break;
      case OpKind::arrive:
      case OpKind::wait:
      case OpKind::sync:
      case OpKind::fence:
        least = most = 0;
        break;
      default:
        break;
    }
    return require(count() >= least && count() <= most, "GDR-V02", "has {} operands; {} to {} are allowed", count(),
                   least, most);
  }

  unsigned allowed_kinds(int k) const {
    switch (op_.kind) {
      case OpKind::copy_in:
        return k == 0 ? kSmem : kTensor;
      case OpKind::copy_out:
        return k == 0 ? kTensor : kSmem | kReg;
      case OpKind::load:
        return k == 0 ? kReg : kSmem | kTensor;
      case OpKind::store:
        return k == 0 ? kSmem : kReg;
      case OpKind::mma:
        return k == 0 ? kReg : k == 1 ? kSmem | kReg : kSmem;
      case OpKind::map:
        return k == 0 ? (entry_.target_index == IndexKind::ij ? kReg : kSmem) : kSmem | kReg;
      case OpKind::reduce:
        return k == 0 ? kSmem : k == 1 ? kReg : kSmem | kReg;
      case OpKind::scan:
      case OpKind::tri_inverse:
        return kSmem;
      case OpKind::relayout:
        return kReg;
      default:
        return 0;
    }
  }

  bool kind_and_access(int k) {
    const Operand& o = operand(k);
    const char* found = kind(k) == kSmem ? "shared memory" : kind(k) == kReg ? "registers" : "a tensor";
    if (!require((kind(k) & allowed_kinds(k)) != 0, "GDR-V02", "has operand {} ({}) in {}", k, o.name, found))
      return false;
    const bool may_add = op_.kind == OpKind::mma || op_.kind == OpKind::map || op_.kind == OpKind::reduce;
    const bool good =
        k == 0 ? o.access == Access::write || (o.access == Access::accumulate && may_add) : o.access == Access::read;
    if (!require(good, "GDR-V02", "has operand {} ({}) with access {}", k, o.name, to_string(o.access))) return false;
    const bool tensor_fields = o.head_index != 0 || o.v_sliced;
    return require(o.is_tensor || !tensor_fields, "GDR-V02", "has operand {} ({}) with fields of tensors", k, o.name);
  }

  bool rectangle(int k) {
    const Operand& o = operand(k);
    const int rows = o.is_tensor ? index_.tensor(i_, k)->rows : tile(k).rows;
    const int cols = o.is_tensor ? index_.tensor(i_, k)->cols : tile(k).cols;
    Range rows_allowed{0, rows};
    if (!o.is_tensor) {
      const int parts = tile(k).parts;
      if (!require(o.part >= 0 && o.part < parts, "GDR-V16", "names part {} of {}, which has {}", o.part, o.name,
                   parts))
        return false;
      rows_allowed = {o.part * (rows / parts), (o.part + 1) * (rows / parts)};
    }
    const bool inside =
        o.rows.size() > 0 && o.cols.size() > 0 && covers(rows_allowed, o.rows) && covers({0, cols}, o.cols);
    if (!require(inside, "GDR-V16", "touches rows {}..{} and columns {}..{} of {}; it has rows {}..{}{} and {} columns",
                 o.rows.begin, o.rows.end, o.cols.begin, o.cols.end, o.name, rows_allowed.begin, rows_allowed.end,
                 rows_allowed.size() < rows ? fmt::format(" in part {}", o.part) : "", cols))
      return false;
    if (!o.is_tensor) return true;
    const Kernel& kernel = *index_.kernel;
    const bool sliced_grid = std::count(kernel.grid.begin(), kernel.grid.end(), GridAxis::v_slice) > 0;
    return require(!o.v_sliced || (sliced_grid && o.cols.size() == kernel.v_slice_cols && o.cols.begin == 0 &&
                                   cols % o.cols.size() == 0),
                   "GDR-V03", "takes a slice of {} columns of {} [{} columns]; the kernel's slices have {}",
                   o.cols.size(), o.name, cols, sliced_grid ? kernel.v_slice_cols : 0);
  }

  bool registers(int k) {
    if (kind(k) != kReg) return true;
    const std::string& own = index_.role_of(i_).name;
    return require(tile(k).role == own, "GDR-V04", "uses register tile {} of role {}", tile(k).name, tile(k).role) &&
           require(!operand(k).transposed, "GDR-V02", "transposes register tile {}", tile(k).name);
  }

  // Bulk and tensor copies reach shared memory through the asynchronous proxy, everything else through the generic one.
  bool proxy(int k) {
    const bool bulk = op_.mechanism == Mechanism::bulk || op_.mechanism == Mechanism::tensor;
    const Proxy expected = bulk && kind(k) == kSmem ? Proxy::async : Proxy::generic;
    return require(operand(k).proxy == expected, "GDR-V02", "reaches {} through the {} proxy; its mechanism is {}",
                   operand(k).name, to_string(operand(k).proxy), to_string(op_.mechanism));
  }

  bool masks() {
    const Mask given[] = {op_.mask_d, op_.mask_a, op_.mask_b};
    for (int k = 0; k < 3; ++k) {
      if (given[k] == Mask::none) continue;
      const bool allowed = op_.kind == OpKind::mma || (op_.kind == OpKind::map && k == 0);
      if (!require(allowed && k < count(), "GDR-V07", "has a mask on operand {}", k)) return false;
      const Tile& masked = tile(k);
      const bool triangular = masked.rows == masked.cols && masked.rows % kBlock == 0 &&
                              is_block_aligned(operand(k).rows) && is_block_aligned(operand(k).cols);
      if (!require(triangular, "GDR-V07",
                   "masks {} [{} x {}] rows {}..{}; only whole 16 x 16 blocks of a square tile "
                   "can be masked",
                   masked.name, masked.rows, masked.cols, operand(k).rows.begin, operand(k).rows.end))
        return false;
    }
    return true;
  }

  // ---------------------------------------------------------------------------------------------- tensors

  // Rows of a token tensor past the sequence's end do not exist: whoever touches them says what happens then.
  bool where() {
    int token = -1, tensor = -1;
    for (int k = 0; k < count(); ++k)
      if (operand(k).is_tensor) {
        tensor = k;
        if (index_.tensor(i_, k)->index == TensorIndex::token) token = k;
      }
    if (!require(token < 0 || op_.where == Where::row_valid, "GDR-V07",
                 "touches token tensor {} and does not say `where` row_valid: rows past the end of the sequence",
                 token < 0 ? "" : operand(token).name))
      return false;
    const bool may_say = tensor >= 0 && (token >= 0 || op_.kind != OpKind::copy_out);
    return require(op_.where == Where::all || may_say, "GDR-V07",
                   "says `where` row_valid, which belongs to reads and to writes of token tensors");
  }

  bool same_shape(int a, int b) {
    const Shape x = shape_of(operand(a)), y = shape_of(operand(b));
    return require(x == y, "GDR-V03", "sees {} as {} x {} and {} as {} x {}", operand(a).name, x.rows, x.cols,
                   operand(b).name, y.rows, y.cols);
  }

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

  // ------------------------------------------------------------------------------------------- arithmetic

  // Every element of the two rectangles, paired by position, is owned by one and the same warp.
  bool same_owner(int a, int b) {
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
    if (!require(tile(1).reg.kind == RegKind::a, "GDR-V02", "multiplies by accumulator {}; a relayout makes fragments",
                 a.name))
      return false;
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

  // ------------------------------------------------------------------------------------------- expressions

  // The expression reads exactly the operands from `first` on (and the target, where allowed), each operand once.
  bool names_agree(int first) {
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

  // [i,j] elements lie where those of operand `domain` lie.
  bool elements(int domain) {
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

  // Elements read under i, j, l, 0, C-1: of vectors in shared memory, all partial rows, inside the operand's columns.
  bool vectors(const Range& i, const Range& j, const Range& l) {
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
    return indices_allowed();
  }

  // [i,j] in a vector's expression or a scale factor means nothing.
  bool indices_allowed() {
    const bool matrix = (op_.kind == OpKind::map && entry_.target_index == IndexKind::ij) || op_.kind == OpKind::reduce;
    for (const ElementUse& use : entry_.uses)
      if (!require(matrix || use.index != IndexKind::ij, "GDR-V06", "reads {}[i,j]; it has no matrix elements",
                   use.name))
        return false;
    return op_.kind != OpKind::mma || !entry_.expr || functions(*entry_.expr);
  }

  // Running sums belong to scan; conditions on i and j to matrix elements.
  bool functions(const Expr& expr) {
    const bool matrix = (op_.kind == OpKind::map && entry_.target_index == IndexKind::ij) || op_.kind == OpKind::reduce;
    const bool sums = expr.kind == ExprKind::call && expr.name != "exp" && expr.name != "select";
    const bool on_indices = expr.condition == Condition::i_ge_j || expr.condition == Condition::i_gt_j;
    if (!require(!sums || op_.kind == OpKind::scan, "GDR-V06", "uses {}, which belongs to scan", expr.name) ||
        !require(!on_indices || matrix, "GDR-V06", "has a condition on i and j; it has no matrix elements"))
      return false;
    return std::all_of(expr.arguments.begin(), expr.arguments.end(), [&](const Expr& e) { return functions(e); });
  }

  const KernelIndex& index_;
  int i_;
  const OpIndex& entry_;
  const Op& op_;
  Findings& out_;
};

}  // namespace

void check_op_forms(const KernelIndex& index, Findings& findings) {
  for (int i = 0; i < count_of(index.ops); ++i) OpForm(index, i, findings).check();
}

}  // namespace gdr::verifying
