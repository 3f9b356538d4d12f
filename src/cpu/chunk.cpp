#include "cpu/chunk.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gdr::cpu {
namespace {

// A log decay below this is taken as this: e^-120 is nothing beside any state, and -inf or -1e6 would make differences
// of running sums meaningless (ALGORITHM.md, section 6, point 1). NaN stays NaN.
constexpr double kLeastLogDecay = -120.0;

// Below this beta, dbeta is not taken from a quotient by beta (section 4).
constexpr double kLeastDivisor = 0x1p-60;

// Sum of x_i y_i with eight running sums, which the compiler keeps in vector registers.
template <class T>
double dot(const T* x, const T* y, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  T lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  for (const T lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// out_i <- factor x_i
template <class T>
void scaled_row(double factor, const T* x, std::int64_t count, T* out) {
  const T f = static_cast<T>(factor);
  for (std::int64_t i = 0; i < count; ++i) out[i] = f * x[i];
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

template <class T>
Chunk<T>::Chunk(const Sizes& sizes)
    : gemm_(gemm_kernels<T>()),
      dim_k_(sizes.dim_k),
      dim_v_(sizes.dim_v),
      decay_(kChunk * kChunk),
      qk_(2 * kChunk * dim_k_),
      v_(kChunk * dim_v_),
      odv_(2 * kChunk * dim_v_),
      pm_(2 * kChunk * kChunk),
      u_(kChunk * dim_v_),
      w_(kChunk * dim_v_),
      e_(kChunk * dim_v_),
      d1_(kChunk * dim_v_),
      d_(kChunk * dim_v_),
      scaled_(2 * kChunk * dim_v_),
      dqk_(2 * kChunk * dim_k_),
      oe_(2 * kChunk * kChunk),
      dp_(kChunk * kChunk),
      dpk_(2 * kChunk * kChunk),
      x_(kChunk * kChunk) {}

template <class T>
void Chunk<T>::load(const Inputs& inputs, const ChunkPlace& place) {
  place_ = place;
  rows_ = place.rows;
  scale_ = static_cast<T>(inputs.scale);
  const std::int64_t k_head = place.v_head / inputs.heads_per_group();
  read_block(inputs.k, token_rows(place.batch, place.begin, k_head, rows_, dim_k_), qk_.data() + rows_ * dim_k_);
  read_block(inputs.v, token_rows(place.batch, place.begin, place.v_head, rows_, dim_v_), v_.data());
  load_decays(inputs);
}

template <class T>
void Chunk<T>::load_q(const Inputs& inputs) {
  const std::int64_t k_head = place_.v_head / inputs.heads_per_group();
  read_block(inputs.q, token_rows(place_.batch, place_.begin, k_head, rows_, dim_k_), qk_.data());
}

template <class T>
void Chunk<T>::load_do(const BwdCall& call) {
  read_block(call.do_, token_rows(place_.batch, place_.begin, place_.v_head, rows_, dim_v_), odv_.data());
}

template <class T>
void Chunk<T>::load_decays(const Inputs& inputs) {
  const Block column = token_rows(place_.batch, place_.begin, place_.v_head, rows_, 1);
  Rows gamma;
  read_block(inputs.g, column, gamma.data());
  read_block(inputs.beta, column, beta_.data());
  double sum = 0;
  for (std::int64_t i = 0; i < rows_; ++i) {
    const double g = gamma[at(i)];
    sum += g < kLeastLogDecay ? kLeastLogDecay : g;
    gamma[at(i)] = sum;
  }
  for (std::int64_t i = 0; i < rows_; ++i) {
    eg_[at(i)] = std::exp(gamma[at(i)]);
    er_[at(i)] = std::exp(sum - gamma[at(i)]);
    T* row = decay_.data() + i * rows_;
    // The difference first, then the exponential, and only where i >= j: for i < j it could overflow.
    for (std::int64_t j = 0; j <= i; ++j) row[j] = std::exp(static_cast<T>(gamma[at(i)] - gamma[at(j)]));
    std::fill(row + i + 1, row + rows_, T(0));
  }
  el_ = std::exp(sum);
}

template <class T>
void Chunk<T>::invert(T* a) {
  // Substitution row by row: row i of A' - I is -(L_i + L_i (A' - I)), L = M diag(beta). No powers of L are formed:
  // for nearly equal keys they grow beyond all bounds while A' itself does not (section 6, point 5).
  T* const kk = x_.data();
  gemm_.nt(rows_, rows_, dim_k_, k_rows(), dim_k_, k_rows(), dim_k_, kk, rows_, false);
  for (std::int64_t i = 0; i < rows_; ++i) {
    T* const row = a + i * rows_;
    std::fill(row, row + rows_, T(0));
    for (std::int64_t j = 0; j < i; ++j) {
      const T l = kk[i * rows_ + j] * decay_.data()[i * rows_ + j] * static_cast<T>(beta_[at(j)]);
      const T* const above = a + j * rows_;
      for (std::int64_t m = 0; m < j; ++m) row[m] -= l * above[m];
      row[j] -= l;
    }
  }
}

template <class T>
void Chunk<T>::solve_errors(const T* a, const T* s0) {
  gemm_.nn(rows_, dim_v_, dim_k_, k_rows(), dim_k_, s0, dim_v_, u_.data(), dim_v_, false);
  for (std::int64_t i = 0; i < rows_; ++i) {
    const T eg = static_cast<T>(eg_[at(i)]);
    for (std::int64_t j = i * dim_v_; j < (i + 1) * dim_v_; ++j) w_.data()[j] = v_.data()[j] - eg * u_.data()[j];
  }
  std::copy_n(w_.data(), rows_ * dim_v_, e_.data());  // E = W + (A' - I) W
  gemm_.nn(rows_, dim_v_, rows_, a, rows_, w_.data(), dim_v_, e_.data(), dim_v_, true);
}

template <class T>
const T* Chunk<T>::output(const T* s0) {
  T* const o = d_.data();
  T* const pg = pm_.data();
  gemm_.nn(rows_, dim_v_, dim_k_, q_rows(), dim_k_, s0, dim_v_, o, dim_v_, false);
  gemm_.nt(rows_, rows_, dim_k_, q_rows(), dim_k_, k_rows(), dim_k_, pg, rows_, false);
  for (std::int64_t i = 0; i < rows_; ++i) {
    scaled_row(static_cast<double>(scale_) * eg_[at(i)], o + i * dim_v_, dim_v_, o + i * dim_v_);
    scaled_row(beta_[at(i)], e_.data() + i * dim_v_, dim_v_, scaled_.data() + i * dim_v_);
    for (std::int64_t j = 0; j < rows_; ++j) pg[i * rows_ + j] *= scale_ * decay_.data()[i * rows_ + j];
  }
  gemm_.nn(rows_, dim_v_, rows_, pg, rows_, scaled_.data(), dim_v_, o, dim_v_, true);
  return o;
}

template <class T>
void Chunk<T>::advance(const T* s0, T* s1) {
  for (std::int64_t i = 0; i < rows_; ++i)
    scaled_row(er_[at(i)] * beta_[at(i)], e_.data() + i * dim_v_, dim_v_, scaled_.data() + i * dim_v_);
  scaled_row(el_, s0, dim_k_ * dim_v_, s1);
  gemm_.tn(dim_k_, dim_v_, rows_, k_rows(), dim_k_, scaled_.data(), dim_v_, s1, dim_v_, true);
}

template <class T>
void Chunk<T>::score_pairs() {
  const std::int64_t n = rows_;
  T* const pg = pm_.data();
  T* const m = pm_.data() + n * n;
  // [P; KK] = [Q; K] K^T; Pg = s P o G; M = strictLower(KK o G).
  gemm_.nt(2 * n, n, dim_k_, q_rows(), dim_k_, k_rows(), dim_k_, pg, n, false);
  for (std::int64_t i = 0; i < n * n; ++i) pg[i] *= scale_ * decay_.data()[i];
  for (std::int64_t i = 0; i < n * n; ++i) m[i] *= decay_.data()[i];
  for (std::int64_t i = 0; i < n; ++i) m[i * n + i] = 0;
}

template <class T>
void Chunk<T>::solve_gradient(const T* a, const T* ds) {
  const std::int64_t n = rows_, K = dim_k_, V = dim_v_;
  const T* const pg = pm_.data();
  const T* const dO = odv_.data();
  T* const dV = odv_.data() + n * V;
  // 3: D1 = er (K dS); D = D1 + Pg^T dO.
  gemm_.nn(n, V, K, k_rows(), K, ds, V, d1_.data(), V, false);
  for (std::int64_t i = 0; i < n; ++i) scaled_row(er_[at(i)], d1_.data() + i * V, V, d1_.data() + i * V);
  std::copy_n(d1_.data(), n * V, d_.data());
  gemm_.tn(n, V, n, pg, n, dO, V, d_.data(), V, true);

  // 4: dV = beta D + (A' - I)^T (beta D).
  for (std::int64_t i = 0; i < n; ++i) scaled_row(beta_[at(i)], d_.data() + i * V, V, scaled_.data() + i * V);
  std::copy_n(scaled_.data(), n * V, dV);
  gemm_.tn(n, V, n, a, n, scaled_.data(), V, dV, V, true);
}

template <class T>
void Chunk<T>::retreat(const T* ds, T* ds0) {
  // dS0 = eL dS + [Q; K]^T [s eg dO; -eg dV].
  const std::int64_t n = rows_, K = dim_k_, V = dim_v_;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row_o = i * V, row_v = (n + i) * V;
    scaled_row(static_cast<double>(scale_) * eg_[at(i)], odv_.data() + row_o, V, scaled_.data() + row_o);
    scaled_row(-eg_[at(i)], odv_.data() + row_v, V, scaled_.data() + row_v);
  }
  scaled_row(el_, ds, K * V, ds0);
  gemm_.tn(K, V, 2 * n, q_rows(), K, scaled_.data(), V, ds0, V, true);
}

template <class T>
void Chunk<T>::differentiate(const T* a, const T* s0, const T* ds) {
  const std::int64_t n = rows_, K = dim_k_, V = dim_v_;
  const T* const decay = decay_.data();
  const T* const pg = pm_.data();
  const T* const m = pm_.data() + n * n;
  const T* const dO = odv_.data();
  const T* const dV = odv_.data() + n * V;
  T* const dQ = dqk_.data();
  T* const dK = dqk_.data() + n * K;
  Rows reach_back, reach_on;  // a_i and b_i of dg

  // 5, 7, 8: U, W, E.
  solve_errors(a, s0);

  // 6: [dQ1; dK2] = [s eg; -eg] ([dO; dV] S0^T); the parts of dg that reach back to the chunk start.
  gemm_.nt(2 * n, K, V, dO, V, s0, V, dQ, K, false);
  for (std::int64_t i = 0; i < n; ++i) {
    const double eg = eg_[at(i)];
    scaled_row(static_cast<double>(scale_) * eg, dQ + i * K, K, dQ + i * K);
    scaled_row(-eg, dK + i * K, K, dK + i * K);
    reach_back[at(i)] = dot(q_rows() + i * K, dQ + i * K, K) - eg * dot(dV + i * V, u_.data() + i * V, V);
    reach_on[at(i)] = beta_[at(i)] * dot(e_.data() + i * V, d1_.data() + i * V, V);
  }
  double whole = 0;  // <dS, S0>, a row at a time
  for (std::int64_t i = 0; i < K; ++i) whole += dot(ds + i * V, s0 + i * V, V);

  // 9, 10: dPg = lower(dO E^T) diag(beta), dP = s G o dPg, Y = strictLower(dV E^T), dKK = -G o Y diag(beta),
  //        X = strictLower(dPg o Pg) - (M o Y) diag(beta).
  T* const oe = oe_.data();
  T* const ve = oe_.data() + n * n;
  gemm_.nt(2 * n, n, V, dO, V, e_.data(), V, oe, n, false);
  Rows my{};  // sum over l > i of M_li Y_li
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const std::int64_t ij = i * n + j;
      const T beta = static_cast<T>(beta_[at(j)]);
      const T dpg = oe[ij] * beta;
      const T myij = m[ij] * ve[ij];
      my[at(j)] += static_cast<double>(myij);
      x_.data()[ij] = dpg * pg[ij] - myij * beta;
      dp_.data()[ij] = scale_ * decay[ij] * dpg;
      dpk_.data()[j * 2 * n + i] = dp_.data()[ij];
      dpk_.data()[i * 2 * n + j] = 0;
      const T dkk = -decay[ij] * ve[ij] * beta;
      dpk_.data()[i * 2 * n + n + j] = dkk;
      dpk_.data()[j * 2 * n + n + i] = dkk;
    }
    const std::int64_t ii = i * n + i;
    dp_.data()[ii] = scale_ * oe[ii] * static_cast<T>(beta_[at(i)]);  // G_ii = 1
    std::fill(dp_.data() + ii + 1, dp_.data() + (i + 1) * n, T(0));
    dpk_.data()[i * 2 * n + i] = dp_.data()[ii];
    dpk_.data()[i * 2 * n + n + i] = 0;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const e = e_.data() + i * V;
    dbeta_[at(i)] =
        beta_[at(i)] > kLeastDivisor ? dot(dV + i * V, e, V) / beta_[at(i)] : dot(d_.data() + i * V, e, V) - my[at(i)];
  }

  // 11: dK += er beta (E dS^T).
  for (std::int64_t i = 0; i < n; ++i)
    scaled_row(er_[at(i)] * beta_[at(i)], e_.data() + i * V, V, scaled_.data() + i * V);
  gemm_.nt(n, K, V, scaled_.data(), V, ds, V, dK, K, true);

  // 12: dQ += dP K; dK += [dP^T, dKK + dKK^T] [Q; K].
  gemm_.nn(n, K, n, dp_.data(), n, k_rows(), K, dQ, K, true);
  gemm_.nn(n, K, 2 * n, dpk_.data(), 2 * n, q_rows(), K, dK, K, true);

  assemble_dg(reach_back, reach_on, el_ * whole);
}

// "rect" of section 4: dg_t = c + sum_{i>=t} a_i + sum_{i<t} b_i + sum_{j<t<=i} X_ij. Nothing is added that has to
// cancel again.
template <class T>
void Chunk<T>::assemble_dg(const Rows& a, const Rows& b, double c) {
  std::fill(dg_.begin(), dg_.end(), 0.0);
  for (std::int64_t i = 1; i < rows_; ++i) {
    const T* const row = x_.data() + i * rows_;
    double left = 0;  // sum over j < t of X_ij
    for (std::int64_t t = 1; t <= i; ++t) {
      left += static_cast<double>(row[t - 1]);
      dg_[at(t)] += left;
    }
  }
  double back = 0;
  for (std::int64_t t = rows_ - 1; t >= 0; --t) {
    back += a[at(t)];
    dg_[at(t)] += back;
  }
  double on = 0;
  for (std::int64_t t = 0; t < rows_; ++t) {
    dg_[at(t)] += on + c;
    on += b[at(t)];
  }
}

template class Chunk<float>;
template class Chunk<double>;

}  // namespace gdr::cpu
