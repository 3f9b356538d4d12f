// What the planner knows of a plan beyond the plan itself: plain values for the report, the table and the picture.
// The planner fills them in; nothing here decides anything. An empty text or list means: not known, not shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gdr {

struct KernelFacts {
  std::string kernel_key;
  std::int64_t blocks = 0;           // of one launch on the workload
  std::int64_t flops = 0;            // of matrix products
  std::int64_t hbm_bytes = 0;        // moved to and from device memory
  std::int64_t l2_bytes = 0;         // read and written by all blocks, from the L2 cache or memory
  std::int64_t workspace_bytes = 0;  // of hbm_bytes, to and from workspace
  double floor_us = 0;               // no launch with this grid, these bytes and products can be faster
  double predicted_us = 0;
  double cycles_per_iteration = 0;
  std::int64_t lower_bound_bytes = 0;  // of shared memory: no packing of these tiles takes less
  bool packing_is_optimal = false;     // the tiles' bytes equal the bound, or every packing was tried
  // Every tile whole and on bytes of its own, where that is a meaningful comparison (the fused backward).
  std::optional<std::int64_t> direct_port_bytes;
  std::string registers_note;  // how the register counts were found, for the table
};

enum class Verdict { chosen, runner_up, refused };

// Something that the planner tried, in the order in which it ranks them.
struct CandidateFacts {
  std::string name;  // its decisions in short, "fused c32 s2, v in registers"
  Verdict verdict = Verdict::refused;
  std::int64_t smem_bytes = 0;  // of its largest kernel; 0 if it was not packed
  int registers = 0;            // of its widest thread; 0 if it was not counted
  double predicted_us = 0;      // 0 if it was not costed
  std::string reason;           // why it was chosen or lost
};

// One line of the pass log. Times are for people only: they stand in no file.
struct PassFacts {
  std::string name;
  double microseconds = 0;
  std::string summary;
};

// What costs refer to.
struct WorkloadFacts {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  int k_heads = 0;
  int v_heads = 0;
};

struct PlanFacts {
  std::string shape;  // names of the configs
  std::string budget;
  std::string request_key;  // not the planner's: src/gpu/keys.hpp
  WorkloadFacts workload;
  std::vector<KernelFacts> kernels;  // as many as the plan has, in its order
  std::vector<CandidateFacts> candidates;
  std::vector<PassFacts> passes;
};

}  // namespace gdr
