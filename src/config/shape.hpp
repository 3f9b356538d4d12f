// A Shape says how large the problem is: heads, head dimensions, element types, and the reference workload that the
// cost model assumes. Tokens and sequences are run-time arguments of every kernel: no kernel depends on them.
#pragma once

#include <cstdint>
#include <string>

#include "config/json.hpp"
#include "core/dtype.hpp"

namespace gdr {

struct Shape {
  std::string name;
  std::string model;  // for people
  int k_heads = 0;    // heads of q and k
  int v_heads = 0;    // heads of v, g, beta and o: a multiple of k_heads
  int head_dim_k = 0;
  int head_dim_v = 0;
  DType dtype = DType::bf16;        // of q, k, v, o and their gradients
  DType state_dtype = DType::fp32;  // of initial and final states and their gradients
  std::int64_t tokens = 0;          // of all sequences together
  std::int64_t sequences = 0;

  // v-heads for one k-head.
  int group() const { return v_heads / k_heads; }
  bool operator==(const Shape&) const = default;
};

// Reads a shape config; tokens and sequences default to 32,768 and 1, state_dtype to fp32.
// Throws a config Error (codes of config/json.hpp; C09: values that contradict each other).
Shape read_shape(const JsonDocument& document);

}  // namespace gdr
