// Wrong arguments: each is named, with its value and what was expected. The texts are fixed.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "example.hpp"

namespace gdr::test {
namespace {

struct Row {
  std::string name;
  std::function<void(BwdArgs&, Options&)> change;
  std::string text;
  ErrorKind kind = ErrorKind::config;
};

std::int32_t bad_cu[3];

Tensor cu(std::int32_t first, std::int32_t second, std::int32_t third) {
  bad_cu[0] = first;
  bad_cu[1] = second;
  bad_cu[2] = third;
  return input(bad_cu, DType::i32, {3});
}

const Row kRows[] = {
    {"not set", [](BwdArgs& a, Options&) { a.q = {}; },
     "GDR-A01 run_bwd: q has no shape; expected a tensor [B, T, Hk, K]."},
    {"null pointer", [](BwdArgs& a, Options&) { a.dv.data = nullptr; },
     "GDR-A01 run_bwd: dv is a null pointer; its shape is [1, 40, 4, 6], 960 elements."},
    {"null optional", [](BwdArgs& a, Options&) { a.dh0->data = nullptr; },
     "GDR-A01 run_bwd: dh0 is a null pointer; its shape is [2, 4, 8, 6], 384 elements."},
    {"integer q", [](BwdArgs& a, Options&) { a.q.dtype = DType::i32; },
     "GDR-A02 run_bwd: q is of dtype i32; expected bf16, fp16, fp32 or fp64."},
    {"k of another dtype", [](BwdArgs& a, Options&) { a.k.dtype = DType::bf16; },
     "GDR-A02 run_bwd: k is of dtype bf16; expected fp32, the dtype of q."},
    {"do of another dtype", [](BwdArgs& a, Options&) { a.do_.dtype = DType::fp16; },
     "GDR-A02 run_bwd: do_ is of dtype fp16; expected fp32, the dtype of q."},
    {"integer gate", [](BwdArgs& a, Options&) { a.g.dtype = DType::i64; },
     "GDR-A02 run_bwd: g is of dtype i64; expected bf16, fp16, fp32 or fp64."},
    {"float cu_seqlens", [](BwdArgs& a, Options&) { a.cu_seqlens->dtype = DType::fp32; },
     "GDR-A02 run_bwd: cu_seqlens is of dtype fp32; expected i32 or i64."},
    {"rank",
     [](BwdArgs& a, Options&) {
       a.k.shape = {40, 2, 8};
     },
     "GDR-A03 run_bwd: k has shape [40, 2, 8], 3 dimensions; expected 4 [B, T, Hk, K]."},
    {"gate with a dimension too many",
     [](BwdArgs& a, Options&) {
       a.beta.shape = {1, 40, 4, 1};
     },
     "GDR-A03 run_bwd: beta has shape [1, 40, 4, 1], 4 dimensions; expected 3 [B, T, Hv]."},
    {"k unlike q",
     [](BwdArgs& a, Options&) {
       a.k.shape = {1, 40, 2, 7};
     },
     "GDR-A04 run_bwd: k has shape [1, 40, 2, 7]; expected [1, 40, 2, 8] [B, T, Hk, K], the shape of q."},
    {"v with fewer tokens",
     [](BwdArgs& a, Options&) {
       a.v.shape = {1, 39, 4, 6};
     },
     "GDR-A04 run_bwd: v has shape [1, 39, 4, 6]; expected [1, 40, 4, 6] [B, T, Hv, V], B and T being those of q."},
    {"g with k-heads",
     [](BwdArgs& a, Options&) {
       a.g.shape = {1, 40, 2};
     },
     "GDR-A04 run_bwd: g has shape [1, 40, 2]; expected [1, 40, 4] [B, T, Hv]."},
    {"dq with v-heads",
     [](BwdArgs& a, Options&) {
       a.dq.shape = {1, 40, 4, 8};
     },
     "GDR-A04 run_bwd: dq has shape [1, 40, 4, 8]; expected [1, 40, 2, 8] [B, T, Hk, K]."},
    {"state in the other layout",
     [](BwdArgs& a, Options&) {
       a.initial_state->shape = {2, 4, 6, 8};
     },
     "GDR-A04 run_bwd: initial_state has shape [2, 4, 6, 8]; expected [2, 4, 8, 6] [N, Hv, K, V] (state layout kv)."},
    {"layout vk with kv states", [](BwdArgs&, Options& o) { o.state_layout = StateLayout::vk; },
     "GDR-A04 run_bwd: initial_state has shape [2, 4, 8, 6]; expected [2, 4, 6, 8] [N, Hv, V, K] (state layout vk)."},
    {"states of the batch without cu_seqlens", [](BwdArgs& a, Options&) { a.cu_seqlens.reset(); },
     "GDR-A04 run_bwd: initial_state has shape [2, 4, 8, 6]; expected [1, 4, 8, 6] [N, Hv, K, V] (state layout kv)."},
    {"negative size",
     [](BwdArgs& a, Options&) {
       a.q.shape = {1, -40, 2, 8};
     },
     "GDR-A04 run_bwd: q has shape [1, -40, 2, 8]; sizes cannot be negative."},
    {"no heads",
     [](BwdArgs& a, Options&) {
       a.q.shape = {1, 40, 0, 8};
     },
     "GDR-A04 run_bwd: Hk is 0; expected at least 1."},
    {"too many elements",
     [](BwdArgs& a, Options&) {
       a.q.shape = {1 << 30, 1 << 30, 1 << 10, 8};
     },
     "GDR-A04 run_bwd: q has shape [1073741824, 1073741824, 1024, 8]: more bytes than an address can name."},
    {"too few strides",
     [](BwdArgs& a, Options&) {
       a.v.strides = {24, 6, 1};
     },
     "GDR-A05 run_bwd: v has 3 strides [24, 6, 1]; expected 4, one for each dimension of [1, 40, 4, 6], or none for a "
     "contiguous tensor."},
    {"strides too large",
     [](BwdArgs& a, Options&) {
       a.v.strides = {0, std::numeric_limits<std::int64_t>::max() / 8, 6, 1};
     },
     "GDR-A05 run_bwd: v has shape [1, 40, 4, 6] and strides [0, 1152921504606846975, 6, 1]: they reach farther than "
     "an "
     "address can name."},
    {"smallest stride",
     [](BwdArgs& a, Options&) {
       a.v.strides = {0, std::numeric_limits<std::int64_t>::min(), 6, 1};
     },
     "GDR-A05 run_bwd: v has shape [1, 40, 4, 6] and strides [0, -9223372036854775808, 6, 1]: they reach farther than "
     "an "
     "address can name."},
    {"output onto itself",
     [](BwdArgs& a, Options&) {
       a.dv.strides = {0, 24, 0, 1};
     },
     "GDR-A05 run_bwd: dv is an output with shape [1, 40, 4, 6] and strides [0, 24, 0, 1]: its elements share memory."},
    {"dv onto v", [](BwdArgs& a, Options&) { a.dv.data = a.v.data; },
     "GDR-A06 run_bwd: dv shares memory with v; an output needs memory of its own."},
    {"dq onto dk", [](BwdArgs& a, Options&) { a.dq.data = a.dk.data; },
     "GDR-A06 run_bwd: dk shares memory with dq; an output needs memory of its own."},
    {"dh0 over the end of the initial state",
     [](BwdArgs& a, Options&) { a.dh0->data = static_cast<float*>(a.initial_state->data) + 383; },
     "GDR-A06 run_bwd: dh0 shares memory with initial_state; an output needs memory of its own."},
    {"cu_seqlens starts late", [](BwdArgs& a, Options&) { a.cu_seqlens = cu(1, 3, 40); },
     "GDR-A07 run_bwd: cu_seqlens[0] is 1; the first sequence begins at 0."},
    {"cu_seqlens decreases", [](BwdArgs& a, Options&) { a.cu_seqlens = cu(0, 30, 29); },
     "GDR-A07 run_bwd: cu_seqlens[2] is 29, less than cu_seqlens[1], 30; it must not decrease."},
    {"cu_seqlens negative", [](BwdArgs& a, Options&) { a.cu_seqlens = cu(0, -1, 29); },
     "GDR-A07 run_bwd: cu_seqlens[1] is -1, less than cu_seqlens[0], 0; it must not decrease."},
    {"cu_seqlens beyond T", [](BwdArgs& a, Options&) { a.cu_seqlens = cu(0, 5, 41); },
     "GDR-A07 run_bwd: cu_seqlens[2] is 41; q has 40 tokens."},
    {"cu_seqlens empty", [](BwdArgs& a, Options&) { a.cu_seqlens->shape = {0}; },
     "GDR-A07 run_bwd: cu_seqlens is empty; expected N + 1 values, the first one 0."},
    {"heads",
     [](BwdArgs& a, Options&) {
       a.q.shape = a.k.shape = {1, 40, 3, 5};
     },
     "GDR-A08 run_bwd: v has 4 heads and q has 3; Hv must be a multiple of Hk."},
    {"one tensor on a GPU", [](BwdArgs& a, Options&) { a.dg.device.kind = DeviceKind::cuda; },
     "GDR-A09 run_bwd: dg lies in the memory of cuda device 0 and q in host memory; all tensors of a call must lie on "
     "one "
     "device.",
     ErrorKind::unsupported},
    {"cuda asked for", [](BwdArgs&, Options& o) { o.backend = Backend::cuda; },
     "GDR-A10 run_bwd: GDR-D01 libcuda: not found...", ErrorKind::unsupported},
    {"an architecture asked for", [](BwdArgs&, Options& o) { o.arch = "sm_120"; },
     "GDR-A10 run_bwd: arch is \"sm_120\": the cpu backend has none to choose; leave it empty, or use the cuda "
     "backend.",
     ErrorKind::unsupported},
    {"scale", [](BwdArgs& a, Options&) { a.scale = std::numeric_limits<double>::infinity(); },
     "GDR-A11 run_bwd: scale is inf; expected a finite number."},
    {"threads", [](BwdArgs&, Options& o) { o.num_threads = -2; },
     "GDR-A11 run_bwd: num_threads is -2; expected 1 to 4096, or 0 for the number the machine has."},
    {"compute dtype", [](BwdArgs&, Options& o) { o.compute_dtype = DType::bf16; },
     "GDR-A11 run_bwd: compute_dtype is bf16; expected fp32 or fp64."},
};

}  // namespace

TEST_CASE("arguments: every wrong one is named, with its value and what was expected") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    Example example;
    BwdArgs args = example.bwd();
    Options options;
    row.change(args, options);
    std::string text = "nothing was thrown";
    ErrorKind kind = ErrorKind::internal;
    try {
      run_bwd(args, options);
    } catch (const Error& error) {
      text = error.what();
      kind = error.kind();
    }
    const std::string_view expected = row.text;
    if (expected.ends_with("...")) {
      CHECK_MESSAGE(text.starts_with(expected.substr(0, expected.size() - 3)), text);
    } else {
      CHECK(text == expected);
    }
    CHECK(kind == row.kind);
    CHECK(std::isnan(example.dq.values[0]));  // nothing has been written
  }
}

