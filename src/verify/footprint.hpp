// Which elements of which shared-memory tiles one warp touches when it executes a step: the rules of the execution
// model, op kind by op kind.
#pragma once

#include <vector>

#include "verify/index.hpp"

namespace gdr::verifying {

// rows x cols of a tile, in the tile's coordinates; `lower`: of these only the elements in 16x16 blocks on or below the
// tile's diagonal. Ranges are ascending and disjoint.
struct Area {
  std::vector<Range> rows;
  std::vector<Range> cols;
  bool lower = false;
  bool empty() const { return rows.empty() || cols.empty(); }
};

struct Touch {
  int operand = 0;
  Area area;
};

// The part of a register operand's rectangle that a warp of the role owns.
struct Share {
  Range rows;
  std::vector<Range> cols;
  bool empty() const { return rows.size() <= 0 || cols.empty(); }
};
Share share_of(const Tile& tile, const Operand& operand, int warp);

// The contraction of an mma's operand in its tile's coordinates: operand 1 is a, operand 2 is b; all slices together or
// slices [begin, end).
Range contraction_of(const Op& op, int operand);
Range contraction_of(const Op& op, int operand, const Step& step);

// All touches of shared memory by warp `warp` of the op's role. Needs well-formed ops.
std::vector<Touch> smem_touches(const KernelIndex& index, const Step& step, int warp);

}  // namespace gdr::verifying
