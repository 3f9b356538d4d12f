#include "plan/dependences.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

int stage_cells(const Tile& tile) { return tile.space == Space::smem ? stage_bytes(tile) / kCellBytes : 0; }

// Numbers sequences of steps, equal ones alike: a tree in which 0 is the empty sequence.
class Sequences {
 public:
  // The number of `sequence` with one step more.
  int extend(int sequence, int step) {
    if (sequence == last_.sequence && step == last_.step) return last_.number;
    auto& longer = longer_[at(sequence)];
    const auto known = std::find_if(longer.begin(), longer.end(), [&](int s) { return back_[at(s)].second == step; });
    int number = static_cast<int>(back_.size());
    if (known != longer.end()) {
      number = *known;
    } else {
      longer.push_back(number);
      longer_.emplace_back();
      back_.emplace_back(sequence, step);
    }
    last_ = {sequence, step, number};
    return number;
  }

  std::size_t count() const { return back_.size(); }

  std::vector<int> steps(int sequence) const {
    std::vector<int> steps;
    for (; sequence != 0; sequence = back_[at(sequence)].first) steps.push_back(back_[at(sequence)].second);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

 private:
  struct Extension {
    int sequence, step, number;
  };
  std::vector<std::vector<int>> longer_ = {{}};
  std::vector<std::pair<int, int>> back_ = {{0, -1}};  // the sequence without its last step, and that step
  Extension last_ = {-1, -1, 0};                       // neighbouring cells mostly have the same
};

// What an operation does to a cell.
struct CellAccess {
  int op = 0;
  std::uint32_t readers = 0, writers = 0;
};

// What happens to a cell in one iteration, as the number of a sequence of accesses; few of them differ.
struct CellHistories {
  std::vector<CellAccess> accesses;     // steps of the sequences
  Sequences sequences;                  // in canonical order
  std::vector<std::vector<int>> cells;  // [tile][cell]
};

CellHistories histories_of(const Kernel& kernel, const std::vector<Footprint>& footprints) {
  CellHistories found;
  for (const Tile& tile : kernel.tiles) found.cells.emplace_back(at(stage_cells(tile)), 0);
  for (std::size_t op = 0; op < footprints.size(); ++op) {
    const std::size_t first = found.accesses.size();  // of this operation
    std::size_t last = first;
    for (const CellUse& use : footprints[op].uses) {
      const auto is_same = [&](const CellAccess& a) { return a.readers == use.readers && a.writers == use.writers; };
      if (last == found.accesses.size() || !is_same(found.accesses[last])) {
        const auto begin = found.accesses.begin();
        last = at(static_cast<int>(
            std::find_if(begin + static_cast<std::ptrdiff_t>(first), found.accesses.end(), is_same) - begin));
        if (last == found.accesses.size()) found.accesses.push_back({static_cast<int>(op), use.readers, use.writers});
      }
      int& history = found.cells[at(use.tile)][at(use.cell)];
      history = found.sequences.extend(history, static_cast<int>(last));
    }
  }
  return found;
}

// One stage of a tile at an address, and what happens to it there.
struct Resident {
  int tile = 0, stage = 0, history = 0;
  auto operator<=>(const Resident&) const = default;
};

// The different sets of residents that addresses have.
std::vector<std::vector<Resident>> residents_of(const Kernel& kernel, const CellHistories& histories,
                                                const std::vector<int>& bases) {
  int cells = 0;
  for (std::size_t t = 0; t < kernel.tiles.size(); ++t)
    cells = std::max(cells, bases[t] + kernel.tiles[t].stages * stage_cells(kernel.tiles[t]));
  std::vector<Resident> steps;
  Sequences sequences;
  std::vector<int> residents(at(cells), 0);
  for (std::size_t t = 0; t < kernel.tiles.size(); ++t) {
    const std::vector<int>& tile_cells = histories.cells[t];
    for (int stage = 0; stage < kernel.tiles[t].stages; ++stage) {
      std::vector<int> step_of;  // by history
      for (std::size_t cell = 0; cell < tile_cells.size(); ++cell) {
        const int history = tile_cells[cell];
        if (history == 0) continue;
        if (at(history) >= step_of.size()) step_of.resize(at(history) + 1, -1);
        int& step = step_of[at(history)];
        if (step < 0) {
          step = static_cast<int>(steps.size());
          steps.push_back({static_cast<int>(t), stage, history});
        }
        int& here = residents[at(bases[t]) + at(stage) * tile_cells.size() + cell];
        here = sequences.extend(here, step);
      }
    }
  }
  std::vector<std::vector<Resident>> found;
  std::vector<bool> is_known(sequences.count());
  for (const int sequence : residents) {
    if (is_known[at(sequence)]) continue;
    is_known[at(sequence)] = true;
    found.emplace_back();
    for (const int step : sequences.steps(sequence)) found.back().push_back(steps[at(step)]);
  }
  return found;
}

struct Touch {
  int op = -1;
  int iteration = 0;
  int tile = 0;
  std::uint32_t warps = 0;
};

// Collects dependences, each pair of operations at each distance once: as the first of its hazards.
class Collector {
 public:
  Collector(const Kernel& kernel, const std::vector<Footprint>& footprints, int iterations)
      : kernel_(kernel), footprints_(footprints), known_(at(iterations) * kernel.ops.size() * kernel.ops.size(), -1) {}

