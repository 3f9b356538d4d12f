#include "plan/conflicts.hpp"

#include <algorithm>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

// An access and the write whose value it sees: itself for a write, -1 for a value of an earlier iteration.
struct Seen {
  int written_by = 0;
  int op = 0;
  auto operator<=>(const Seen&) const = default;
};

// Lives of one tile from its accesses: a write starts one, reads of what it wrote extend it.
std::vector<Life> lives_of(std::vector<Seen> accesses, bool is_whole, int num_ops) {
  std::sort(accesses.begin(), accesses.end());
  accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
  is_whole |= !accesses.empty() && accesses.front().written_by < 0;
  std::vector<Life> lives;
  for (const Seen& access : accesses) {
    const int first = is_whole ? 0 : access.written_by, last = is_whole ? num_ops - 1 : access.op;
    if (lives.empty() || first > lives.back().last) lives.push_back({first, last, {}});
    lives.back().last = std::max(lives.back().last, last);
    lives.back().accesses.push_back(access.op);
  }
  for (Life& life : lives) {
    std::sort(life.accesses.begin(), life.accesses.end());
    life.accesses.erase(std::unique(life.accesses.begin(), life.accesses.end()), life.accesses.end());
  }
  return lives;
}

bool overlap(const std::vector<Life>& x, const std::vector<Life>& y) {
  for (const Life& a : x)
    for (const Life& b : y)
      if (a.first <= b.last && b.first <= a.last) return true;
  return false;
}

bool is_matrix(const Tile& tile) { return tile.smem.xor_mask > 0; }

class FreeSharing {
 public:
  FreeSharing(const std::vector<BodyOp>& ops, const HappensBefore& order) : ops_(ops), order_(order) {}

  // Is every change from one tile's life to the next of the other ordered already?
  bool operator()(const std::vector<Life>& x, const std::vector<Life>& y) const {
    for (const Life& a : x)
      for (const Life& b : y) {
        if (!(a.last < b.first ? follows(a, b, 0) && follows(b, a, 1) : follows(b, a, 0) && follows(a, b, 1)))
          return false;
      }
    return true;
  }

 private:
  // A meeting costs little, so operations of one role count as ordered.
  bool follows(const Life& before, const Life& after, int distance) const {
    for (const int source : before.accesses)
      if (ops_[static_cast<std::size_t>(source)].is_copy ||
          ops_[static_cast<std::size_t>(source)].role != ops_[static_cast<std::size_t>(after.first)].role)
        if (!order_.holds(source, after.first, distance)) return false;
    return true;
  }

  const std::vector<BodyOp>& ops_;
  const HappensBefore& order_;
};

}  // namespace

std::string to_string(Aliasing aliasing) {
  switch (aliasing) {
    case Aliasing::none:
      return "none";
    case Aliasing::free:
      return "free";
    case Aliasing::matrices:
      return "matrices";
    case Aliasing::any:
      return "any";
  }
  return "";
}

std::vector<std::vector<Life>> tile_lives(const Kernel& kernel, const std::vector<Footprint>& footprints) {
  std::vector<std::vector<int>> writer;  // [tile][cell] last write so far
  for (const Tile& tile : kernel.tiles)
    writer.emplace_back(tile.space == Space::smem ? static_cast<std::size_t>(stage_bytes(tile) / kCellBytes) : 0, -1);
  std::vector<std::vector<Seen>> accesses(kernel.tiles.size());
  for (std::size_t op = 0; op < footprints.size(); ++op)
    for (const CellUse& use : footprints[op].uses) {
      const auto t = static_cast<std::size_t>(use.tile);
      int& last = writer[t][static_cast<std::size_t>(use.cell)];
      const auto see = [&](int written_by) {
        const Seen seen = {written_by, static_cast<int>(op)};
        if (accesses[t].empty() || accesses[t].back() != seen) accesses[t].push_back(seen);
      };
      if (use.readers) see(last);
      if (use.writers) last = static_cast<int>(op), see(last);
    }
  std::vector<std::vector<Life>> lives;
  for (std::size_t t = 0; t < kernel.tiles.size(); ++t)
    lives.push_back(lives_of(std::move(accesses[t]), kernel.tiles[t].stages > 1, static_cast<int>(kernel.ops.size())));
  return lives;
}

ConflictGraph conflict_graph(const Kernel& kernel, const std::vector<std::vector<Life>>& lives,
                             const HappensBefore& order, Aliasing aliasing) {
  const std::size_t count = kernel.tiles.size();
  const std::vector<BodyOp> ops = body_ops(kernel);
  const FreeSharing is_free(ops, order);
  ConflictGraph conflicts(count, std::vector<bool>(count));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool both = kernel.tiles[i].space == Space::smem && kernel.tiles[j].space == Space::smem;
      const bool may_wait = aliasing == Aliasing::any || (aliasing == Aliasing::matrices &&
                                                          is_matrix(kernel.tiles[i]) && is_matrix(kernel.tiles[j]));
      const bool shareable =
          aliasing != Aliasing::none && !overlap(lives[i], lives[j]) && (may_wait || is_free(lives[i], lives[j]));
      conflicts[i][j] = conflicts[j][i] = both && !shareable;
    }
  return conflicts;
}

}  // namespace gdr
