// The happens-before order that a set of waits gives to a loop body: which operations of which iterations all warps of
// a role have finished when an operation starts. Shared by the passes that pack tiles and place barriers.
//
// Operations are numbered in canonical order (the order of Kernel::ops); running them one by one in that order, one
// iteration after the other, is a legal execution, so every wait that is only for earlier operations can be met.
#pragma once

#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// Operation `after` may start only when all warps have done operation `before` of `distance` iterations earlier.
struct Wait {
  int before = 0;
  int after = 0;
  int distance = 0;
  bool operator==(const Wait&) const = default;
  auto operator<=>(const Wait&) const = default;
};

// All warps of the role of `op` meet before it.
struct Meeting {
  int op = 0;
  bool operator==(const Meeting&) const = default;
};

// The loop body of a kernel as the order sees it.
struct BodyOp {
  int role = -1;         // -1: not in a loop body
  bool is_copy = false;  // asynchronous: done when landed, not when issued
};

class HappensBefore {
 public:
  HappensBefore(const std::vector<BodyOp>& ops, int num_roles, const std::vector<Wait>& waits,
                const std::vector<Meeting>& meetings, int max_distance);

  // Do all warps finish `before`, of `distance` iterations earlier, before any warp starts `after`?
  bool holds(int before, int after, int distance) const;

 private:
  int clock(int op, int iteration, int source) const;
  int source_of(int op) const;

  const std::vector<BodyOp>* ops_;
  int num_sources_ = 0;  // roles, then the copies of each role
  int num_roles_ = 0;
  int last_iteration_ = 0;
  std::vector<int> clocks_;  // [iteration][op][source]: highest iteration * ops + op known done, or -1
};

std::vector<BodyOp> body_ops(const Kernel& kernel);

}  // namespace gdr
