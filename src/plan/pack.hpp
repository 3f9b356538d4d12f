// Pass 5, pack: offsets for blocks of bytes of which some must not overlap, in as few bytes as can be found, with a
// lower bound. Knows nothing of tiles, so that small cases can be compared with brute force.
#pragma once

#include <vector>

namespace gdr {

struct PackItem {
  int bytes = 0;
  int alignment = 1;
};

struct Packing {
  std::vector<int> offsets;
  int total_bytes = 0;
  int lower_bound_bytes = 0;       // the heaviest set of items of which every two conflict
  bool is_proven_optimal = false;  // total equals the bound, or the search was complete
};

// conflicts[i][j]: items i and j must not overlap (symmetric). Deterministic; stops at the bound or after a fixed
// number of placements, and then returns the best packing found.
Packing pack(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts);

// Weight of the heaviest clique, exact.
int heaviest_clique(const std::vector<PackItem>& items, const std::vector<std::vector<bool>>& conflicts);

}  // namespace gdr
