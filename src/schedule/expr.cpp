// A recursive-descent parser: one function per rule of the grammar in expr.hpp. Plan files come from outside, so text
// length and nesting are limited and every error names the text, the position and what was expected.
#include "schedule/expr.hpp"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace gdr {
namespace {

constexpr std::size_t kMaxTextChars = 4096;  // bounds the depth of left-leaning sums
constexpr int kMaxNesting = 64;              // parentheses, calls and signs inside each other

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

// Printable ASCII as it is, anything else as \xNN: the text goes into messages.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string quoted(const std::string& text) {
  constexpr std::size_t kShown = 160;
  if (text.size() <= kShown) return fmt::format("'{}'", printable(text));
  return fmt::format("'{}...'", printable(std::string_view(text).substr(0, kShown)));
}

Expr node(ExprKind kind, std::vector<Expr> arguments) {
  Expr expr;
  expr.kind = kind;
  expr.arguments = std::move(arguments);
  return expr;
}

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {
    if (text_.size() > kMaxTextChars) {
      fail(ErrorKind::config, "GDR-S01", "expression {}: is {} characters long; at most {} are allowed. Split the op.",
           quoted(text_), text_.size(), kMaxTextChars);
    }
  }

  Assignment assignment() {
    Assignment result;
    const std::size_t start = next();
    result.target = name();
    if (result.target.empty() || result.target == "scale") unexpected_at(start, "the name of the assigned tile");
    expect('[', "'[' and an index");
    result.index = index();
    expect('=', "'=' and the value");
    result.value = sum();
    end();
    return result;
  }

  Expr expression() {
    Expr result = sum();
    end();
    return result;
  }

 private:
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxNesting) {
        fail(ErrorKind::config, "GDR-S01",
             "expression {}: at position {} it is nested more than {} deep. Split the op.", quoted(parser_.text_),
             parser_.at_, kMaxNesting);
      }
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  [[noreturn]] void unexpected_at(std::size_t at, std::string_view expected) const {
    const std::string found =
        at < text_.size() ? fmt::format("'{}'", printable(std::string_view(text_).substr(at, 1))) : "the end";
    fail(ErrorKind::config, "GDR-S01", "expression {}: at position {} found {}; expected {}.", quoted(text_), at, found,
         expected);
  }
  [[noreturn]] void unexpected(std::string_view expected) { unexpected_at(next(), expected); }

  // Skips blanks; the position of the next token.
  std::size_t next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_;
  }
  char peek() { return next() < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view what) {
    if (!accept(c)) unexpected(what);
  }
  void end() {
    if (next() < text_.size()) unexpected("an operator or the end");
  }
  std::string name() {
    std::string result;
    if (!is_name_start(peek())) return result;
    while (at_ < text_.size() && is_name(text_[at_])) result += text_[at_++];
    return result;
  }

  // Behind '['; takes the ']' too.
  IndexKind index() {
    constexpr std::string_view kAllowed = "an index (i,j  i  j  l  0  C-1)";
    const std::size_t start = next();
    IndexKind result = IndexKind::zero;
    if (accept('0')) {
      result = IndexKind::zero;
    } else {
      const std::string letter = name();
      if (letter == "i") {
        result = IndexKind::i;
        if (accept(',')) {
          const std::size_t second = next();
          if (name() != "j") unexpected_at(second, "j");
          result = IndexKind::ij;
        }
      } else if (letter == "j") {
        result = IndexKind::j;
      } else if (letter == "l") {
        result = IndexKind::l;
      } else if (letter == "C") {
        expect('-', "C-1");
        expect('1', "C-1");
        result = IndexKind::last;
      } else {
        unexpected_at(start, kAllowed);
      }
    }
    expect(']', "']'");
    return result;
  }

  Expr sum() {
    const Nested nested(*this);
    Expr left = product();
    for (;;) {
      if (accept('+')) {
        left = binary(ExprKind::add, std::move(left), product());
      } else if (accept('-')) {
        left = binary(ExprKind::subtract, std::move(left), product());
      } else {
        return left;
      }
    }
  }

  Expr product() {
    Expr left = unary();
    for (;;) {
      if (accept('*')) {
        left = binary(ExprKind::multiply, std::move(left), unary());
      } else if (accept('/')) {
        left = binary(ExprKind::divide, std::move(left), unary());
      } else {
        return left;
      }
    }
  }

  static Expr binary(ExprKind kind, Expr left, Expr right) {
    std::vector<Expr> arguments;
    arguments.push_back(std::move(left));
    arguments.push_back(std::move(right));
    return node(kind, std::move(arguments));
  }

  Expr unary() {
    if (accept('-')) {
      const Nested nested(*this);
      std::vector<Expr> arguments;
      arguments.push_back(unary());
      return node(ExprKind::negate, std::move(arguments));
    }
    if (accept('(')) {
      Expr inner = sum();
      expect(')', "an operator or ')'");
      return inner;
    }
    if (is_digit(peek())) return number();
    const std::size_t start = next();
    const std::string word = name();
    if (word.empty()) unexpected("a number, scale, name[index], a function or '('");
    if (word == "scale") return node(ExprKind::scale, {});
    if (accept('[')) {
      Expr result = node(ExprKind::element, {});
      result.name = word;
      result.index = index();
      return result;
    }
    if (accept('(')) return call(word, start);
    unexpected("'[' (an element) or '(' (a function) after '" + word + "'");
  }

  Expr number() {
    Expr result = node(ExprKind::number, {});
    const char* first = text_.data() + next();
    const auto [stop, error] = std::from_chars(first, text_.data() + text_.size(), result.number);
    if (error != std::errc()) unexpected("a number that a double can hold");
    at_ += static_cast<std::size_t>(stop - first);
    if (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.')) unexpected("an operator after the number");
    return result;
  }

  // Behind '('.
  Expr call(const std::string& function, std::size_t start) {
    if (function == "select") return select();
    if (function != "exp" && function != "prefix" && function != "suffix" && function != "before") {
      fail(ErrorKind::config, "GDR-S01",
           "expression {}: at position {} '{}' is no function; allowed are exp, select, prefix, suffix, before.",
           quoted(text_), start, function);
    }
    Expr result = node(ExprKind::call, {});
    result.name = function;
    result.arguments.push_back(sum());
    expect(')', "an operator or ')'");
    return result;
  }

  Expr select() {
    Expr result = node(ExprKind::call, {});
    result.name = "select";
    result.condition = triangle_condition();
    if (result.condition == Condition::none) {
      result.condition = Condition::greater;
      result.arguments.push_back(sum());
      expect('>', "an operator or '>' and the right side of the condition");
      result.arguments.push_back(sum());
    }
    expect(',', "',' and the value where the condition holds");
    result.arguments.push_back(sum());
    expect(',', "',' and the value where the condition does not hold");
    result.arguments.push_back(sum());
    expect(')', "an operator or ')'");
    return result;
  }

  // i>=j or i>j, if they stand here. No sum begins with a bare i: its elements are i[...].
  Condition triangle_condition() {
    const std::size_t start = next();
    if (name() == "i" && accept('>')) {
      const Condition found = accept('=') ? Condition::i_ge_j : Condition::i_gt_j;
      const std::size_t right = next();
      if (name() != "j") unexpected_at(right, "j (conditions on indices are i>=j and i>j)");
      return found;
    }
    at_ = start;
    return Condition::none;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

void collect_elements(const Expr& expr, std::vector<ElementUse>& uses) {
  if (expr.kind == ExprKind::element) {
    for (const ElementUse& use : uses)
      if (use.name == expr.name && use.index == expr.index) return;
    uses.push_back({expr.name, expr.index});
  }
  for (const Expr& argument : expr.arguments) collect_elements(argument, uses);
}

}  // namespace

Assignment parse_assignment(const std::string& text) { return Parser(text).assignment(); }
Expr parse_expr(const std::string& text) { return Parser(text).expression(); }

std::vector<ElementUse> elements_of(const Expr& expr) {
  std::vector<ElementUse> uses;
  collect_elements(expr, uses);
  return uses;
}

}  // namespace gdr
