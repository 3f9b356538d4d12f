// What the planner tries: strategies as lists of kernels, and for each kernel the ways to build it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/builders.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct KernelCandidate {
  std::string label;  // its decisions in short, for people
  int state_split = 1;
  std::function<Kernel(const std::vector<TensorSpec>&)> build;
};

// Candidates with the same roles and fragments, so with the same registers: if those of one do not suffice, none do.
struct Family {
  std::vector<KernelCandidate> candidates;
  bool is_fallback = false;  // tried only if no candidate of an earlier family fits
};

// One launch of a strategy and the ways to do it.
struct KernelSlot {
  std::string function;  // Kernel::function
  std::vector<Family> families;
};

struct Strategy {
  std::string_view name;
  TensorTable (*tensors)(const Problem&, int chunk);
  std::vector<KernelSlot> (*kernels)(const Problem&, int chunk);  // in launch order
};

const std::vector<Strategy>& strategies();

}  // namespace gdr
