// A small problem in memory of its own as arguments of the public interface, right as it stands; tests break it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gdr/gdr.hpp"

namespace gdr::test {

inline std::int64_t product(const Dims& shape) {
  std::int64_t result = 1;
  for (const std::int64_t size : shape) result *= size;
  return result;
}

// A float tensor that owns its memory.
struct Floats {
  Floats() = default;
  explicit Floats(const Dims& dims, float value = 0)
      : shape(dims), values(static_cast<std::size_t>(product(dims)), value) {}
  Tensor tensor() { return {values.data(), DType::fp32, shape, {}, {}}; }
  Dims shape;
  std::vector<float> values;
};

struct Example {
  static constexpr std::int64_t B = 1, T = 40, Hk = 2, Hv = 4, K = 8, V = 6, N = 2;

  Example() {
    std::mt19937 generator(5);
    std::normal_distribution<float> normal;
    for (Floats* floats : {&q, &k, &v, &do_, &h0, &dht})
      for (float& x : floats->values) x = 0.3f * normal(generator);
    for (float& x : g.values) x = -0.02f * std::abs(normal(generator));
    for (float& x : beta.values) x = 1 / (1 + std::exp(normal(generator)));
    for (Floats* floats : {&o, &final_state, &dq, &dk, &dv, &dg, &dbeta, &dh0})
      for (float& x : floats->values) x = NAN;
  }
  Example(const Example&) = delete;

  Tensor cu_seqlens() { return {cu.data(), DType::i32, {N + 1}, {}, {}}; }
  FwdArgs fwd() {
    FwdArgs args;
    args.q = q.tensor();
    args.k = k.tensor();
    args.v = v.tensor();
    args.g = g.tensor();
    args.beta = beta.tensor();
    args.initial_state = h0.tensor();
    args.cu_seqlens = cu_seqlens();
    args.o = o.tensor();
    args.final_state = final_state.tensor();
    return args;
  }
  BwdArgs bwd() {
    BwdArgs args;
    args.q = q.tensor();
    args.k = k.tensor();
    args.v = v.tensor();
    args.g = g.tensor();
    args.beta = beta.tensor();
    args.do_ = do_.tensor();
    args.initial_state = h0.tensor();
    args.final_state_grad = dht.tensor();
    args.cu_seqlens = cu_seqlens();
    args.dq = dq.tensor();
    args.dk = dk.tensor();
    args.dv = dv.tensor();
    args.dg = dg.tensor();
    args.dbeta = dbeta.tensor();
    args.dh0 = dh0.tensor();
    return args;
  }

  Floats q{{B, T, Hk, K}}, k{{B, T, Hk, K}}, v{{B, T, Hv, V}}, g{{B, T, Hv}}, beta{{B, T, Hv}}, do_{{B, T, Hv, V}};
  Floats h0{{N, Hv, K, V}}, dht{{N, Hv, K, V}};
  Floats o{{B, T, Hv, V}}, final_state{{N, Hv, K, V}};
  Floats dq{{B, T, Hk, K}}, dk{{B, T, Hk, K}}, dv{{B, T, Hv, V}}, dg{{B, T, Hv}}, dbeta{{B, T, Hv}};
  Floats dh0{{N, Hv, K, V}};
  std::array<std::int32_t, N + 1> cu = {0, 33, T};
};

}  // namespace gdr::test
