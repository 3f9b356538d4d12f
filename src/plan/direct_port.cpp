#include "plan/direct_port.hpp"

#include "core/dtype.hpp"

namespace gdr {

std::vector<DirectTile> direct_port_tiles(const Problem& problem, int chunk) {
  const int k = problem.head_dim_k, v = problem.head_dim_v;
  return {{"q", chunk, k},  {"k", chunk, k},      {"v", chunk, v},      {"do", chunk, v},     {"a", chunk, chunk},
          {"h", k, v},      {"output", chunk, v}, {"c1", chunk, chunk}, {"c2", chunk, chunk}, {"c3", chunk, chunk},
          {"t1", chunk, v}, {"t2", chunk, v},     {"t3", chunk, v},     {"ds", k, v}};
}

std::int64_t direct_port_bytes(const Problem& problem, int chunk) {
  std::int64_t elements = 0;
  for (const DirectTile& tile : direct_port_tiles(problem, chunk)) elements += std::int64_t{tile.rows} * tile.cols;
  return elements * static_cast<std::int64_t>(size_bytes(problem.dtype));
}

}  // namespace gdr
