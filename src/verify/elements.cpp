#include "verify/elements.hpp"

#include "core/dtype.hpp"
#include "schedule/layout.hpp"
#include "verify/index.hpp"

namespace gdr::verifying {

ElementMap map_elements(const Tile& tile, int iteration) {
  ElementMap map;
  const int elem = static_cast<int>(size_bytes(tile.dtype));
  map.byte.assign(static_cast<std::size_t>(tile.rows * tile.cols), -1);
  map.run_end.assign(map.byte.size(), 0);
  for (int row = 0; row < tile.rows; ++row) {
    const int base = row * tile.cols;
    for (int col = 0; col < tile.cols; ++col)
      if (element_exists(tile, row, col)) at(map.byte, base + col) = element_byte(tile, iteration, row, col);
    for (int col = tile.cols - 1; col >= 0; --col) {
      const int here = base + col;
      const bool goes_on =
          col + 1 < tile.cols && at(map.byte, here) >= 0 && at(map.byte, here + 1) == at(map.byte, here) + elem;
      at(map.run_end, here) = goes_on ? at(map.run_end, here + 1) : col + 1;
    }
  }
  return map;
}

}  // namespace gdr::verifying
