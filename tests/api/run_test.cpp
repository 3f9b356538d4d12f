// run_fwd and run_bwd: what they compute is what the backend computes, through every option.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/settings.hpp"
#include "cpu/recurrence.hpp"
#include "example.hpp"

namespace gdr::test {
namespace {

cpu::View view(Floats& floats) {
  cpu::View result{floats.values.data(), DType::fp32, {}, true};
  std::int64_t stride = 1;
  for (std::size_t i = floats.shape.size(); i-- > 0; stride *= floats.shape[i]) result.strides[i] = stride;
  return result;
}

cpu::Inputs inputs(Example& e, double scale) {
  cpu::Inputs result;
  result.sizes = {e.B, e.T, e.Hk, e.Hv, e.K, e.V};
  result.sequences = {{0, 0, 33}, {0, 33, e.T}};
  result.scale = scale;
  result.q = view(e.q);
  result.k = view(e.k);
  result.v = view(e.v);
  result.g = view(e.g);
  result.beta = view(e.beta);
  result.initial_state = view(e.h0);
  return result;
}

double relative_l2(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

using Named = std::pair<std::string, Floats Example::*>;
const Named kFwdOutputs[] = {{"o", &Example::o}, {"final_state", &Example::final_state}};
const Named kBwdOutputs[] = {{"dq", &Example::dq}, {"dk", &Example::dk},       {"dv", &Example::dv},
                             {"dg", &Example::dg}, {"dbeta", &Example::dbeta}, {"dh0", &Example::dh0}};

// The recurrence on the same inputs.
void run_truth(Example& e, double scale) {
  cpu::FwdCall fwd;
  static_cast<cpu::Inputs&>(fwd) = inputs(e, scale);
  fwd.o = view(e.o);
  fwd.final_state = view(e.final_state);
  cpu::recurrence_forward(fwd, 1);
  cpu::BwdCall bwd;
  static_cast<cpu::Inputs&>(bwd) = inputs(e, scale);
  bwd.do_ = view(e.do_);
  bwd.final_state_grad = view(e.dht);
  bwd.dq = view(e.dq);
  bwd.dk = view(e.dk);
  bwd.dv = view(e.dv);
  bwd.dg = view(e.dg);
  bwd.dbeta = view(e.dbeta);
  bwd.dh0 = view(e.dh0);
  cpu::recurrence_backward(bwd, 1);
}

// The state tensor with its last two dimensions exchanged in memory.
Floats transposed(const Floats& state) {
  Floats result({state.shape[0], state.shape[1], state.shape[3], state.shape[2]});
  const std::int64_t rows = state.shape[2], cols = state.shape[3];
  for (std::size_t i = 0; i < state.values.size(); ++i) {
    const std::int64_t index = static_cast<std::int64_t>(i);
    const std::int64_t block = index / (rows * cols), row = index / cols % rows, col = index % cols;
    result.values[static_cast<std::size_t>(block * rows * cols + col * rows + row)] = state.values[i];
  }
  return result;
}

}  // namespace

TEST_CASE("run: forward and backward agree with the recurrence") {
  struct Row {
    std::string name;
    Options options;
    std::optional<double> scale;
  };
  Options cpu_fp64, one_thread;
  cpu_fp64.backend = Backend::cpu;
  cpu_fp64.compute_dtype = DType::fp64;
  one_thread.num_threads = 1;
  for (const Row& row : {Row{"defaults", {}, {}},
                         {"backend cpu, float64", cpu_fp64, {}},
                         {"one thread", one_thread, {}},
                         {"a scale", {}, 0.7}}) {
    CAPTURE(row.name);
    Example truth, ours;
    run_truth(truth, row.scale.value_or(1 / std::sqrt(8.0)));
    FwdArgs fwd = ours.fwd();
    BwdArgs bwd = ours.bwd();
    fwd.scale = bwd.scale = row.scale;
    const Result forward = run_fwd(fwd, row.options), backward = run_bwd(bwd, row.options);
    for (const auto& entry : kFwdOutputs) {
      const auto& name = entry.first;
      const auto& member = entry.second;
      CAPTURE(name);
      CHECK(relative_l2((ours.*member).values, (truth.*member).values) < 1e-6);
    }
    for (const auto& entry : kBwdOutputs) {
      const auto& name = entry.first;
      const auto& member = entry.second;
      CAPTURE(name);
      CHECK(relative_l2((ours.*member).values, (truth.*member).values) < 1e-6);
    }
    CHECK(forward.backend == Backend::cpu);
    CHECK(backward.backend == Backend::cpu);
    const std::string type = row.options.compute_dtype ? "fp64" : "fp32";
    CHECK(forward.kernels.size() == 1);
    CHECK(forward.kernels.at(0).starts_with("cpu_chunk_fwd_" + type));
    CHECK(backward.kernels.size() == 1);
    CHECK(backward.kernels.at(0).starts_with("cpu_chunk_bwd_" + type));
    const int threads = row.options.num_threads > 0 ? row.options.num_threads : settings().num_threads;
    CHECK(backward.device.starts_with("host processor, " + std::to_string(threads) + " thread"));
  }
}

TEST_CASE("run: state layout vk is the same with transposed states") {
  Example kv, vk;
  run_fwd(kv.fwd());
  run_bwd(kv.bwd());
  Floats h0 = transposed(vk.h0), dht = transposed(vk.dht);
  Floats final_state({vk.N, vk.Hv, vk.V, vk.K}), dh0 = final_state;
  Options options;
  options.state_layout = StateLayout::vk;
  FwdArgs fwd = vk.fwd();
  fwd.initial_state = h0.tensor();
  fwd.final_state = final_state.tensor();
  run_fwd(fwd, options);
  BwdArgs bwd = vk.bwd();
  bwd.initial_state = h0.tensor();
  bwd.final_state_grad = dht.tensor();
  bwd.dh0 = dh0.tensor();
  run_bwd(bwd, options);
  CHECK(final_state.values == transposed(kv.final_state).values);
  CHECK(dh0.values == transposed(kv.dh0).values);
  CHECK(vk.o.values == kv.o.values);
  CHECK(vk.dq.values == kv.dq.values);
}

TEST_CASE("run: optional tensors may be absent, cu_seqlens may be 64 bit and strided") {
  Example whole, parts;
  run_bwd(whole.bwd());
  BwdArgs bwd = parts.bwd();
  std::int64_t cu[] = {0, -7, 33, -7, Example::T};
  bwd.cu_seqlens = input(cu, DType::i64, {3}, {2});
  bwd.dh0.reset();
  run_bwd(bwd);
  CHECK(parts.dq.values == whole.dq.values);
  CHECK(std::isnan(parts.dh0.values[0]));

  // Without states and cu_seqlens: one sequence a batch entry; zero states give the same.
  Example absent, zero;
  for (float& x : zero.h0.values) x = 0;
  for (float& x : zero.dht.values) x = 0;
  BwdArgs none = absent.bwd();
  none.initial_state.reset();
  none.final_state_grad.reset();
  none.dh0.reset();
  run_bwd(none);
  BwdArgs zeros = zero.bwd();
  run_bwd(zeros);
  CHECK(absent.dk.values == zero.dk.values);
}

TEST_CASE("run: dq, dk, dv may be interleaved in one tensor, as may q, k, v") {
  Example separate, together;
  run_bwd(separate.bwd());
  constexpr std::int64_t kRow = 2 * Example::Hk * Example::K + Example::Hv * Example::V;
  std::vector<float> qkv(static_cast<std::size_t>(Example::T * kRow)), grads = qkv;
  const auto part = [&](std::vector<float>& memory, std::int64_t first, std::int64_t heads, std::int64_t dim) {
    return Tensor{
        memory.data() + first, DType::fp32, {1, Example::T, heads, dim}, {Example::T * kRow, kRow, dim, 1}, {}};
  };
  const std::int64_t qk = Example::Hk * Example::K;
  for (std::int64_t t = 0; t < Example::T; ++t) {
    float* const row = qkv.data() + t * kRow;
    std::copy_n(together.q.values.data() + t * qk, qk, row);
    std::copy_n(together.k.values.data() + t * qk, qk, row + qk);
    std::copy_n(together.v.values.data() + t * Example::Hv * Example::V, Example::Hv * Example::V, row + 2 * qk);
  }
  BwdArgs args = together.bwd();
  args.q = part(qkv, 0, Example::Hk, Example::K);
  args.k = part(qkv, qk, Example::Hk, Example::K);
  args.v = part(qkv, 2 * qk, Example::Hv, Example::V);
  args.dq = part(grads, 0, Example::Hk, Example::K);
  args.dk = part(grads, qk, Example::Hk, Example::K);
  args.dv = part(grads, 2 * qk, Example::Hv, Example::V);
  run_bwd(args);
  for (std::int64_t t = 0; t < Example::T; ++t) {
    const float* const row = grads.data() + t * kRow;
    CHECK(std::equal(row, row + qk, separate.dq.values.data() + t * qk));
    CHECK(std::equal(row + qk, row + 2 * qk, separate.dk.values.data() + t * qk));
    CHECK(std::equal(row + 2 * qk, row + kRow, separate.dv.values.data() + t * Example::Hv * Example::V));
  }
}

TEST_CASE("run: computes in float64 if q is float64") {
  std::vector<double> qk(4, 0.5), gate(1, -0.1), out(4, 0), gate_out(2, 0);
  const Tensor row = input(qk.data(), DType::fp64, {1, 1, 1, 4}), column = input(gate.data(), DType::fp64, {1, 1, 1});
  FwdArgs args;
  args.q = args.k = args.v = row;
  args.g = args.beta = column;
  args.o = {out.data(), DType::fp64, {1, 1, 1, 4}, {}, {}};
  CHECK(run_fwd(args).kernels.at(0).starts_with("cpu_chunk_fwd_fp64"));
  for (const double x : out) CHECK(x == doctest::Approx(0.5 * 1.0 * -0.1 * 0.5).epsilon(1e-15));
}

TEST_CASE("run: sizes of zero are fine") {
  FwdArgs args;
  args.q = args.k = input(nullptr, DType::bf16, {0, 5, 2, 8});
  args.v = input(nullptr, DType::bf16, {0, 5, 2, 8});
  args.g = args.beta = input(nullptr, DType::fp32, {0, 5, 2});
  args.o = {nullptr, DType::bf16, {0, 5, 2, 8}, {}, {}};
  CHECK_NOTHROW(run_fwd(args));
}

TEST_CASE("why_not and backends") {
  CHECK(!why_not({}));
  CHECK(!why_not({16, 64, 256, 256, DType::fp16}));
  CHECK(why_not({3, 4, 128, 128, DType::bf16}).value() ==
        "GDR-A08 why_not: v has 4 heads and q has 3; Hv must be a multiple of Hk.");
  CHECK(why_not({1, 1, 0, 128, DType::bf16}).value() == "GDR-A04 why_not: K is 0; expected at least 1.");
  CHECK(why_not({1, 1, 8, 8, DType::i32}).value() ==
        "GDR-A02 why_not: dtype is i32; expected bf16, fp16, fp32 or fp64.");
  Options cuda;
  cuda.backend = Backend::cuda;
  CHECK(why_not({}, cuda).value().starts_with("GDR-A10 why_not: GDR-D01 libcuda: not found"));
  const std::vector<BackendInfo> list = backends();
  REQUIRE(list.size() == 2);
  CHECK(list[0].backend == Backend::cuda);
  CHECK(!list[0].unavailable.empty());
  CHECK(list[1].backend == Backend::cpu);
  CHECK(list[1].unavailable.empty());
}

}  // namespace gdr::test
