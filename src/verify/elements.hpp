// The bytes of a tile's elements in one iteration, tabulated through the model's address function.
#pragma once

#include <vector>

#include "schedule/model.hpp"

namespace gdr::verifying {

struct ElementMap {
  // By row * cols + col, -1 where the element does not exist (above the diagonal of a lower16 tile).
  std::vector<int> byte;
  // One past the last column up to which the row's bytes go on without a gap.
  std::vector<int> run_end;
};

// The tile must be placed and well formed.
ElementMap map_elements(const Tile& tile, int iteration);

}  // namespace gdr::verifying
