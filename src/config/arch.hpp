// An Arch says what a GPU architecture can do: limits, features, compile targets, and the rates of one reference
// product. It is the only place where architectures differ: planning and emission read fields, never names.
// Every figure has a source, a sentence that says where it was read and whether it was verified.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.hpp"

namespace gdr {

struct Features {
  bool cp_async = false;           // copies global -> shared of 4, 8, 16 bytes by a thread, asynchronous
  bool ldmatrix = false;           // 8x8 matrices from shared memory into fragments, plain and transposed
  bool mma_bf16 = false;           // mma.sync m16n8k16 on bf16 with fp32 accumulation
  bool mbarrier = false;           // barriers in shared memory, with test_wait
  bool mbarrier_try_wait = false;  // try_wait, which suspends, and expect_tx
  bool bulk_copy = false;          // cp.async.bulk
  bool tensor_copy = false;        // cp.async.bulk.tensor, by a tensor map
  bool stmatrix = false;
  bool clusters = false;
  bool setmaxnreg = false;  // registers move between warpgroups at run time
  bool wgmma = false;
  bool tcgen05 = false;
  bool f32x2 = false;  // two fp32 operations in one instruction

  bool operator==(const Features&) const = default;
};

// The features by the names that configs use, in the order of the struct.
struct FeatureName {
  std::string_view name;
  bool Features::*field;
};
const std::array<FeatureName, 13>& feature_names();

// What a kernel may be compiled for, as NVRTC names it ("sm_120f"), and what is there to use then.
struct CompileTarget {
  std::string name;
  Features features;

  bool operator==(const CompileTarget&) const = default;
};

// Rates of a reference product. They steer choices and floor times; no kernel's correctness depends on them.
struct ArchRates {
  std::string product;
  int num_sms = 0;
  int sm_clock_mhz = 0;
  int bf16_mma_flops_per_clock_per_sm = 0;  // dense mma.sync with fp32 accumulation
  int smem_bytes_per_clock_per_sm = 0;
  std::int64_t hbm_bytes_per_second = 0;
  std::int64_t l2_bytes = 0;

  bool operator==(const ArchRates&) const = default;
};

struct Arch {
  std::string name;  // "sm_120"
  std::string family;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  std::vector<CompileTarget> targets;  // best first; an older compiler may know only the later ones
  Features features;                   // of the first target

  std::int64_t smem_per_block_optin_bytes = 0;  // the most that one block can ask for
  std::int64_t smem_per_sm_bytes = 0;
  std::int64_t smem_reserved_per_block_bytes = 0;  // taken by the system for each resident block
  int registers_per_sm = 0;
  int max_registers_per_thread = 0;
  int register_allocation_unit = 0;  // registers are given to a warp in multiples of this
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;

  ArchRates rates;
  std::map<std::string, std::string> sources;  // figure -> where it comes from

  bool operator==(const Arch&) const = default;
};

// Reads an arch config. Throws a config Error (codes of config/json.hpp; C09: figures that contradict each other).
Arch read_arch(const JsonDocument& document);

}  // namespace gdr
