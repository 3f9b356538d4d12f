// What the plan says about a kernel's text, for naming what happens there and for judging it: roles, ops, which bytes
// of shared memory and which tensors each op may touch, barriers by their place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr::host {

struct BarrierPlace {
  const Barrier* barrier = nullptr;
  int copy = 0;  // stage
};

class KernelFacts {
 public:
  // Keeps a reference to the kernel. `tile_bytes`: a tile that has fewer bytes than the plan says.
  explicit KernelFacts(const Kernel& kernel, const std::map<std::string, int>& tile_bytes = {});

  const Kernel& kernel() const { return kernel_; }
  const Op& op(int index) const { return kernel_.ops[static_cast<std::size_t>(index)]; }
  const Role& role_of_warp(int warp) const;
  int first_warp(const Role& role) const;

  // Whether the op may read (or write) these bytes in this iteration.
  bool may_touch(int op, int iteration, int byte, int bytes, bool writes) const;
  // The tensors that the op reads (or writes).
  const std::vector<std::string>& tensors(int op, bool writes) const;

  // "tile k (12, 64)", of the op's operands if one lies there, else of any tile.
  std::string name_byte(int op, int iteration, int byte) const;
  std::string tile_at(int op, int iteration, int byte) const;  // its name alone

  std::optional<BarrierPlace> barrier_at(int byte) const;  // mbarriers
  const Barrier* barrier_of(int op) const;

 private:
  struct OpFacts {
    int period = 1;                                // of the iterations' stages
    std::vector<std::vector<bool>> reads, writes;  // by iteration in the period, by two bytes
    std::vector<std::string> read_tensors, written_tensors;
  };
  struct Found {
    const Tile* tile = nullptr;
    int row = 0, col = 0;
  };
  const OpFacts& facts_of(int op) const;
  OpFacts make_facts(const Op& op) const;
  Found find(int op, int iteration, int byte) const;

  const Kernel& kernel_;
  const std::map<std::string, int> tile_bytes_;
  mutable std::vector<std::optional<OpFacts>> ops_;  // made when they are first asked for
};

}  // namespace gdr::host
