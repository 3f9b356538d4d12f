// What the CPU backend is asked to compute: sizes, sequences and strided views of the caller's tensors.
// Everything here is already checked (src/api does that); the backend only addresses and computes. States are always
// viewed as [N, Hv, K, V]: the memory layout 'vk' is two swapped strides, so no code below knows about it.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/view.hpp"

namespace gdr::cpu {

struct Sizes {
  std::int64_t batch = 0;    // B
  std::int64_t tokens = 0;   // T, rows of each batch entry
  std::int64_t k_heads = 0;  // Hk
  std::int64_t v_heads = 0;  // Hv, a multiple of Hk
  std::int64_t dim_k = 0;    // K
  std::int64_t dim_v = 0;    // V
};

// Tokens [begin, end) of one batch entry; the state starts fresh at `begin`. May be empty.
struct Sequence {
  std::int64_t batch = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t length() const { return end - begin; }
};

// Inputs common to both directions. Rows that belong to no sequence are never read.
struct Inputs {
  Sizes sizes;
  std::vector<Sequence> sequences;  // N of them
  double scale = 1.0;               // s, factor of q
  View q, k;                        // [B, T, Hk, K]
  View v;                           // [B, T, Hv, V]
  View g, beta;                     // [B, T, Hv, 1]; g is the log decay, <= 0
  View initial_state;               // [N, Hv, K, V]; absent means zero

  // r: v-head h reads k-head h / r.
  std::int64_t heads_per_group() const { return sizes.v_heads / sizes.k_heads; }
};

struct FwdCall : Inputs {
  View o;            // [B, T, Hv, V], written everywhere
  View final_state;  // [N, Hv, K, V]; absent means not wanted
};

struct BwdCall : Inputs {
  View do_;               // [B, T, Hv, V]
  View final_state_grad;  // dht [N, Hv, K, V]; absent means zero
  View dq, dk;            // [B, T, Hk, K], sums over the v-heads of a group
  View dv;                // [B, T, Hv, V]
  View dg, dbeta;         // [B, T, Hv, 1]
  View dh0;               // [N, Hv, K, V]; absent means not wanted
};

// Zeroes the rows of a [B, T, H, D] output that belong to no sequence: those past the last one of a packed batch.
void zero_rows_past_end(const Inputs& inputs, const View& output, std::int64_t heads, std::int64_t dim);

}  // namespace gdr::cpu
