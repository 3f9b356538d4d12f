#include "schedule/builders.hpp"

namespace gdr {

std::vector<TensorSpec> backward_tensors(const TensorTable& table) {
  const Problem& p = table.problem;
  const int c = table.chunk;
  using enum TensorKind;
  using enum TensorIndex;
  using enum HeadAxis;
  constexpr GlobalOrder rows = GlobalOrder::rows;
  std::vector<TensorSpec> tensors = {
      {"q", input, token, k_head, c, p.head_dim_k, p.dtype, rows, false},
      {"k", input, token, k_head, c, p.head_dim_k, p.dtype, rows, false},
      {"v", input, token, v_head, c, p.head_dim_v, p.dtype, rows, false},
      {"g", input, token, v_head, c, 1, p.gate_dtype, rows, false},
      {"beta", input, token, v_head, c, 1, p.gate_dtype, rows, false},
      {"do", input, token, v_head, c, p.head_dim_v, p.dtype, rows, false},
      {"h0", input, sequence, v_head, p.head_dim_k, p.head_dim_v, p.state_dtype, rows, true},
      {"dht", input, sequence, v_head, p.head_dim_k, p.head_dim_v, p.state_dtype, rows, true},
      {"dq", output, token, k_head, c, p.head_dim_k, p.dtype, rows, false},
      {"dk", output, token, k_head, c, p.head_dim_k, p.dtype, rows, false},
      {"dv", output, token, v_head, c, p.head_dim_v, p.dtype, rows, false},
      {"dg", output, token, v_head, c, 1, p.gate_dtype, rows, false},
      {"dbeta", output, token, v_head, c, 1, p.gate_dtype, rows, false},
      {"dh0", output, sequence, v_head, p.head_dim_k, p.head_dim_v, p.state_dtype, rows, true},
      {"gamma_chunk", workspace, chunk, v_head, 1, c, DType::fp32, rows, false},
      {"beta_chunk", workspace, chunk, v_head, 1, c, DType::fp32, rows, false},
      {"eg_chunk", workspace, chunk, v_head, 1, c, DType::fp32, rows, false},
      {"er_chunk", workspace, chunk, v_head, 1, c, DType::fp32, rows, false},
      {"a_chunk", workspace, chunk, v_head, c, c, p.dtype, GlobalOrder::lower16, false},
      {"h_chunk", workspace, chunk, v_head, p.head_dim_k, p.head_dim_v, p.dtype, rows, false},
  };
  if (table.partial_sums) {
    tensors.push_back({"dq_head", workspace, token, v_head, c, p.head_dim_k, DType::fp32, rows, false});
    tensors.push_back({"dk_head", workspace, token, v_head, c, p.head_dim_k, DType::fp32, rows, false});
  }
  if (table.stored_gradients) {
    tensors.push_back({"pg_chunk", workspace, chunk, v_head, c, c, p.dtype, GlobalOrder::lower16, false});
    tensors.push_back({"ds_chunk", workspace, chunk, v_head, p.head_dim_k, p.head_dim_v, p.dtype, rows, false});
  }
  if (table.final_state)
    tensors.push_back({"ht", output, sequence, v_head, p.head_dim_k, p.head_dim_v, p.state_dtype, rows, true});
  return tensors;
}

}  // namespace gdr
