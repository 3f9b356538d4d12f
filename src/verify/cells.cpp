#include "verify/cells.hpp"

#include <algorithm>
#include <numeric>

#include "core/dtype.hpp"
#include "verify/elements.hpp"

namespace gdr::verifying {
namespace {

constexpr int kBlock = 16;  // of triangular tiles

// The runs of bytes that an area covers.
void append_runs(const Tile& tile, const ElementMap& map, const Area& area, std::vector<Range>& runs) {
  const int elem = static_cast<int>(size_bytes(tile.dtype));
  for (const Range& rows : area.rows)
    for (int row = rows.begin; row < rows.end; ++row) {
      const int last = area.lower ? (row / kBlock + 1) * kBlock : tile.cols;
      for (const Range& cols : area.cols)
        for (int col = cols.begin; col < std::min(cols.end, last);) {
          const int end = std::min({cols.end, last, at(map.run_end, row * tile.cols + col)});
          const int byte = at(map.byte, row * tile.cols + col);
          runs.push_back({byte, byte + (end - col) * elem});
          col = end;
        }
    }
}

}  // namespace

int CellMap::add(int tile, int copy, const Area& area) {
  std::vector<int> key = {tile, copy, area.lower ? 1 : 0, count_of(area.rows)};
  for (const auto* ranges : {&area.rows, &area.cols})
    for (const Range& range : *ranges) key.insert(key.end(), {range.begin, range.end});
  const auto [known, is_new] = known_.emplace(std::move(key), count_of(entries_));
  if (is_new) entries_.push_back({tile, copy, area, 0, 0});
  return known->second;
}

void CellMap::find_runs() {
  // Tile by tile and copy by copy, so that only one table of elements is alive.
  std::vector<int> order(entries_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Entry &x = at(entries_, a), &y = at(entries_, b);
    return x.tile != y.tile ? x.tile < y.tile : x.copy < y.copy;
  });
  ElementMap map;
  const Entry* last = nullptr;
  for (const int i : order) {
    Entry& entry = at(entries_, i);
    const Tile& tile = at(kernel_.tiles, entry.tile);
    if (last == nullptr || last->tile != entry.tile || last->copy != entry.copy) map = map_elements(tile, entry.copy);
    entry.begin = runs_.size();
    append_runs(tile, map, entry.area, runs_);
    entry.end = runs_.size();
    last = &entry;
  }
}

// Pieces: the bytes between all borders of runs. Rewrites runs_ in pieces; gives the first byte of every piece.
std::vector<int> CellMap::cut_into_pieces() {
  int bytes = 0;
  for (const Range& run : runs_) bytes = std::max(bytes, run.end);
  std::vector<char> is_border(static_cast<std::size_t>(bytes) + 1, 0);
  is_border.front() = 1;
  for (const Range& run : runs_) at(is_border, run.begin) = at(is_border, run.end) = 1;
  std::vector<int> piece_begin, piece_at(is_border.size(), 0);
  for (int byte = 0; byte <= bytes; ++byte) {
    if (at(is_border, byte) != 0) piece_begin.push_back(byte);
    at(piece_at, byte) = count_of(piece_begin) - 1;
  }
  for (Range& run : runs_) run = {at(piece_at, run.begin), at(piece_at, run.end)};
  return piece_begin;
}

// Partition refinement: all pieces begin in one cell; each footprint in turn splits the cells that it covers in part.
void CellMap::refine(int num_pieces, const std::vector<int>& piece_begin) {
  std::vector<int> cell_of(static_cast<std::size_t>(num_pieces), 0), size = {num_pieces}, hits = {0}, moved_to = {0};
  std::vector<int> touched;
  for (const Entry& entry : entries_) {
    touched.clear();
    for (std::size_t r = entry.begin; r < entry.end; ++r)
      for (int piece = runs_[r].begin; piece < runs_[r].end; ++piece)
        if (at(hits, at(cell_of, piece))++ == 0) touched.push_back(at(cell_of, piece));
    for (const int cell : touched) {
      at(moved_to, cell) = cell;
      if (at(hits, cell) < at(size, cell)) {
        at(moved_to, cell) = count_of(size);
        at(size, cell) -= at(hits, cell);
        size.push_back(at(hits, cell));
        hits.push_back(0);
        moved_to.push_back(0);
      }
      at(hits, cell) = 0;
    }
    for (std::size_t r = entry.begin; r < entry.end; ++r)
      for (int piece = runs_[r].begin; piece < runs_[r].end; ++piece)
        at(cell_of, piece) = at(moved_to, at(cell_of, piece));
  }

  hulls_.assign(size.size(), {-1, -1});
  for (int piece = 0; piece < num_pieces; ++piece) {
    Range& hull = at(hulls_, at(cell_of, piece));
    if (hull.begin < 0) hull.begin = at(piece_begin, piece);
    hull.end = at(piece_begin, piece + 1);
  }
  std::vector<int> seen_by(size.size(), -1);
  for (int i = 0; i < count_of(entries_); ++i) {
    Entry& entry = at(entries_, i);
    const std::size_t first = cells_.size();
    for (std::size_t r = entry.begin; r < entry.end; ++r)
      for (int piece = runs_[r].begin; piece < runs_[r].end; ++piece) {
        const int cell = at(cell_of, piece);
        if (at(seen_by, cell) != i) cells_.push_back(cell);
        at(seen_by, cell) = i;
      }
    entry.begin = first;
    entry.end = cells_.size();
  }
}

void CellMap::cut() {
  find_runs();
  const std::vector<int> piece_begin = cut_into_pieces();
  if (piece_begin.size() > 1) refine(count_of(piece_begin) - 1, piece_begin);
  runs_.clear();
}

std::span<const int> CellMap::cells(int footprint) const {
  const Entry& entry = entries_[static_cast<std::size_t>(footprint)];
  return {cells_.data() + entry.begin, entry.end - entry.begin};
}

}  // namespace gdr::verifying
