#include <algorithm>

#include "verify/form_op.hpp"

namespace gdr::verifying {
namespace {

// Not empty, and inside. (The numbers are whatever the plan says: no difference may be formed before.)
bool is_in(const Range& range, const Range& allowed) { return range.begin < range.end && covers(allowed, range); }

class OperandForm : public OpForm {
 public:
  using OpForm::OpForm;

  bool check() {
    if (!counts()) return false;
    for (int k = 0; k < count(); ++k)
      if (!kind_and_access(k) || !rectangle(k) || !registers(k) || !proxy(k)) return false;
    return masks() && where();
  }

 private:
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
    const bool inside = is_in(o.rows, rows_allowed) && is_in(o.cols, {0, cols});
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
      const bool triangular = masked.rows == masked.cols && is_block_aligned({0, masked.rows}) &&
                              is_block_aligned(operand(k).rows) && is_block_aligned(operand(k).cols);
      if (!require(triangular, "GDR-V07",
                   "masks {} [{} x {}] rows {}..{}; only whole 16 x 16 blocks of a square tile "
                   "can be masked",
                   masked.name, masked.rows, masked.cols, operand(k).rows.begin, operand(k).rows.end))
        return false;
    }
    return true;
  }

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
};

}  // namespace

bool check_operands(const KernelIndex& index, int op, Findings& findings) {
  return OperandForm(index, op, findings).check();
}

}  // namespace gdr::verifying
