#include "emit/template.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.hpp"

namespace gdr {

TemplateValues& TemplateValues::set(const std::string& name, std::string text) {
  if (sections_.contains(name) || !texts_.emplace(name, std::move(text)).second)
    fail(ErrorKind::internal, "GDR-E01", "template value {}: defined twice", name);
  return *this;
}

TemplateValues& TemplateValues::keep(const std::string& name, bool is_kept) {
  if (texts_.contains(name) || !sections_.emplace(name, is_kept).second)
    fail(ErrorKind::internal, "GDR-E01", "template value {}: defined twice", name);
  return *this;
}

std::string render(std::string_view name, std::string_view text, const TemplateValues& values) {
  std::string result;
  std::set<std::string> used;
  std::vector<std::pair<std::string, bool>> open;  // sections, and whether their text is kept
  const auto is_kept = [&] { return std::all_of(open.begin(), open.end(), [](const auto& s) { return s.second; }); };
  const auto line_of = [&](std::size_t at) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t tag = text.find("%{", at);
    if (is_kept()) result += text.substr(at, tag == std::string_view::npos ? tag : tag - at);
    if (tag == std::string_view::npos) break;
    const std::size_t end = text.find('}', tag);
    if (end == std::string_view::npos)
      fail(ErrorKind::internal, "GDR-E02", "template {}, line {}: %{{ without }}", name, line_of(tag));
    std::string word(text.substr(tag + 2, end - tag - 2));
    at = end + 1;
    if (word.starts_with('#')) {
      word.erase(0, 1);
      const auto section = values.sections_.find(word);
      if (section == values.sections_.end())
        fail(ErrorKind::internal, "GDR-E02", "template {}, line {}: unknown section {}", name, line_of(tag), word);
      used.insert(word);
      open.emplace_back(word, section->second);
    } else if (word.starts_with('/')) {
      word.erase(0, 1);
      if (open.empty() || open.back().first != word)
        fail(ErrorKind::internal, "GDR-E02", "template {}, line {}: section {} is not open here", name, line_of(tag),
             word);
      open.pop_back();
    } else {
      const auto value = values.texts_.find(word);
      if (value == values.texts_.end())
        fail(ErrorKind::internal, "GDR-E02", "template {}, line {}: unknown name {}", name, line_of(tag), word);
      used.insert(word);
      if (is_kept()) result += value->second;
    }
  }
  if (!open.empty())
    fail(ErrorKind::internal, "GDR-E02", "template {}, line {}: section {} is never closed", name, line_of(text.size()),
         open.back().first);
  for (const auto& [word, value] : values.texts_)
    if (!used.contains(word)) fail(ErrorKind::internal, "GDR-E02", "template {}: name {} is not used", name, word);
  for (const auto& [word, value] : values.sections_)
    if (!used.contains(word)) fail(ErrorKind::internal, "GDR-E02", "template {}: section {} is not used", name, word);
  return result;
}

}  // namespace gdr
