// Pass 3, dependences: which operations must not change their order, because different warps touch the same bytes and
// one of them writes. Before packing every tile has bytes of its own; afterwards shared bytes add their own.
#pragma once

#include <vector>

#include "plan/footprint.hpp"
#include "schedule/model.hpp"

namespace gdr {

enum class Hazard { read_after_write, write_after_read, write_after_write };

struct Dependence {
  int before = 0;  // operation, index into Kernel::ops
  int after = 0;
  int distance = 0;  // iterations between them
  Hazard hazard = Hazard::read_after_write;
  int tile_before = 0, tile_after = 0;  // differ where two tiles share bytes
};

// `bases[t]`: first cell of tile t in an address space; disjoint ones before packing, the real ones after.
std::vector<Dependence> dependences(const Kernel& kernel, const std::vector<Footprint>& footprints,
                                    const std::vector<int>& bases);

// Bases that give every shared-memory tile cells of its own, and those of the packed offsets.
std::vector<int> separate_bases(const Kernel& kernel);
std::vector<int> packed_bases(const Kernel& kernel);

// The largest distance that dependences of this kernel can have: its deepest stages.
int max_stages(const Kernel& kernel);

}  // namespace gdr
