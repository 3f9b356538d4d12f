// Pieces of text for people: numbers with units, tables in columns, emphasis on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdr {

std::string with_commas(std::int64_t value);                      // 101,376
std::string flops_text(double flops);                             // 12.3 GFLOP
std::string bytes_text(double bytes);                             // 101,376 B below a million; 12.3 MB, 1.2 GB
std::string microseconds_text(double us);                         // 12.3 us, 4.56 ms, 1.23 s
std::string plural(std::int64_t count, const std::string& noun);  // 1 warp, 4 warps; "" count 0: no warps

// Emphasis by terminal escapes, or none.
class Style {
 public:
  explicit Style(bool color) : color_(color) {}
  std::string title(std::string_view text) const { return wrap("1", text); }
  std::string good(std::string_view text) const { return wrap("32", text); }
  std::string bad(std::string_view text) const { return wrap("31", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }

 private:
  std::string wrap(const char* code, std::string_view text) const;
  bool color_;
};

// Rows of cells under a header, columns as wide as their widest cell and two spaces apart. Cells are broken at spaces
// where their column has a `most` and at the last column, so that no line is longer than `kTextWidth`.
inline constexpr std::size_t kTextWidth = 120;

enum class Align { left, right };

class TextTable {
 public:
  struct Column {
    std::string header;
    Align align = Align::left;
    std::size_t most = 0;  // columns of a line; 0: any
  };
  TextTable(std::vector<Column> columns, std::size_t indent) : columns_(std::move(columns)), indent_(indent) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const Style& style) const;

 private:
  std::vector<std::size_t> widths() const;
  std::vector<Column> columns_;
  std::size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` broken at spaces into lines of at most `width` columns; a longer word gets a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

}  // namespace gdr
