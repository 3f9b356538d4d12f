// What a kernel's fields say about its shared memory without being fields: when each tile lives, what shares its
// bytes. Positions are indices into Kernel::ops, the canonical order; a loop's order is a cycle, so a value that an
// iteration hands to the next one lives across the end of the order. The table, the picture and the plan file read
// these facts; no decision depends on them (packing and proofs have the happens-before relation).
#pragma once

#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// A value in one part of a tile: alive from the op that first writes it to the op that last reads it.
struct LiveRange {
  int part = 0;
  int first_op = 0;
  int last_op = 0;
  bool wraps = false;  // alive from first_op to the end of the order, and from its beginning to last_op
  bool operator==(const LiveRange&) const = default;
};

struct TileUse {
  int op = 0;
  int part = 0;
  bool reads = false;
  bool writes = false;
  bool operator==(const TileUse&) const = default;
};

struct TileFacts {
  const Tile* tile = nullptr;
  int bytes = 0;                     // of all stages
  std::vector<TileUse> uses;         // in canonical order, one for each op and part
  std::vector<LiveRange> lives;      // by part, then by first_op
  std::vector<std::string> aliases;  // tiles with a byte in common, in the order of Kernel::tiles
  int first_op() const { return uses.empty() ? -1 : uses.front().op; }
  int last_op() const { return uses.empty() ? -1 : uses.back().op; }
};

// The shared-memory tiles in the order of Kernel::tiles. They point into `kernel`. Tiles without a place (offset -1)
// alias nothing.
std::vector<TileFacts> memory_map(const Kernel& kernel);

}  // namespace gdr
