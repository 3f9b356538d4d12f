// The C interface: the same results as the C++ one, codes instead of exceptions, sizes of structs checked.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>

#include "example.hpp"
#include "gdr/gdr.h"

namespace gdr::test {
namespace {

gdr_tensor c_tensor(const Tensor& tensor) {
  gdr_tensor result{};
  result.data = tensor.data;
  result.dtype = tensor.dtype == DType::i32 ? GDR_I32 : GDR_FP32;
  result.rank = static_cast<std::int32_t>(tensor.shape.size());
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) result.shape[i] = tensor.shape[i];
  return result;
}

// The arguments of an example as C structs.
struct CExample {
  Example e;
  BwdArgs b = e.bwd();
  FwdArgs f = e.fwd();
  gdr_tensor q = c_tensor(b.q), k = c_tensor(b.k), v = c_tensor(b.v), g = c_tensor(b.g), beta = c_tensor(b.beta),
             do_ = c_tensor(b.do_), h0 = c_tensor(*b.initial_state), dht = c_tensor(*b.final_state_grad),
             cu = c_tensor(*b.cu_seqlens), dq = c_tensor(b.dq), dk = c_tensor(b.dk), dv = c_tensor(b.dv),
             dg = c_tensor(b.dg), dbeta = c_tensor(b.dbeta), dh0 = c_tensor(*b.dh0), o = c_tensor(f.o),
             final_state = c_tensor(*f.final_state);
  gdr_bwd_args bwd() {
    gdr_bwd_args args = GDR_BWD_ARGS_INIT;
    args.q = &q;
    args.k = &k;
    args.v = &v;
    args.g = &g;
    args.beta = &beta;
    args.do_ = &do_;
    args.initial_state = &h0;
    args.final_state_grad = &dht;
    args.cu_seqlens = &cu;
    args.dq = &dq;
    args.dk = &dk;
    args.dv = &dv;
    args.dg = &dg;
    args.dbeta = &dbeta;
    args.dh0 = &dh0;
    return args;
  }
  gdr_fwd_args fwd() {
    gdr_fwd_args args = GDR_FWD_ARGS_INIT;
    args.q = &q;
    args.k = &k;
    args.v = &v;
    args.g = &g;
    args.beta = &beta;
    args.initial_state = &h0;
    args.cu_seqlens = &cu;
    args.o = &o;
    args.final_state = &final_state;
    return args;
  }
};

std::string last_error() { return gdr_last_error(); }

}  // namespace

TEST_CASE("C interface: the results of the C++ interface") {
  Example cpp;
  const Result expected = run_bwd(cpp.bwd());
  run_fwd(cpp.fwd());
  CExample c;
  const gdr_bwd_args bwd = c.bwd();
  const gdr_fwd_args fwd = c.fwd();
  gdr_options options = GDR_OPTIONS_INIT;
  options.backend = GDR_BACKEND_CPU;
  options.num_threads = 1;
  gdr_result result = GDR_RESULT_INIT;
  REQUIRE(gdr_run_fwd(&fwd, nullptr, nullptr) == GDR_OK);
  REQUIRE(gdr_run_bwd(&bwd, &options, &result) == GDR_OK);
  CHECK(c.e.o.values == cpp.o.values);
  CHECK(c.e.final_state.values == cpp.final_state.values);
  CHECK(c.e.dq.values == cpp.dq.values);
  CHECK(c.e.dk.values == cpp.dk.values);
  CHECK(c.e.dv.values == cpp.dv.values);
  CHECK(c.e.dg.values == cpp.dg.values);
  CHECK(c.e.dbeta.values == cpp.dbeta.values);
  CHECK(c.e.dh0.values == cpp.dh0.values);
  CHECK(result.backend == GDR_BACKEND_CPU);
  REQUIRE(result.num_kernels == 1);
  CHECK(std::string(result.kernels[0]) == expected.kernels.at(0));
  CHECK(std::string(result.device).starts_with("host processor, 1 thread,"));
  CHECK(std::string(gdr_version()) == GDRJIT_VERSION);
}

