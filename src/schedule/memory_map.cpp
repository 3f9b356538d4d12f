#include "schedule/memory_map.hpp"

#include <algorithm>
#include <set>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

struct Touch {
  int op = 0;
  int part = 0;
  Access access = Access::read;
  Range rows, cols;
};

bool reads(const Touch& touch) { return touch.access != Access::write; }
bool writes(const Touch& touch) { return touch.access != Access::read; }

// The rows of partial sums that a reduce writes: one for each warp row, warp column or warp (by its axis) that owns
// some of the domain, its second operand. Others keep what an earlier reduce left there.
std::set<int> partial_rows(const Kernel& kernel, const Op& op) {
  std::set<int> rows;
  const Tile* domain = op.operands.size() < 2 ? nullptr : kernel.find_tile(op.operands[1].name);
  if (domain == nullptr || domain->space != Space::reg) return rows;
  const auto meet = [](const Range& left, const Range& right) {
    return left.begin < right.end && right.begin < left.end;
  };
  for (int warp = 0; warp < domain->reg.grid_rows * domain->reg.grid_cols; ++warp) {
    bool owns_cols = false;
    for (const Range& cols : owned_cols(*domain, warp)) owns_cols |= meet(cols, op.operands[1].cols);
    if (!owns_cols || !meet(owned_rows(*domain, warp), op.operands[1].rows)) continue;
    rows.insert(op.axis == ReduceAxis::cols   ? warp % domain->reg.grid_cols
                : op.axis == ReduceAxis::rows ? warp / domain->reg.grid_cols
                                              : warp);
  }
  return rows;
}

std::vector<Touch> touches_of(const Kernel& kernel, const Tile& tile) {
  std::vector<Touch> touches;
  for (int i = 0; i < static_cast<int>(kernel.ops.size()); ++i) {
    const Op& op = kernel.ops[static_cast<std::size_t>(i)];
    for (std::size_t o = 0; o < op.operands.size(); ++o) {
      const Operand& operand = op.operands[o];
      if (operand.is_tensor || operand.name != tile.name) continue;
      if (op.kind == OpKind::reduce && o == 0) {
        for (const int row : partial_rows(kernel, op))
          touches.push_back({i, operand.part, operand.access, {row, row + 1}, operand.cols});
      } else {
        touches.push_back({i, operand.part, operand.access, operand.rows, operand.cols});
      }
    }
  }
  // Within an op all reads come before the writes.
  std::stable_sort(touches.begin(), touches.end(), [](const Touch& left, const Touch& right) {
    return left.op != right.op ? left.op < right.op : writes(left) < writes(right);
  });
  return touches;
}

std::vector<TileUse> uses_of(const std::vector<Touch>& touches) {
  std::vector<TileUse> uses;
  for (const Touch& touch : touches) {
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const TileUse& known) { return known.op == touch.op && known.part == touch.part; });
    if (use == uses.end()) use = uses.insert(uses.end(), {touch.op, touch.part, false, false});
    use->reads |= reads(touch);
    use->writes |= writes(touch);
  }
  return uses;
}

// Marks the gaps (gap i lies between op i and op i + 1, the last one between the last op and the first) over which
// some element of one cell carries a value. All elements of a cell are touched together.
void mark_live_gaps(const std::vector<Touch>& cell, bool is_loop, std::vector<bool>& gaps) {
  const std::size_t num_ops = gaps.size();
  // Backwards over the order, twice for a loop: what the next iteration reads is alive at the end of this one.
  bool needed = false;
  for (int round = is_loop ? 0 : 1; round < 2; ++round) {
    auto touch = cell.rbegin();
    for (std::size_t op = num_ops; op-- > 0;) {
      if (needed && (op + 1 < num_ops || is_loop)) gaps[op] = true;
      for (; touch != cell.rend() && static_cast<std::size_t>(touch->op) == op; ++touch) needed = reads(*touch);
    }
  }
}

// Cells: the runs of rows and columns between all borders of the rectangles that are touched.
std::vector<int> borders(const std::vector<Touch>& touches, Range Touch::*side) {
  std::set<int> cuts;
  for (const Touch& touch : touches) cuts.insert({(touch.*side).begin, (touch.*side).end});
  return {cuts.begin(), cuts.end()};
}

bool holds(const Range& range, int begin) { return range.begin <= begin && begin < range.end; }

std::vector<LiveRange> lives_of_part(const std::vector<Touch>& touches, int part, bool is_loop, std::size_t num_ops) {
  if (touches.empty()) return {};
  std::vector<bool> gaps(num_ops, false);
  for (const int row : borders(touches, &Touch::rows))
    for (const int col : borders(touches, &Touch::cols)) {
      std::vector<Touch> cell;
      for (const Touch& touch : touches)
        if (holds(touch.rows, row) && holds(touch.cols, col)) cell.push_back(touch);
      if (!cell.empty()) mark_live_gaps(cell, is_loop, gaps);
    }

  // A stretch of live gaps is one range; an op that touches the part between dead gaps is a range of its own.
  std::vector<LiveRange> ranges;
  const auto live_after = [&](std::size_t op) { return gaps[op]; };
  const auto live_before = [&](std::size_t op) { return gaps[op == 0 ? num_ops - 1 : op - 1]; };
  std::set<std::size_t> touched;
  for (const Touch& touch : touches) touched.insert(static_cast<std::size_t>(touch.op));
  for (const std::size_t op : touched) {
    if (live_before(op)) continue;
    std::size_t last = op;
    std::size_t length = 1;
    for (; live_after(last) && length <= num_ops; ++length) last = (last + 1) % num_ops;
    ranges.push_back({part, static_cast<int>(op), static_cast<int>(last), last < op});
  }
  if (ranges.empty())  // alive all the time
    ranges.push_back({part, 0, static_cast<int>(num_ops) - 1, false});
  return ranges;
}

std::vector<LiveRange> lives_of(const Tile& tile, const std::vector<Touch>& touches, bool is_loop,
                                std::size_t num_ops) {
  std::vector<LiveRange> lives;
  for (int part = 0; part < tile.parts; ++part) {
    std::vector<Touch> of_part;
    for (const Touch& touch : touches)
      if (touch.part == part) of_part.push_back(touch);
    for (const LiveRange& range : lives_of_part(of_part, part, is_loop, num_ops)) lives.push_back(range);
  }
  return lives;
}

bool overlap(const TileFacts& left, const TileFacts& right) {
  const int left_begin = left.tile->offset_bytes;
  const int right_begin = right.tile->offset_bytes;
  return left_begin >= 0 && right_begin >= 0 && left_begin < right_begin + right.bytes &&
         right_begin < left_begin + left.bytes;
}

}  // namespace

std::vector<TileFacts> memory_map(const Kernel& kernel) {
  std::vector<TileFacts> map;
  for (const Tile& tile : kernel.tiles) {
    if (tile.space != Space::smem) continue;
    const std::vector<Touch> touches = touches_of(kernel, tile);
    TileFacts facts;
    facts.tile = &tile;
    facts.bytes = tile_bytes(tile);
    facts.uses = uses_of(touches);
    facts.lives = lives_of(tile, touches, kernel.loop != LoopKind::once, kernel.ops.size());
    map.push_back(std::move(facts));
  }
  for (TileFacts& facts : map)
    for (const TileFacts& other : map)
      if (&facts != &other && overlap(facts, other)) facts.aliases.push_back(other.tile->name);
  return map;
}

}  // namespace gdr
