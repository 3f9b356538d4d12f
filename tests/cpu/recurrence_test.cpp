// The token recurrence against differences of an independent forward: central differences, and complex steps, which
// have no cancellation and so show the gradients to the last digits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "support.hpp"

namespace gdr::cpu::test {
namespace {

// The inputs of a problem as plain arrays of S (double or complex), in the order of their tensors.
template <class S>
struct Point {
  std::vector<S> q, k, v, g, beta, h0;
};

Point<double> point_of(const Problem& p) {
  const std::size_t states =
      p.sequences.size() * static_cast<std::size_t>(p.sizes.v_heads * p.sizes.dim_k * p.sizes.dim_v);
  return {p.q.values(),    p.k.values(),
          p.v.values(),    p.g.values(),
          p.beta.values(), p.initial_state.present() ? p.initial_state.values() : std::vector<double>(states, 0.0)};
}

Point<std::complex<double>> complex_of(const Point<double>& x) {
  const auto copy = [](const std::vector<double>& from) {
    return std::vector<std::complex<double>>(from.begin(), from.end());
  };
  return {copy(x.q), copy(x.k), copy(x.v), copy(x.g), copy(x.beta), copy(x.h0)};
}

template <class S>
struct Result {
  std::vector<S> o, final_state;
};

// The definition, written as plainly as it can be: no code shared with src/cpu.
template <class S>
Result<S> forward(const Problem& p, const Point<S>& x) {
  const auto [B, T, Hk, Hv, K, V] = p.sizes;
  Result<S> result{std::vector<S>(static_cast<std::size_t>(B * T * Hv * V), S(0)), x.h0};
  for (std::size_t n = 0; n < p.sequences.size(); ++n)
    for (std::int64_t h = 0; h < Hv; ++h) {
      S* const state = result.final_state.data() + (static_cast<std::int64_t>(n) * Hv + h) * K * V;
      for (std::int64_t t = p.sequences[n].begin; t < p.sequences[n].end; ++t) {
        const std::int64_t row = p.sequences[n].batch * T + t;
        const S* const k = x.k.data() + (row * Hk + h / (Hv / Hk)) * K;
        const S* const q = x.q.data() + (row * Hk + h / (Hv / Hk)) * K;
        for (std::int64_t j = 0; j < V; ++j) {
          S read = 0;
          for (std::int64_t i = 0; i < K; ++i) {
            state[i * V + j] *= std::exp(x.g[static_cast<std::size_t>(row * Hv + h)]);
            read += k[i] * state[i * V + j];
          }
          const S u = x.beta[static_cast<std::size_t>(row * Hv + h)] *
                      (x.v[static_cast<std::size_t>((row * Hv + h) * V + j)] - read);
          S o = 0;
          for (std::int64_t i = 0; i < K; ++i) {
            state[i * V + j] += k[i] * u;
            o += p.scale * q[i] * state[i * V + j];
          }
          result.o[static_cast<std::size_t>((row * Hv + h) * V + j)] = o;
        }
      }
    }
  return result;
}

// <o, do> + <final state, dht>, whose gradient the backward computes.
template <class S>
S loss(const Problem& p, const Point<S>& x) {
  const Result<S> result = forward(p, x);
  const std::vector<double> grad_o = p.do_.values();
  S sum = 0;
  for (const Sequence& sequence : p.sequences) {
    const std::int64_t width = p.sizes.v_heads * p.sizes.dim_v;
    const std::int64_t first = (sequence.batch * p.sizes.tokens + sequence.begin) * width;
    for (std::int64_t i = first; i < first + sequence.length() * width; ++i)
      sum += result.o[static_cast<std::size_t>(i)] * grad_o[static_cast<std::size_t>(i)];
  }
  if (p.final_state_grad.present()) {
    const std::vector<double> dht = p.final_state_grad.values();
    for (std::size_t i = 0; i < dht.size(); ++i) sum += result.final_state[i] * dht[i];
  }
  return sum;
}

struct Row {
  std::string name;
  Spec spec;
};

// Small enough for one forward pass a coordinate.
std::vector<Row> small_problems() {
  Spec base;
  base.k_heads = 2;
  base.v_heads = 4;
  base.dim_k = 6;
  base.dim_v = 5;
  base.dtype = base.aux_dtype = DType::fp64;
  std::vector<Row> rows;
  const auto add = [&](const char* name, auto&& change) {
    Spec spec = base;
    change(spec);
    rows.push_back({name, spec});
  };
  add("packed, one empty, padding", [](Spec& s) {
    s.lengths = {4, 1, 0, 6};
    s.pad = 2;
  });
  add("batch of two, three v-heads on one k-head", [](Spec& s) {
    s.lengths = {5, 5};
    s.varlen = false;
    s.k_heads = 1;
    s.v_heads = 3;
  });
  add("no states", [](Spec& s) {
    s.lengths = {7};
    s.initial_state = s.final_state_grad = false;
  });
  add("scale 0.3, slow gates", [](Spec& s) {
    s.lengths = {9};
    s.gates = "slow";
    s.scale = 0.3;
  });
  add("beta 0", [](Spec& s) {
    s.lengths = {6};
    s.beta = "0.0";
  });
  add("K = V = 1", [](Spec& s) {
    s.lengths = {6};
    s.dim_k = s.dim_v = 1;
  });
  return rows;
}

}  // namespace

TEST_CASE("recurrence: forward agrees with the definition") {
  const std::uint64_t seed = fresh_seed();
  MESSAGE("seed ", seed);
  for (Row& row : small_problems()) {
    CAPTURE(row.name);
    row.spec.seed = seed;
    const Problem problem(row.spec);
    const Outputs outputs = truth(problem);
    const Result<double> expected = forward(problem, point_of(problem));
    CHECK(relative_l2(outputs.at("o").values(), expected.o) < 1e-14);
    CHECK(relative_l2(outputs.at("final_state").values(), expected.final_state) < 1e-14);
  }
}

TEST_CASE("recurrence: backward agrees with central differences and complex steps") {
  const std::uint64_t seed = fresh_seed();
  MESSAGE("seed ", seed);
  double worst_central = 0, worst_complex = 0;
  for (Row& row : small_problems()) {
    CAPTURE(row.name);
    row.spec.seed = seed;
    const Problem problem(row.spec);
    const Outputs outputs = truth(problem);
    Point<double> x = point_of(problem);
    // Rows past the last sequence are NaN; the definition never reads them, and their gradients are zero.
    Point<std::complex<double>> z = complex_of(x);
    struct Grad {
      std::string name;
      std::vector<double>& real;
      std::vector<std::complex<double>>& complex;
    };
    for (const Grad& grad : {Grad{"dq", x.q, z.q},
                             {"dk", x.k, z.k},
                             {"dv", x.v, z.v},
                             {"dg", x.g, z.g},
                             {"dbeta", x.beta, z.beta},
                             {"dh0", x.h0, z.h0}}) {
      CAPTURE(grad.name);
      std::vector<double> central(grad.real.size(), 0.0), step(grad.real.size(), 0.0);
      for (std::size_t i = 0; i < grad.real.size(); ++i) {
        const double value = grad.real[i];
        constexpr double kStep = 1e-5, kImaginary = 1e-30;
        grad.real[i] = value + kStep;
        const double above = loss(problem, x);
        grad.real[i] = value - kStep;
        central[i] = (above - loss(problem, x)) / (2 * kStep);
        grad.real[i] = value;
        grad.complex[i] = {value, kImaginary};
        step[i] = loss(problem, z).imag() / kImaginary;
        grad.complex[i] = value;
      }
      const std::vector<double> ours = outputs.at(grad.name).values();
      const double central_error = relative_l2(ours, central), complex_error = relative_l2(ours, step);
      worst_central = std::max(worst_central, central_error);
      worst_complex = std::max(worst_complex, complex_error);
      CHECK(central_error < 1e-8);
      CHECK(complex_error < 1e-13);
    }
  }
  MESSAGE(
      fmt::format("worst relative L2: central differences {:.1e}, complex steps {:.1e}", worst_central, worst_complex));
}

TEST_CASE("recurrence: results do not depend on the number of threads") {
  Spec spec;
  spec.lengths = {40, 0, 17, 1};
  spec.v_heads = 6;
  const Problem problem(spec);
  const Outputs one = run(problem, Method::recurrence, DType::fp64, 1);
  for (const int threads : {2, 3}) {
    CAPTURE(threads);
    for (const auto& entry : run(problem, Method::recurrence, DType::fp64, threads)) {
      const auto& name = entry.first;
      const auto& tensor = entry.second;
      CAPTURE(name);
      CHECK(tensor.bytes() == one.at(name).bytes());
    }
  }
}

}  // namespace gdr::cpu::test