TEST_CASE("arguments: tensors on a GPU") {
  Example example;
  BwdArgs args = example.bwd();
  for (Tensor* tensor :
       {&args.q, &args.k, &args.v, &args.g, &args.beta, &args.do_, &args.dq, &args.dk, &args.dv, &args.dg, &args.dbeta,
        &*args.initial_state, &*args.final_state_grad, &*args.cu_seqlens, &*args.dh0})
    tensor->device.kind = DeviceKind::cuda;
  CHECK_THROWS_WITH(run_bwd(args), doctest::Contains("GDR-A10 run_bwd: GDR-D01 libcuda: not found"));
  Options cpu;
  cpu.backend = Backend::cpu;
  CHECK_THROWS_WITH_AS(run_bwd(args, cpu),
                       "GDR-A09 run_bwd: q lies in the memory of a cuda device; the cpu backend needs host memory.",
                       Error);
  args.dv.device.index = 1;
  CHECK_THROWS_WITH_AS(run_bwd(args),
                       "GDR-A09 run_bwd: dv lies in the memory of cuda device 1 and q in the memory of cuda device 0; "
                       "all tensors of a call must lie on one device.",
                       Error);
}

TEST_CASE("arguments: the forward pass checks its own") {
  Example example;
  FwdArgs args = example.fwd();
  args.o.shape = {1, 40, 4, 8};
  CHECK_THROWS_WITH_AS(run_fwd(args),
                       "GDR-A04 run_fwd: o has shape [1, 40, 4, 8]; expected [1, 40, 4, 6] [B, T, Hv, V].", Error);
  args = example.fwd();
  args.final_state->data = args.initial_state->data;
  CHECK_THROWS_WITH_AS(
      run_fwd(args),
      "GDR-A06 run_fwd: final_state shares memory with initial_state; an output needs memory of its own.", Error);
  args = example.fwd();
  args.cu_seqlens.reset();
  args.q.shape = args.k.shape = {2, 20, 2, 8};
  args.v.shape = args.o.shape = {2, 20, 4, 6};
  args.g.shape = args.beta.shape = {2, 20, 4};
  CHECK_NOTHROW(run_fwd(args));
  args.cu_seqlens = example.cu_seqlens();
  CHECK_THROWS_WITH_AS(run_fwd(args),
                       "GDR-A07 run_fwd: cu_seqlens is given and q has 2 batch entries; packed sequences lie in one.",
                       Error);
}

TEST_CASE("arguments: a tensor has at most eight dimensions") {
  Dims dims;
  for (int i = 0; i < 8; ++i) dims.push_back(1);
  CHECK_THROWS_WITH_AS(dims.push_back(1),
                       "GDR-A03 a tensor cannot have more than 8 dimensions; gdrjit uses at most four.", Error);
}

}  // namespace gdr::test
