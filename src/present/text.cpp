#include "present/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace gdr {
namespace {

constexpr std::size_t kGap = 2;  // between columns

// Three significant digits and the largest unit that keeps them at or above one.
std::string scaled(double value, const std::vector<std::pair<double, const char*>>& units) {
  for (const auto& [factor, unit] : units)
    if (value >= factor * 0.9995 || factor == units.back().first) {
      const double shown = value / factor;
      const int decimals = shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0;
      return fmt::format("{:.{}f} {}", shown, decimals, unit);
    }
  return {};
}

}  // namespace

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string flops_text(double flops) {
  if (flops <= 0) return "no FLOP";
  return scaled(flops, {{1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}});
}

std::string bytes_text(double bytes) {
  if (bytes < 1e6) return with_commas(static_cast<std::int64_t>(bytes)) + " B";
  return scaled(bytes, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}});
}

std::string microseconds_text(double us) { return scaled(us, {{1e6, "s"}, {1e3, "ms"}, {1, "us"}}); }

std::string plural(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : "s");
}

std::string Style::wrap(const char* code, std::string_view text) const {
  return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      if (!line.empty()) line += ' ';
      line += word;
    }
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return lines;
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::size_t most = columns_[c].most > 0 ? columns_[c].most : kTextWidth;
    std::size_t width = columns_[c].header.size();
    for (const auto& row : rows_)
      for (const std::string& line : wrapped(row[c], most)) width = std::max(width, line.size());
    result.push_back(width);
  }
  const std::size_t others = std::accumulate(result.begin(), result.end() - 1, indent_ + kGap * (result.size() - 1));
  constexpr std::size_t kLeastLast = 20;
  result.back() = std::min(result.back(), std::max(kTextWidth - std::min(others, kTextWidth), kLeastLast));
  return result;
}

std::string TextTable::text(const Style& style) const {
  const std::vector<std::size_t> width = widths();
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line(indent_, ' ');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line.append(kGap, ' ');
      line += columns_[c].align == Align::right ? fmt::format("{:>{}}", cells[c], width[c])
                                                : fmt::format("{:<{}}", cells[c], width[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::vector<std::string> header;
  for (const Column& column : columns_) header.push_back(column.header);
  std::string result = style.dim(line_of(header)) + '\n';
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      cells.push_back(wrapped(row[c], width[c]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
      std::vector<std::string> line;
      for (const auto& cell : cells) line.push_back(i < cell.size() ? cell[i] : std::string());
      result += line_of(line) + '\n';
    }
  }
  return result;
}

}  // namespace gdr