TEST_CASE("C interface: options and strides arrive") {
  CExample c;
  gdr_options options = GDR_OPTIONS_INIT;
  options.state_layout = GDR_STATE_VK;
  gdr_bwd_args bwd = c.bwd();
  CHECK(gdr_run_bwd(&bwd, &options, nullptr) == GDR_CONFIG);
  CHECK(last_error().find("state layout vk") != std::string::npos);
  options = GDR_OPTIONS_INIT;
  options.compute_dtype = GDR_COMPUTE_FP64;
  gdr_result result = GDR_RESULT_INIT;
  REQUIRE(gdr_run_bwd(&bwd, &options, &result) == GDR_OK);
  CHECK(std::string(result.kernels[0]).starts_with("cpu_chunk_bwd_fp64"));
  const double scale = 0;
  bwd.scale = &scale;
  REQUIRE(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_OK);
  CHECK(c.e.dq.values == std::vector<float>(c.e.dq.values.size(), 0.0f));
  c.q.has_strides = 1;  // all zero: every token reads the first element, which is allowed for an input
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_OK);
  c.dq.has_strides = 1;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error().starts_with("GDR-A05 run_bwd: dq is an output with shape [1, 40, 2, 8] and strides [0, 0, 0, 0]"));
}

TEST_CASE("C interface: failures are codes with a text") {
  CExample c;
  gdr_bwd_args bwd = c.bwd();
  CHECK(gdr_run_bwd(nullptr, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error() == "GDR-A01 args is a null pointer.");
  bwd.dq = nullptr;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error() == "GDR-A01 dq is a null pointer; it cannot be left out.");
  bwd = c.bwd();
  c.v.dtype = 0;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error() == "GDR-A02 v.dtype is 0; expected one of the constants of gdr.h.");
  c.v.dtype = GDR_FP32;
  c.v.rank = 5;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error() == "GDR-A03 v has rank 5; expected 1 to 4.");
  c.v.rank = 4;
  c.v.data = nullptr;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error() == "GDR-A01 run_bwd: v is a null pointer; its shape is [1, 40, 4, 6], 960 elements.");
  gdr_options options = GDR_OPTIONS_INIT;
  options.backend = GDR_BACKEND_CUDA;
  gdr_problem problem = GDR_PROBLEM_INIT;
  CHECK(gdr_why_not(&problem, &options) == GDR_UNSUPPORTED);
  CHECK(last_error().starts_with("GDR-A10 why_not: GDR-D01 libcuda: not found"));
  CHECK(gdr_why_not(&problem, nullptr) == GDR_OK);
  problem.k_heads = 2;
  problem.v_heads = 3;
  CHECK(gdr_why_not(&problem, nullptr) == GDR_CONFIG);
  const std::string here = last_error();
  std::string there = "unset";
  std::thread([&] { there = last_error(); }).join();
  CHECK(there.empty());  // the last error belongs to a thread
  CHECK(last_error() == here);
}

TEST_CASE("C interface: the size of a struct says which version the caller has") {
  CExample c;
  gdr_bwd_args bwd = c.bwd();
  bwd.struct_size = 0;
  CHECK(gdr_run_bwd(&bwd, nullptr, nullptr) == GDR_CONFIG);
  CHECK(last_error().starts_with("GDR-A12 args: struct_size is 0; this library's struct has "));
  struct Newer {
    gdr_bwd_args args;
    std::int64_t added;
  } newer{c.bwd(), 0};
  newer.args.struct_size = sizeof(Newer);
  CHECK(gdr_run_bwd(&newer.args, nullptr, nullptr) == GDR_OK);
  newer.added = 1;
  CHECK(gdr_run_bwd(&newer.args, nullptr, nullptr) == GDR_UNSUPPORTED);
  CHECK(last_error().find("which this version") != std::string::npos);
}

}  // namespace gdr::test
