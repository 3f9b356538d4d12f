// Pass 2, footprints: which bytes of shared memory each warp of each operation reads and writes. Hazards are between
// warps, so everything that orders or packs stands on this. Bytes are counted in cells of 16.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

inline constexpr int kCellBytes = 16;  // what cp.async and ldmatrix move at once; rows of partial sums start on one

// The rectangle of a shared-memory tile that one warp touches in one operation.
struct RectAccess {
  int tile = 0;  // index into Kernel::tiles
  Range rows, cols;
  bool read = false, write = false;
};
std::vector<RectAccess> rect_accesses(const Kernel& kernel, const Op& op, const Role& role, int warp);

// One cell that an operation touches, relative to the first byte of its tile's stage, and the warps that do.
struct CellUse {
  int tile = 0;
  int cell = 0;
  std::uint32_t readers = 0;  // bit w: warp w of the role
  std::uint32_t writers = 0;
};

struct Footprint {
  int role = -1;  // index into Kernel::roles
  std::vector<CellUse> uses;
};

// One entry per operation of the kernel; empty for operations outside loop bodies, which touch no shared memory.
std::vector<Footprint> footprints(const Kernel& kernel);

}  // namespace gdr
