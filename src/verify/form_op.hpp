// What the checks of one op's form share: its operands and how they lie, the rules of expressions. Each op stops at its
// first fault, since later rules build on earlier ones.
#pragma once

#include <string>
#include <utility>

#include "schedule/names.hpp"
#include "verify/index.hpp"

namespace gdr::verifying {

struct Shape {
  int rows = 0;
  int cols = 0;
  bool operator==(const Shape&) const = default;
};
// As the operation sees it.
Shape shape_of(const Operand& operand);

bool covers(const Range& outer, const Range& inner);
// Whole 16 x 16 blocks of a triangular tile.
bool is_block_aligned(const Range& range);

class OpForm {
 public:
  OpForm(const KernelIndex& index, int op, Findings& findings)
      : index_(index), i_(op), entry_(at(index.ops, op)), op_(index.op(op)), out_(findings) {}

 protected:
  // Kinds an operand may be of.
  enum : unsigned { kSmem = 1, kReg = 2, kTensor = 4 };

  // Reports unless `holds`, with the op in front; gives `holds`.
  template <typename... Args>
  bool require(bool holds, const char* code, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds) report(code, fmt::format(format, std::forward<Args>(args)...));
    return holds;
  }

  int count() const { return count_of(op_.operands); }
  const Operand& operand(int k) const { return at(op_.operands, k); }
  const Tile& tile(int k) const { return *index_.tile(i_, k); }
  DType dtype(int k) const { return operand(k).is_tensor ? index_.tensor(i_, k)->dtype : tile(k).dtype; }
  unsigned kind(int k) const { return operand(k).is_tensor ? kTensor : index_.is_smem(i_, k) ? kSmem : kReg; }

  bool same_shape(int a, int b);
  // Every element of the two rectangles, paired by position, is owned by one and the same warp.
  bool same_owner(int a, int b);

  // The expression reads exactly the operands from `first` on (and the target, where allowed), each operand once.
  bool names_agree(int first);
  // [i,j] elements lie where those of operand `domain` lie.
  bool elements(int domain);
  // Elements read under i, j, l, 0, C-1: of vectors in shared memory, all partial rows, inside the operand's columns.
  bool vectors(const Range& i, const Range& j, const Range& l);
  // Running sums belong to scan; conditions on i and j, and elements [i,j], to matrix elements.
  bool functions(const Expr& expr);

  const KernelIndex& index_;
  int i_;
  const OpIndex& entry_;
  const Op& op_;
  Findings& out_;

 private:
  void report(const char* code, const std::string& what);
  bool has_matrix_elements() const;
};

// Number, kind, access, rectangle, owner, proxy, mask and `where` of the op's operands. True if all are in order.
bool check_operands(const KernelIndex& index, int op, Findings& findings);

}  // namespace gdr::verifying
