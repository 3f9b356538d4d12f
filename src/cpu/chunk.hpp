// One chunk of one v-head in scheme R (ALGORITHM.md, sections 2 to 4; the step numbers below are those of its tables):
// the arithmetic, on dense row-major tiles in T (float or double), nothing else. Tiles have as many rows as the chunk
// has tokens, so there are no padding rows to keep harmless. Log decays are summed and subtracted in float64: a sum of
// gates in float32 would alone cost relative 1e-5 in every decay.
#pragma once

#include <array>
#include <cstdint>

#include "cpu/buffer.hpp"
#include "cpu/call.hpp"
#include "cpu/gemm.hpp"

namespace gdr::cpu {

inline constexpr std::int64_t kChunk = 32;  // tokens of a whole chunk

// Tokens [begin, begin + rows) of a batch entry, as v-head `v_head` sees them.
struct ChunkPlace {
  std::int64_t batch = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;  // 1 to kChunk
  std::int64_t v_head = 0;
};

template <class T>
class Chunk {
 public:
  // Allocates the tiles for any chunk of a problem with these sizes.
  explicit Chunk(const Sizes& sizes);

  // Reads k, v, g and beta of a chunk and forms its decays. All other functions speak of the chunk loaded last.
  void load(const Inputs& inputs, const ChunkPlace& place);
  void load_q(const Inputs& inputs);
  void load_do(const BwdCall& call);

  // F2, F3: a <- A' - I, the strictly lower part of (I + M diag(beta))^-1, [rows, rows].
  void invert(T* a);
  // F4 to F6: E, from the state at the chunk start.
  void solve_errors(const T* a, const T* s0);
  // F7, F8, after solve_errors and load_q: o [rows, V], to be taken before advance changes s0 in place.
  const T* output(const T* s0);
  // F9, after solve_errors: s1, the state at the chunk end.
  void advance(const T* s0, T* s1);

  // The backward, after load, load_q and load_do. ds is the gradient of the state at the chunk end. Only two of its
  // parts are links of the recurrence, solve_gradient and retreat.
  // Steps 1, 2: Pg and M.
  void score_pairs();
  // Steps 3, 4, after score_pairs: D1, D and dV.
  void solve_gradient(const T* a, const T* ds);
  // Step 13, after solve_gradient: ds0, the gradient of the state at the chunk start.
  void retreat(const T* ds, T* ds0);
  // Steps 5 to 12, after solve_gradient: the chunk's gradients. s0 is the state at its start.
  void differentiate(const T* a, const T* s0, const T* ds);

  // What differentiate leaves; valid until the next load.
  const T* dq() const { return dqk_.data(); }                   // [rows, K], this v-head's share
  const T* dk() const { return dqk_.data() + rows_ * dim_k_; }  // [rows, K], this v-head's share
  const T* dv() const { return odv_.data() + rows_ * dim_v_; }  // [rows, V]
  const double* dg() const { return dg_.data(); }               // [rows]
  const double* dbeta() const { return dbeta_.data(); }         // [rows]

 private:
  using Rows = std::array<double, kChunk>;

  const T* q_rows() const { return qk_.data(); }
  const T* k_rows() const { return qk_.data() + rows_ * dim_k_; }
  void load_decays(const Inputs& inputs);
  void assemble_dg(const Rows& a, const Rows& b, double c);

  const GemmKernels<T>& gemm_;
  std::int64_t dim_k_, dim_v_;
  std::int64_t rows_ = 0;
  ChunkPlace place_;
  T scale_ = 1;

  Rows beta_{}, eg_{}, er_{};  // beta; decay from the chunk start to token i, included; from token i to the chunk end
  double el_ = 1;              // decay over the whole chunk
  Buffer<T> decay_;            // G [rows, rows], zero above the diagonal
  Buffer<T> qk_;               // [Q; K], [2 rows, K]
  Buffer<T> v_;                // [rows, V]
  Buffer<T> odv_;              // [dO; dV], [2 rows, V]
  Buffer<T> pm_;               // [P; KK], then [Pg; M], [2 rows, rows]
  Buffer<T> u_, w_, e_;        // U, W, E [rows, V]
  Buffer<T> d1_, d_;           // D1, D [rows, V]
  Buffer<T> scaled_;           // an operand with scaled rows, up to [2 rows, V]
  Buffer<T> dqk_;              // [dQ; dK], [2 rows, K]
  Buffer<T> oe_;               // [dO; dV] E^T, [2 rows, rows]
  Buffer<T> dp_;               // dP [rows, rows]
  Buffer<T> dpk_;              // [dP^T, dKK + dKK^T], [rows, 2 rows]
  Buffer<T> x_;                // X [rows, rows]
  Rows dg_{}, dbeta_{};
};

}  // namespace gdr::cpu
