// Times the kernels of a backward on a device, and sets what the driver says of their code beside what the plan says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/session.hpp"

namespace gdr {

struct BenchRequest {
  GpuRules rules;
  GpuProblem problem;
  int device = 0;
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;  // of each sequence
  int k_heads = 0;          // v-heads: k_heads * problem.group
  int repeats = 10;         // timed, after two that are not
  // Where the plan follows another architecture's rules: more shared memory is asked for at launch, so that no more
  // blocks share an SM than would there.
  bool like_planned_arch = true;
  // Outputs are filled with set bits before each run, and compared bit for bit with those of the first.
  bool check_bits = false;
};

struct BenchKernel {
  std::string name, function;
  std::int64_t blocks = 0;
  int threads = 0;
  // By the plan: of the widest thread, or with registers of the roles' own the mean; bytes of shared memory; blocks
  // that an SM of the plan's architecture holds; bytes from and to device memory, and operations of matrix products.
  int plan_registers = 0, plan_smem_bytes = 0, plan_blocks_per_sm = 0;
  std::int64_t plan_hbm_bytes = 0, plan_flops = 0;
  // By the driver, for the code that ran and for the shared memory asked for.
  int registers = 0, local_bytes = 0, static_smem_bytes = 0, launch_smem_bytes = 0, blocks_per_sm = 0;
  double median_ms = 0, least_ms = 0;
};

struct BenchResult {
  DeviceFacts device;
  std::string arch, strategy, target;
  int chunk = 0;
  std::vector<BenchKernel> kernels;    // in launch order
  double median_ms = 0, least_ms = 0;  // of all kernels, from the begin of the first to the end of the last
  // With check_bits: runs whose outputs were not those of the first; output elements that the first did not write.
  int different = 0;
  std::int64_t unwritten = 0;
};

// The inputs are random, without states; the device's L2 cache is overwritten before each run. Throws Error as
// GpuSession::get, and device GDR-D01 (the driver cannot measure), GDR-D03.
BenchResult gpu_bench(GpuSession& session, const BenchRequest& request);

}  // namespace gdr
