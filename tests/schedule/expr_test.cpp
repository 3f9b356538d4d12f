#include "schedule/expr.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.hpp"

using gdr::Assignment;
using gdr::Condition;
using gdr::Expr;
using gdr::ExprKind;
using gdr::IndexKind;

namespace {

std::string show(IndexKind index) {
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

// The tree in prefix form: what was parsed, without precedence or blanks to be read into it.
std::string show(const Expr& expr) {
  const auto list = [&](const std::string& head) {
    std::string out = "(";
    out += head;
    for (const Expr& argument : expr.arguments) out.append(" ").append(show(argument));
    return out + ")";
  };
  switch (expr.kind) {
    case ExprKind::number: {
      std::string text = std::to_string(expr.number);
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
      return text;
    }
    case ExprKind::scale:
      return "scale";
    case ExprKind::element:
      return expr.name + "[" + show(expr.index) + "]";
    case ExprKind::negate:
      return list("neg");
    case ExprKind::add:
      return list("+");
    case ExprKind::subtract:
      return list("-");
    case ExprKind::multiply:
      return list("*");
    case ExprKind::divide:
      return list("/");
    case ExprKind::call:
      break;
  }
  switch (expr.condition) {
    case Condition::none:
      return list(expr.name);
    case Condition::i_ge_j:
      return list(expr.name + " i>=j");
    case Condition::i_gt_j:
      return list(expr.name + " i>j");
    case Condition::greater:
      return list(expr.name + " >");
  }
  return "?";
}

std::string message_of(const std::string& text, bool assignment) {
  try {
    if (assignment) {
      gdr::parse_assignment(text);
    } else {
      gdr::parse_expr(text);
    }
  } catch (const gdr::Error& error) {
    CHECK(error.kind() == gdr::ErrorKind::config);
    CHECK(std::string(error.code()) == "GDR-S01");
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("expressions parse with the usual precedence") {
  struct Row {
    const char* text;
    const char* tree;
  };
  const Row rows[] = {
      {"1", "1"},
      {" 0.5 ", "0.5"},
      {"2.5e2", "250"},
      {"scale", "scale"},
      {"a[i]", "a[i]"},
      {"a_1[ i , j ]", "a_1[i,j]"},
      {"a[j] + b[l] - c[0]", "(- (+ a[j] b[l]) c[0])"},
      {"a[i]*b[i]/c[i]", "(/ (* a[i] b[i]) c[i])"},
      {"1-2*3", "(- 1 (* 2 3))"},
      {"(1-2)*3", "(* (- 1 2) 3)"},
      {"-a[i]*b[i]", "(* (neg a[i]) b[i])"},
      {"1--2", "(- 1 (neg 2))"},
      {"- -2", "(neg (neg 2))"},
      {"exp(gam[C-1]-gam[l])", "(exp (- gam[C-1] gam[l]))"},
      {"select(i>=j, x[i,j], 0)", "(select i>=j x[i,j] 0)"},
      {"select(i > j, x[i,j], 0)", "(select i>j x[i,j] 0)"},
      {"select(b[i] > 1e-3, x[i]/b[i], y[i])", "(select > b[i] 0.001 (/ x[i] b[i]) y[i])"},
      {"select(i[j] > 0, 1, 2)", "(select > i[j] 0 1 2)"},  // a tile named i is no condition on indices
      {"prefix(g[j]) + suffix(h[j]) - before(b[j])", "(- (+ (prefix g[j]) (suffix h[j])) (before b[j]))"},
      {"scale*exp(gam[i])*u[i,j]", "(* (* scale (exp gam[i])) u[i,j])"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(show(gdr::parse_expr(row.text)) == row.tree);
  }
}

TEST_CASE("assignments") {
  const Assignment w = gdr::parse_assignment("w[i,j] = v[i,j] - exp(gam[i])*u[i,j]");
  CHECK(w.target == "w");
  CHECK(w.index == IndexKind::ij);
  CHECK(show(w.value) == "(- v[i,j] (* (exp gam[i]) u[i,j]))");
  const Assignment c = gdr::parse_assignment("c[0]=0");
  CHECK(c.target == "c");
  CHECK(c.index == IndexKind::zero);
  CHECK(show(c.value) == "0");
}

TEST_CASE("elements_of lists each element once, in order of appearance") {
  const Expr expr = gdr::parse_expr("select(b[i] > c[0], a[i,j]*b[i], b[j]) + a[i,j]");
  std::vector<std::string> found;
  for (const gdr::ElementUse& use : gdr::elements_of(expr)) found.push_back(use.name + "[" + show(use.index) + "]");
  CHECK(found == std::vector<std::string>{"b[i]", "c[0]", "a[i,j]", "b[j]"});
  CHECK(gdr::elements_of(gdr::parse_expr("2*scale")).empty());
}

TEST_CASE("what is no expression is refused with position and expectation") {
  struct Row {
    const char* text;
    bool assignment;
    const char* message;
  };
  const Row rows[] = {
      {"", false,
       "GDR-S01 expression '': at position 0 found the end; expected a number, scale, name[index], a function or '('."},
      {"a", false,
       "GDR-S01 expression 'a': at position 1 found the end; expected '[' (an element) or '(' (a function) "
       "after 'a'."},
      {"a[k]", false, "GDR-S01 expression 'a[k]': at position 2 found 'k'; expected an index (i,j  i  j  l  0  C-1)."},
      {"a[i,i]", false, "GDR-S01 expression 'a[i,i]': at position 4 found 'i'; expected j."},
      {"a[C-2]", false, "GDR-S01 expression 'a[C-2]': at position 4 found '2'; expected C-1."},
      {"a[i", false, "GDR-S01 expression 'a[i': at position 3 found the end; expected ']'."},
      {"(1+2", false, "GDR-S01 expression '(1+2': at position 4 found the end; expected an operator or ')'."},
      {"1 2", false, "GDR-S01 expression '1 2': at position 2 found '2'; expected an operator or the end."},
      {"2a[i]", false, "GDR-S01 expression '2a[i]': at position 1 found 'a'; expected an operator after the number."},
      {"1.2.3", false, "GDR-S01 expression '1.2.3': at position 3 found '.'; expected an operator after the number."},
      {"1e999", false,
       "GDR-S01 expression '1e999': at position 0 found '1'; expected a number that a double can hold."},
      {"tanh(1)", false,
       "GDR-S01 expression 'tanh(1)': at position 0 'tanh' is no function; allowed are exp, select, prefix, suffix, "
       "before."},
      {"exp()", false,
       "GDR-S01 expression 'exp()': at position 4 found ')'; expected a number, scale, name[index], a function or "
       "'('."},
      {"select(i>=k, 1, 2)", false,
       "GDR-S01 expression 'select(i>=k, 1, 2)': at position 10 found 'k'; expected j (conditions on indices are i>=j "
       "and i>j)."},
      {"select(a[i] < 1, 1, 2)", false,
       "GDR-S01 expression 'select(a[i] < 1, 1, 2)': at position 12 found '<'; expected an operator or '>' and the "
       "right side of the condition."},
      {"select(i>j, 1)", false,
       "GDR-S01 expression 'select(i>j, 1)': at position 13 found ')'; expected ',' and the value where the condition "
       "does not hold."},
      {"1+\n", false,
       "GDR-S01 expression '1+\\x0a': at position 2 found '\\x0a'; expected a number, scale, name[index], a function "
       "or "
       "'('."},
      {"w[i,j]", true, "GDR-S01 expression 'w[i,j]': at position 6 found the end; expected '=' and the value."},
      {"scale[i] = 1", true,
       "GDR-S01 expression 'scale[i] = 1': at position 0 found 's'; expected the name of the assigned tile."},
      {"1 = 1", true, "GDR-S01 expression '1 = 1': at position 0 found '1'; expected the name of the assigned tile."},
      {"a[i] = b[i] = 1", true,
       "GDR-S01 expression 'a[i] = b[i] = 1': at position 12 found '='; expected an operator or the end."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(message_of(row.text, row.assignment) == row.message);
  }
}

TEST_CASE("length and nesting are limited") {
  const std::string open(64, '('), close(64, ')');
  CHECK(message_of(open.substr(1) + "1" + close.substr(1), false) == "accepted");
  CHECK(message_of(open + "1" + close, false).find("at position 64 it is nested more than 64 deep. Split the op.") !=
        std::string::npos);
  CHECK(message_of(std::string(2000, '-') + "1", false).find("nested more than 64 deep") != std::string::npos);
  std::string sum = "1";
  while (sum.size() < 4090) sum += "+1";
  CHECK(message_of(sum, false) == "accepted");
  CHECK(message_of(sum + "+1+1+1+1", false) ==
        "GDR-S01 expression '" + sum.substr(0, 160) +
            "...': is 4099 characters long; at most 4096 are allowed. Split the op.");
}
