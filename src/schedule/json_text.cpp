#include "schedule/json_text.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace gdr {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLineWidth = 120;
constexpr std::size_t kIndent = 2;

std::string scalar_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The value on one line, with a space after ':' and ','.
std::string one_line(const ordered_json& value) {
  if (!value.is_structured()) return scalar_text(value);
  std::string text(1, value.is_object() ? '{' : '[');
  for (auto item = value.begin(); item != value.end(); ++item) {
    if (item != value.begin()) text += ", ";
    if (value.is_object()) text += scalar_text(ordered_json(item.key())) + ": ";
    text += one_line(*item);
  }
  return text += value.is_object() ? '}' : ']';
}

class Printer {
 public:
  std::string take() { return std::move(text_ += '\n'); }

  // Writes `value` at the current column; `reserve` columns of its last line stay free for what follows it.
  void print(const ordered_json& value, std::size_t indent, std::size_t reserve) {
    const std::string line = one_line(value);
    if (!value.is_structured() || value.empty() || column() + line.size() + reserve <= kLineWidth) {
      text_ += line;
      return;
    }
    print_members(value, indent);
  }

 private:
  std::size_t column() const {
    const std::size_t newline = text_.rfind('\n');
    return newline == std::string::npos ? text_.size() : text_.size() - newline - 1;
  }
  void new_line(std::size_t indent) {
    text_ += '\n';
    text_.append(indent, ' ');
  }

  void print_members(const ordered_json& value, std::size_t indent) {
    // The elements of an array of objects get a line each, so that a change of one is a change of one line.
    const bool one_each = value.is_array() && value.front().is_structured();
    const std::size_t inner = indent + kIndent;
    text_ += value.is_object() ? '{' : '[';
    bool may_share_line = false;  // the line holds only short members so far
    for (auto item = value.begin(); item != value.end(); ++item) {
      const bool is_first = item == value.begin();
      const std::string key = value.is_object() ? scalar_text(ordered_json(item.key())) + ": " : std::string();
      const std::string line = one_line(*item);
      constexpr std::size_t kComma = 1;
      const bool is_short = inner + key.size() + line.size() + kComma <= kLineWidth;
      if (!is_first) text_ += ',';
      if (!one_each && may_share_line && is_short && column() + 1 + key.size() + line.size() + kComma <= kLineWidth) {
        text_ += ' ';
      } else {
        new_line(inner);
      }
      text_ += key;
      print(*item, inner, kComma);
      may_share_line = is_short;
    }
    new_line(indent);
    text_ += value.is_object() ? '}' : ']';
  }

  std::string text_;
};

}  // namespace

std::string json_text(const ordered_json& value) {
  Printer printer;
  printer.print(value, 0, 0);
  return printer.take();
}

}  // namespace gdr
