#include "plan/dependences.hpp"

#include <algorithm>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

struct Touch {
  int op = -1;
  int iteration = 0;
  int tile = 0;
  std::uint32_t warps = 0;
};

struct CellState {
  Touch write;
  std::vector<Touch> reads;  // since the last write
};

}  // namespace

int max_stages(const Kernel& kernel) {
  int stages = 1;
  for (const Tile& tile : kernel.tiles) stages = std::max(stages, tile.stages);
  return stages;
}

std::vector<int> separate_bases(const Kernel& kernel) {
  std::vector<int> bases;
  int next = 0;
  for (const Tile& tile : kernel.tiles) {
    bases.push_back(next);
    if (tile.space == Space::smem) next += tile_bytes(tile) / kCellBytes;
  }
  return bases;
}

std::vector<int> packed_bases(const Kernel& kernel) {
  std::vector<int> bases;
  for (const Tile& tile : kernel.tiles)
    bases.push_back(tile.space == Space::smem ? tile.offset_bytes / kCellBytes : -1);
  return bases;
}

std::vector<Dependence> dependences(const Kernel& kernel, const std::vector<Footprint>& footprints,
                                    const std::vector<int>& bases) {
  int cells = 0;
  for (std::size_t t = 0; t < kernel.tiles.size(); ++t)
    if (kernel.tiles[t].space == Space::smem)
      cells = std::max(cells, bases[t] + tile_bytes(kernel.tiles[t]) / kCellBytes);
  std::vector<CellState> state(static_cast<std::size_t>(cells));

  // Distances of 0 to the deepest stages occur, all of them within that many iterations.
  const int iterations = kernel.loop == LoopKind::once ? 1 : max_stages(kernel) + 1;
  const std::size_t count = kernel.ops.size();
  std::vector<bool> known(static_cast<std::size_t>(iterations) * count * count);

  std::vector<Dependence> found;
  const auto depend = [&](const Touch& before, const Touch& after, Hazard hazard) {
    if (before.op < 0 || (before.op == after.op && before.iteration == after.iteration)) return;
    const int role = footprints[static_cast<std::size_t>(before.op)].role;
    const bool same_role = role == footprints[static_cast<std::size_t>(after.op)].role;
    // A warp is ordered with itself, unless it issued a copy, which lands when it likes.
    const bool one_warp = same_role && before.warps == after.warps && (before.warps & (before.warps - 1)) == 0;
    if (one_warp && kernel.ops[static_cast<std::size_t>(before.op)].kind != OpKind::copy_in) return;
    const int distance = after.iteration - before.iteration;
    const std::size_t at = (static_cast<std::size_t>(distance) * count + static_cast<std::size_t>(before.op)) * count +
                           static_cast<std::size_t>(after.op);
    if (known[at]) return;
    known[at] = true;
    found.push_back({before.op, after.op, distance, hazard, before.tile, after.tile});
  };

  std::vector<std::vector<int>> slots;  // [iteration][tile] first cell of the stage in use
  for (int iteration = 0; iteration < iterations; ++iteration) {
    slots.emplace_back();
    for (std::size_t t = 0; t < kernel.tiles.size(); ++t) {
      const Tile& tile = kernel.tiles[t];
      slots.back().push_back(
          tile.space == Space::smem ? bases[t] + iteration % tile.stages * (stage_bytes(tile) / kCellBytes) : -1);
    }
  }

  for (int iteration = 0; iteration < iterations; ++iteration)
    for (std::size_t op = 0; op < kernel.ops.size(); ++op)
      for (const CellUse& use : footprints[op].uses) {
        const int slot = slots[static_cast<std::size_t>(iteration)][static_cast<std::size_t>(use.tile)];
        CellState& cell = state[static_cast<std::size_t>(slot + use.cell)];
        const auto touch = [&](std::uint32_t warps) { return Touch{static_cast<int>(op), iteration, use.tile, warps}; };
        if (use.readers) {
          depend(cell.write, touch(use.readers), Hazard::read_after_write);
          cell.reads.push_back(touch(use.readers));
        }
        if (use.writers) {
          for (const Touch& read : cell.reads) depend(read, touch(use.writers), Hazard::write_after_read);
          if (cell.reads.empty()) depend(cell.write, touch(use.writers), Hazard::write_after_write);
          cell.write = touch(use.writers);
          cell.reads.clear();
        }
      }
  return found;
}

}  // namespace gdr
