#include "present/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace gdr {
namespace {

// Columns of the body, several to a character where there are more than fit.
class Scale {
 public:
  Scale(const Range& body, std::size_t room)
      : begin_(body.begin), per_char_((body.size() + static_cast<int>(room) - 1) / static_cast<int>(room)) {
    per_char_ = std::max(per_char_, 1);
    width_ = static_cast<std::size_t>((body.size() + per_char_ - 1) / per_char_);
  }
  std::size_t at(int column) const { return static_cast<std::size_t>((column - begin_) / per_char_); }
  std::size_t width() const { return width_; }
  int per_char() const { return per_char_; }

 private:
  int begin_;
  int per_char_;
  std::size_t width_ = 0;
};

std::string role_line(const KernelView& view, int role, const Scale& scale) {
  std::string line(scale.width(), ' ');
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    const OpColumn& column = view.columns[c];
    if (column.role == role && column.section == Section::body)
      line[scale.at(static_cast<int>(c))] = op_letter(view.op(column).kind);
  }
  return line;
}

// W written, R read, X both (an element at a time, or several ops in one character), - alive in between.
std::string tile_line(const KernelView& view, const TileFacts& facts, const Scale& scale) {
  std::string line(scale.width(), ' ');
  const auto fill = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i <= end && i < line.size(); ++i) line[i] = '-';
  };
  if (facts.tile->stages > 1) fill(0, line.size() - 1);  // the other stages hold other chunks
  for (const LiveRange& life : facts.lives) {
    const std::size_t first = scale.at(view.column_from(life.first_op));
    const std::size_t last = scale.at(view.column_until(life.last_op));
    if (life.wraps) {
      fill(first, line.size() - 1);
      fill(0, last);
    } else {
      fill(first, last);
    }
  }
  for (const TileUse& use : facts.uses) {
    const int column = view.column_of_op[static_cast<std::size_t>(use.op)];
    if (column < 0) continue;
    char& mark = line[scale.at(column)];
    const char now = use.reads && use.writes ? 'X' : use.writes ? 'W' : 'R';
    mark = mark == '-' || mark == ' ' || mark == now ? now : 'X';
  }
  return line;
}

// Step labels top to bottom, at the first column of each run of columns with one label.
std::vector<std::string> step_lines(const KernelView& view, const Scale& scale) {
  std::size_t height = 0;
  for (const OpColumn& column : view.columns) height = std::max(height, column.step.size());
  std::vector<std::string> lines(height, std::string(scale.width(), ' '));
  const Range body = view.body();
  std::string label;
  for (int c = body.begin; c < body.end; ++c) {
    const std::string& step = view.columns[static_cast<std::size_t>(c)].step;
    if (step == label) continue;
    label = step;
    for (std::size_t i = 0; i < height; ++i) {
      char& place = lines[i][scale.at(c)];
      const std::size_t drop = height - step.size();
      place = i >= drop ? step[i - drop] : ' ';
    }
  }
  return lines;
}

}  // namespace

std::string timeline_text(const KernelView& view, const Style& style) {
  const Range body = view.body();
  if (body.size() == 0) return {};
  std::vector<const TileFacts*> tiles;
  for (const TileFacts& facts : view.tiles) tiles.push_back(&facts);
  std::stable_sort(tiles.begin(), tiles.end(), [](const TileFacts* left, const TileFacts* right) {
    return left->tile->offset_bytes < right->tile->offset_bytes;
  });

  std::size_t name_width = 4;
  for (const Role& role : view.kernel->roles) name_width = std::max(name_width, role.name.size());
  for (const TileFacts* facts : tiles) name_width = std::max(name_width, facts->tile->name.size());
  constexpr std::size_t kOffsetWidth = 7;
  const std::size_t left = 2 + name_width + 2 + kOffsetWidth + 2;
  const Scale scale(body, kTextWidth - left);

  std::string text;
  const auto add = [&](const std::string& name, const std::string& offset, std::string line) {
    line = fmt::format("  {:<{}}  {:>{}}  {}", name, name_width, offset, kOffsetWidth, line);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  const std::vector<std::string> steps = step_lines(view, scale);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    add(i + 1 == steps.size() ? "step" : "", "", steps[i]);
  }
  for (int r = 0; r < static_cast<int>(view.kernel->roles.size()); ++r)
    add(view.kernel->roles[static_cast<std::size_t>(r)].name, "", role_line(view, r, scale));
  text += '\n';
  for (const TileFacts* facts : tiles)
    add(facts->tile->name, with_commas(facts->tile->offset_bytes), tile_line(view, *facts, scale));
  const std::string unit = scale.per_char() == 1 ? "an operation" : fmt::format("{} operations", scale.per_char());
  std::string legend = fmt::format(
      "A column is {}, in canonical order. Roles: {}. Tiles: W written, R read, X both, - alive", unit, kOpLetters);
  legend += view.kernel->loop == LoopKind::once
                ? "."
                : "; what is alive at the right edge goes on at the left edge, in the next chunk.";
  for (const std::string& line : wrapped(legend, kTextWidth - 2)) text += style.dim("  " + line) + '\n';
  return text;
}

}  // namespace gdr
