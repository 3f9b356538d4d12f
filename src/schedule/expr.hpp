// The small closed language of map, reduce, scan and mma scale factors.
//   assignment  name[index] "=" sum                  (a scale factor is a sum alone)
//   sum         product (("+" | "-") product)*
//   product     unary (("*" | "/") unary)*
//   unary       "-" unary | number | scale | name[index] | function "(" arguments ")" | "(" sum ")"
//   index       i,j (element of a matrix tile) | i | j | l (element of a vector by row, column, contraction) |
//               0 (a scalar) | C-1 (a vector's last element)
//   functions   exp(x)  select(condition, x, y)  prefix(x) suffix(x) before(x) (scan only: sums over the vector up to
//               and with i, from i on, up to and without i)
//   condition   i>=j | i>j | sum ">" sum
// `scale` is the softmax-like scale of the problem, the one run-time scalar. A vector of several rows reads as the sum
// of its rows. select evaluates lazily: exp of a masked argument is never formed.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gdr {

enum class ExprKind { number, scale, element, negate, add, subtract, multiply, divide, call };
enum class IndexKind { ij, i, j, l, zero, last };
enum class Condition { none, i_ge_j, i_gt_j, greater };

struct Expr {
  ExprKind kind = ExprKind::number;
  double number = 0;
  std::string name;  // element: the tile; call: exp, select, prefix, suffix, before
  IndexKind index = IndexKind::ij;
  Condition condition = Condition::none;  // select
  std::vector<Expr> arguments;            // select with `greater`: left, right, then, else
};

struct Assignment {
  std::string target;
  IndexKind index = IndexKind::ij;
  Expr value;
};

// Both throw Error (config, GDR-S01) with the text, the position and what was expected.
Assignment parse_assignment(const std::string& text);
Expr parse_expr(const std::string& text);

struct ElementUse {
  std::string name;
  IndexKind index;
};
// The elements read, in order of appearance, each once.
std::vector<ElementUse> elements_of(const Expr& expr);

}  // namespace gdr
