// Strided access and conversions at the edge of the CPU backend.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support.hpp"

namespace gdr::cpu::test {
namespace {

// What a tensor of one element of this type holds after a double was written.
double stored(DType dtype, double value) {
  Tensor tensor(dtype, {1, 1, 1, 1});
  tensor.assign({value});
  return tensor.values()[0];
}

}  // namespace

TEST_CASE("view: a double is rounded once") {
  struct Row {
    DType dtype;
    double value, expected;
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  // 1 + 2^-8 lies half-way between two bf16 numbers; with 2^-40 on top it must go up although float cannot hold that.
  const Row rows[] = {{DType::bf16, 1 + 0x1p-8, 1},
                      {DType::bf16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
                      {DType::bf16, -1 - 0x1p-8 - 0x1p-40, -1 - 0x1p-7},
                      {DType::bf16, 1 + 0x3p-8 - 0x1p-40, 1 + 0x1p-7},
                      {DType::bf16, 1 + 0x3p-8, 1 + 0x1p-6},
                      {DType::bf16, -1 - 0x3p-8 + 0x1p-40, -1 - 0x1p-7},
                      {DType::bf16, 1e300, kInf},
                      {DType::bf16, -1e300, -kInf},
                      {DType::bf16, 1e-300, 0},
                      {DType::bf16, -kInf, -kInf},
                      {DType::fp16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
                      {DType::fp16, 1 + 0x1p-11, 1},
                      {DType::fp16, 65519.999999, 65504},
                      {DType::fp16, 65520, kInf},
                      {DType::fp32, 1 + 0x1p-24, 1},
                      {DType::fp32, 0.1, static_cast<double>(0.1f)},
                      {DType::fp64, 0.1, 0.1}};
  for (const Row& row : rows) {
    CAPTURE(to_string(row.dtype));
    CAPTURE(row.value);
    CHECK(stored(row.dtype, row.value) == row.expected);
  }
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp64})
    CHECK(std::isnan(stored(dtype, std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("view: any strides and any alignment give the same results, and nothing else is written") {
  Spec spec;
  spec.lengths = {40, 3};
  spec.pad = 5;
  spec.gates = "slow";
  const Problem dense(spec);
  const Outputs expected = run(dense, Method::chunked_fp32, DType::fp32, 2);
  const auto [B, T, Hk, Hv, K, V] = dense.sizes;

  struct Row {
    std::string name;
    std::array<std::int64_t, 4> q_strides, v_strides;
    std::int64_t first_byte;
  };
  const std::int64_t heads = 3 * std::max(Hk, Hv), dim = std::max(K, V);
  const Row rows[] = {
      {"views of one [T, 3, H, D] tensor", {0, heads * dim, dim, 1}, {0, heads * dim, dim, 1}, 0},
      {"last dimension not contiguous", {0, Hk * K * 2, K * 2, 2}, {0, Hv * V * 3, V * 3, 3}, 0},
      {"heads before tokens", {0, K, T * K, 1}, {0, V, T * V, 1}, 0},
      {"rows across columns", {0, 1, T * K, T}, {0, 1, T * V, T}, 0},
      {"base off by two bytes", {0, Hk * K, K, 1}, {0, Hv * V, V, 1}, 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Problem problem = dense;
    const auto restride = [&](Tensor& tensor, const std::array<std::int64_t, 4>& strides) {
      Tensor other(tensor.dtype(), tensor.shape(), strides, row.first_byte);
      other.poison();
      other.assign(tensor.values());
      tensor = other;
    };
    restride(problem.q, row.q_strides);
    restride(problem.k, row.q_strides);
    restride(problem.v, row.v_strides);
    restride(problem.do_, row.v_strides);
    for (const auto& entry : run(problem, Method::chunked_fp32, DType::fp32, 2)) {
      const auto& name = entry.first;
      const auto& tensor = entry.second;
      CAPTURE(name);
      CHECK(tensor.bytes() == expected.at(name).bytes());
    }

    // Outputs at the same strides: the values arrive, the gaps between them stay as they were.
    FwdCall call;
    static_cast<Inputs&>(call) = problem.inputs();
    Tensor o(DType::fp32, problem.v.shape(), row.v_strides, row.first_byte);
    o.poison();
    call.o = o.view();
    chunked_forward<float>(call, {2});
    CHECK(o.values() == expected.at("o").values());
    Tensor again(DType::fp32, problem.v.shape(), row.v_strides, row.first_byte);
    again.poison();
    again.assign(o.values());
    CHECK(again.bytes() == o.bytes());
  }
}

TEST_CASE("view: states in the layout vk are the same numbers at swapped strides") {
  Spec spec;
  spec.dim_k = 6;
  spec.dim_v = 9;
  spec.gates = "slow";
  const Problem kv(spec);
  const Outputs expected = run(kv, Method::chunked_fp32, DType::fp32, 2);
  const auto [N, Hv, K, V] = kv.initial_state.shape();
  const std::array<std::int64_t, 4> vk_strides = {Hv * K * V, K * V, 1, K};
  const auto as_vk = [&](const Tensor& tensor) {
    Tensor result(tensor.dtype(), tensor.shape(), vk_strides, 0);
    result.assign(tensor.values());
    return result;
  };
  const Tensor h0 = as_vk(kv.initial_state), dht = as_vk(kv.final_state_grad);
  BwdCall call;
  static_cast<Inputs&>(call) = kv.inputs();
  Outputs out;
  for (const char* name : {"dq", "dk", "dv", "dg", "dbeta"}) out[name] = Tensor(DType::fp32, expected.at(name).shape());
  out["dh0"] = Tensor(DType::fp32, expected.at("dh0").shape(), vk_strides, 0);
  for (auto& [name, tensor] : out) tensor.poison();
  call.initial_state = h0.view();
  call.do_ = kv.do_.view();
  call.final_state_grad = dht.view();
  call.dq = out["dq"].view();
  call.dk = out["dk"].view();
  call.dv = out["dv"].view();
  call.dg = out["dg"].view();
  call.dbeta = out["dbeta"].view();
  call.dh0 = out["dh0"].view();
  chunked_backward<float>(call, {2});
  for (const auto& entry : out) {
    const auto& name = entry.first;
    const auto& tensor = entry.second;
    CAPTURE(name);
    CHECK(tensor.values() == expected.at(name).values());
  }
}

}  // namespace gdr::cpu::test
