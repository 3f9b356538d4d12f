// Shared memory cut into cells: the coarsest sets of bytes such that every footprint in question is a union of cells.
// All bytes of a cell are always touched together, so a check per cell is exact, byte for byte, and a block of 100 KB
// has a few thousand cells.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "verify/footprint.hpp"

namespace gdr::verifying {

class CellMap {
 public:
  explicit CellMap(const Kernel& kernel) : kernel_(kernel) {}

  // The footprint of `area` of tile number `tile` in the iterations that use copy `copy`; equal ones get one number.
  // The area lies in one part of the tile, so that no two of its elements share a byte.
  int add(int tile, int copy, const Area& area);
  // After the last add: computes the cells.
  void cut();

  int num_cells() const { return static_cast<int>(hulls_.size()); }
  std::span<const int> cells(int footprint) const;
  // From the first to the last byte of a cell (it may have gaps).
  Range hull(int cell) const { return hulls_[static_cast<std::size_t>(cell)]; }

 private:
  // Runs of bytes [begin, end) of all footprints, one after the other; after piecing, of pieces.
  struct Entry {
    int tile = 0;
    int copy = 0;
    Area area;
    std::size_t begin = 0, end = 0;  // in runs_, then in cells_
  };

  void find_runs();
  std::vector<int> cut_into_pieces();
  void refine(int num_pieces, const std::vector<int>& piece_begin);

  const Kernel& kernel_;
  std::map<std::vector<int>, int> known_;
  std::vector<Entry> entries_;
  std::vector<Range> runs_;
  std::vector<int> cells_;
  std::vector<Range> hulls_;
};

}  // namespace gdr::verifying
