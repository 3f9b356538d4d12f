// Passes 4 and 5: which tiles may share bytes, and where each tile lies.
//
// A tile lives from each write to the last read of what was written; two tiles may share bytes if their lives do not
// overlap in canonical order. Whether sharing is also cheap depends on the happens-before order, which is partial:
// `free` pairs are ordered by the dataflow already (or by a meeting inside one role), other pairs need a wait more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/dependences.hpp"
#include "plan/happens_before.hpp"
#include "schedule/model.hpp"

namespace gdr {

// Which pairs the packer may put on the same bytes: none, those that are free, also matrix tiles whose sharing needs a
// wait (vectors are small: a wait costs more than they save), or all whose lives do not overlap.
enum class Aliasing { none, free, matrices, any };
std::string to_string(Aliasing aliasing);

// One stretch of a tile's life in the loop body.
struct Life {
  int first = 0;              // the write
  int last = 0;               // the last access of what was written
  std::vector<int> accesses;  // operations, ascending
};
// Per tile of the kernel (empty for register tiles). A tile of several stages, or one whose values live into the next
// iteration, has one life over the whole body.
std::vector<std::vector<Life>> tile_lives(const Kernel& kernel, const std::vector<Footprint>& footprints);

// conflicts[i][j]: tiles i and j must not share bytes. Symmetric; register tiles conflict with nothing.
using ConflictGraph = std::vector<std::vector<bool>>;
// `order`: the order without any sharing.
ConflictGraph conflict_graph(const Kernel& kernel, const std::vector<std::vector<Life>>& lives,
                             const HappensBefore& order, Aliasing aliasing);

}  // namespace gdr
