#include "emit/expression.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace gdr {
namespace {

class Writer {
 public:
  Writer(const ElementText& element, std::vector<RunningSum>* sums) : element_(element), sums_(sums) {}

  std::string text(const Expr& e) const {
    switch (e.kind) {
      case ExprKind::number:
        return number(e.number);
      case ExprKind::scale:
        return "args.scale";
      case ExprKind::element:
        return element_(e.name, e.index);
      case ExprKind::negate:
        return "-" + text(e.arguments[0]);
      case ExprKind::add:
        return infix(e, "+");
      case ExprKind::subtract:
        return infix(e, "-");
      case ExprKind::multiply:
        return infix(e, "*");
      case ExprKind::divide:
        return infix(e, "/");
      case ExprKind::call:
        return call(e);
    }
    return {};
  }

 private:
  static std::string number(double value) {
    std::string digits = fmt::format("{}", static_cast<float>(value));
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits + "f";
  }

  // The arguments' texts from left to right: each may append a sum, and compilers differ in the order of a call's
  // arguments.
  std::vector<std::string> texts(const std::vector<Expr>& arguments) const {
    std::vector<std::string> result;
    for (const Expr& argument : arguments) result.push_back(text(argument));
    return result;
  }

  std::string infix(const Expr& e, const char* sign) const {
    const std::vector<std::string> of = texts(e.arguments);
    return fmt::format("({} {} {})", of[0], sign, of[1]);
  }

  std::string call(const Expr& e) const {
    if (e.name == "exp") return fmt::format("exp_of({})", text(e.arguments[0]));
    if (e.name == "select") {
      const std::vector<std::string> of = texts(e.arguments);
      const bool compares = e.condition == Condition::greater;
      const std::string condition = compares                           ? fmt::format("{} > {}", of[0], of[1])
                                    : e.condition == Condition::i_ge_j ? "i >= j"
                                                                       : "i > j";
      const std::size_t first = compares ? 2 : 0;
      return fmt::format("choose({}, {}, {})", condition, of[first], of[first + 1]);
    }
    internal_check(sums_ != nullptr, "a running sum outside a scan");
    sums_->push_back({e.name, text(e.arguments[0])});
    return fmt::format("sum{}.at(sum{}, i)", sums_->size() - 1, sums_->size() - 1);
  }

  const ElementText& element_;
  std::vector<RunningSum>* sums_;
};

}  // namespace

std::string expression_text(const Expr& expr, const ElementText& element, std::vector<RunningSum>* sums) {
  return Writer(element, sums).text(expr);
}

}  // namespace gdr
