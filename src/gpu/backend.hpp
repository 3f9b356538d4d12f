// The cuda backend of a call on host memory: plans, compiles once for each class of problems, copies in, launches,
// copies out. Fixed lengths, bf16, states as [K, V], group of any size.
#pragma once

#include <string>
#include <vector>

#include "cpu/call.hpp"

namespace gdr {

struct GpuChoice {
  std::string arch;      // whose rules and budget the plan follows; empty: the device's
  std::string strategy;  // empty: fused
  int device = 0;
};

struct GpuRun {
  std::string device;  // its name
  std::vector<std::string> kernels;
};

// Why no call can be served here: no driver, no device, no compiler, a device without a config. Empty if one can.
std::string gpu_unavailable();

// Throws Error: unsupported GDR-G03 (what this backend cannot do yet, named), and those of planner, compiler, driver.
GpuRun gpu_backward(const cpu::BwdCall& call, const GpuChoice& choice);

}  // namespace gdr
