#include "config/registry.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "config/file.hpp"
#include "config/shipped.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace gdr {
namespace {

std::string_view folder_of(ConfigKind kind) {
  switch (kind) {
    case ConfigKind::arch:
      return "arch";
    case ConfigKind::shape:
      return "shape";
    case ConfigKind::budget:
      return "budget";
  }
  return "";
}

// Number of insertions, deletions and replacements that turn one text into the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// Compares runs of digits by value: sm_90 stands before sm_100.
bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::size_t i0 = i, j0 = j;
      while (i < a.size() && is_digit(a[i])) ++i;
      while (j < b.size() && is_digit(b[j])) ++j;
      const std::string_view x = a.substr(i0, i - i0), y = b.substr(j0, j - j0);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

[[noreturn]] void unknown_name(ConfigKind kind, std::string_view name) {
  constexpr std::size_t kMaxShown = 60;
  const std::vector<std::string_view> all = config_names(kind);
  std::vector<std::string_view> near;
  if (name.size() <= kMaxShown) {
    for (const std::string_view candidate : all)
      if (edit_distance(name, candidate) <= std::max<std::size_t>(1, name.size() / 3) || candidate.starts_with(name) ||
          (!name.empty() && name.starts_with(candidate)))
        near.push_back(candidate);
  }
  const bool has_near = !near.empty() && !name.empty();
  fail(ErrorKind::config, "GDR-C11", "{}: there is no '{}'; {} {}. A file is named by a path with '/' or '.json'.",
       folder_of(kind), shortened(name, kMaxShown), has_near ? "near are" : "known are",
       fmt::join(has_near ? near : all, ", "));
}

JsonDocument load(ConfigKind kind, const std::string& name_or_file) {
  if (name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".json")) {
    const JsonLimits limits;
    return JsonDocument::parse(read_file(name_or_file, limits.max_bytes), name_or_file, limits);
  }
  return JsonDocument::parse(config_text(kind, name_or_file), fmt::format("{}/{}.json", folder_of(kind), name_or_file));
}

}  // namespace

std::vector<std::string_view> config_names(ConfigKind kind) {
  std::vector<std::string_view> names;
  for (const ShippedConfig& config : shipped_configs())
    if (config.folder == folder_of(kind)) names.push_back(config.name);
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

std::string_view config_text(ConfigKind kind, std::string_view name) {
  for (const ShippedConfig& config : shipped_configs())
    if (config.folder == folder_of(kind) && config.name == name) return config.text;
  unknown_name(kind, name);
}

Arch load_arch(const std::string& name_or_file) { return read_arch(load(ConfigKind::arch, name_or_file)); }

Shape load_shape(const std::string& name_or_file) { return read_shape(load(ConfigKind::shape, name_or_file)); }

Budget load_budget(const std::string& name_or_file_or_bytes) {
  const std::string& text = name_or_file_or_bytes;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0 && !text.ends_with(".json") &&
      text.find('/') == std::string::npos)
    return parse_budget(text);
  return read_budget(load(ConfigKind::budget, text));
}

}  // namespace gdr
