// What a direct port of the three-consumer Hopper backward keeps in shared memory: the inventory of section 5 of the
// specification, every tile whole, on bytes of its own and resident. A yardstick for plans; nothing is built from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

struct DirectTile {
  std::string name;
  int rows = 0;
  int cols = 0;
};

std::vector<DirectTile> direct_port_tiles(const Problem& problem, int chunk);

// Their bytes; vectors and barriers come on top.
std::int64_t direct_port_bytes(const Problem& problem, int chunk);

}  // namespace gdr