  void depend(const Touch& before, const Touch& after, Hazard hazard) {
    if (before.op < 0 || (before.op == after.op && before.iteration == after.iteration)) return;
    const bool same_role = footprints_[at(before.op)].role == footprints_[at(after.op)].role;
    // A warp is ordered with itself, unless it issued a copy, which lands when it likes.
    const bool one_warp = same_role && before.warps == after.warps && (before.warps & (before.warps - 1)) == 0;
    if (one_warp && kernel_.ops[at(before.op)].kind != OpKind::copy_in) return;
    const Dependence d = {before.op, after.op, after.iteration - before.iteration, hazard, before.tile, after.tile};
    const std::size_t count = kernel_.ops.size();
    int& place = known_[(at(d.distance) * count + at(d.before)) * count + at(d.after)];
    if (place < 0) {
      place = static_cast<int>(found_.size());
      found_.push_back(d);
    }
    const auto rank = [](const Dependence& x) { return std::tuple(x.hazard, x.tile_before, x.tile_after); };
    if (rank(d) < rank(found_[at(place)])) found_[at(place)] = d;
  }

  std::vector<Dependence> take() && {
    std::sort(found_.begin(), found_.end(), [](const Dependence& x, const Dependence& y) {
      return std::tuple(x.distance, x.after, x.before) < std::tuple(y.distance, y.after, y.before);
    });
    return std::move(found_);
  }

 private:
  const Kernel& kernel_;
  const std::vector<Footprint>& footprints_;
  std::vector<int> known_;  // [distance][before][after]: its place in found_
  std::vector<Dependence> found_;
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
    next += tile.stages * stage_cells(tile);
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
  // Distances of 0 to the deepest stages occur, all of them within that many iterations.
  const int iterations = kernel.loop == LoopKind::once ? 1 : max_stages(kernel) + 1;
  const CellHistories histories = histories_of(kernel, footprints);
  Collector found(kernel, footprints, iterations);
  for (const std::vector<Resident>& residents : residents_of(kernel, histories, bases)) {
    std::vector<std::pair<CellAccess, Resident>> body;  // what happens at this address, in canonical order
    for (const Resident& resident : residents)
      for (const int step : histories.sequences.steps(resident.history))
        body.emplace_back(histories.accesses[at(step)], resident);
    std::stable_sort(body.begin(), body.end(), [](const auto& x, const auto& y) { return x.first.op < y.first.op; });

    Touch write;
    std::vector<Touch> reads;  // since the last write
    for (int iteration = 0; iteration < iterations; ++iteration)
      for (const auto& [access, resident] : body) {
        if (iteration % kernel.tiles[at(resident.tile)].stages != resident.stage) continue;
        Touch touch = {access.op, iteration, resident.tile, access.readers};
        if (access.readers) {
          found.depend(write, touch, Hazard::read_after_write);
          reads.push_back(touch);
        }
        touch.warps = access.writers;
        if (access.writers) {
          for (const Touch& read : reads) found.depend(read, touch, Hazard::write_after_read);
          if (reads.empty()) found.depend(write, touch, Hazard::write_after_write);
          write = touch;
          reads.clear();
        }
      }
  }
  return std::move(found).take();
}

}  // namespace gdr
