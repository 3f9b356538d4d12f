// The public interfaces on device memory, against the fake driver: what arrives at it, and what is refused with the
// same words by a call and by why_not.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "../gpu/device_call.hpp"
#include "gdr/gdr.h"
#include "gdr/gdr.hpp"

namespace gdr::test {
namespace {

// Before the first use of the library: what the environment says is read once.
struct Environment {
  Environment() {
    cache = std::filesystem::temp_directory_path() / ("gdrjit_device_test_" + std::to_string(getpid()));
    ::setenv("FAKE_CUDA_DEVICES", "12.0,9.0", 1);
    ::setenv("GDRJIT_LIBCUDA", GDR_FAKE_CUDA, 1);
    ::setenv("GDRJIT_LIBNVRTC", GDR_FAKE_NVRTC, 1);
    ::setenv("GDRJIT_CACHE_DIR", cache.c_str(), 1);
  }
  ~Environment() {
    std::error_code ignored;
    std::filesystem::remove_all(cache, ignored);
  }
  std::filesystem::path cache;
} environment;

// A call's tensors as arguments of the public interface.
struct DeviceExample {
  explicit DeviceExample(int device = 0) : memory(device), device_index(device) {}

  Tensor tensor(const std::string& name) {
    const auto& shape = memory.shape(name);
    Tensor tensor{memory.view(name).data, memory.view(name).dtype, {}, {}, {DeviceKind::cuda, device_index}};
    const bool is_gate = name == "g" || name == "beta" || name == "dg" || name == "dbeta";
    for (std::size_t i = 0; i < (is_gate ? 3u : 4u); ++i) tensor.shape.push_back(shape[i]);
    return tensor;
  }
  BwdArgs bwd() {
    BwdArgs args;
    args.q = tensor("q"), args.k = tensor("k"), args.v = tensor("v"), args.g = tensor("g"), args.beta = tensor("beta");
    args.do_ = tensor("do"), args.initial_state = tensor("h0"), args.final_state_grad = tensor("dht");
    args.dq = tensor("dq"), args.dk = tensor("dk"), args.dv = tensor("dv"), args.dg = tensor("dg");
    args.dbeta = tensor("dbeta"), args.dh0 = tensor("dh0");
    args.scale = 0.5;
    return args;
  }
  FwdArgs fwd() {
    FwdArgs args;
    args.q = tensor("q"), args.k = tensor("k"), args.v = tensor("v"), args.g = tensor("g"), args.beta = tensor("beta");
    args.o = tensor("dv");
    return args;
  }

  DeviceCall memory;
  int device_index;
};

#include "readme_device.inl"

ProblemClass problem_class() {
  ProblemClass problem;
  problem.k_heads = 2;
  problem.v_heads = 4;
  problem.dim_k = problem.dim_v = 16;
  problem.forward = false;
  problem.memory = DeviceKind::cuda;
  return problem;
}

std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

gdr_tensor c_tensor(const Tensor& tensor) {
  gdr_tensor result{};
  result.data = tensor.data;
  result.dtype = tensor.dtype == DType::bf16 ? GDR_BF16 : GDR_FP32;
  result.rank = static_cast<std::int32_t>(tensor.shape.size());
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) result.shape[i] = tensor.shape[i];
  result.device_kind = GDR_DEVICE_CUDA;
  result.device_index = tensor.device.index;
  return result;
}

}  // namespace

TEST_CASE("run_bwd on device memory: asynchronous on the caller's stream, in the caller's workspace, strides and all") {
  DeviceExample example;
  void* const context = fake().create_context(0);
  const std::uintptr_t stream = fake().create_stream(context);
  Options options;
  options.stream = reinterpret_cast<void*>(stream);
  const std::size_t bytes = bwd_workspace_bytes(problem_class(), 2, 70, options);
  options.workspace = fake().allocate(0, bytes);
  options.workspace_bytes = bytes;
  const Result prepared = prepare_bwd(problem_class(), {DeviceKind::cuda, 0}, options);
  CHECK(prepared.backend == Backend::cuda);
  fake().set_capturing(stream, true);
  fake().reset();
  BwdArgs args = example.bwd();
  args.q.data = fake().allocate(0, 2 * 70 * 512 * 2);
  args.q.strides = {70 * 512, 512, 64, 1};
  const Result result = run_bwd(args, options);
  CHECK(result.backend == Backend::cuda);
  CHECK(result.device == "Fake GPU 0");
  CHECK(result.kernels == prepared.kernels);
  const std::vector<std::string> log = fake().log();
  REQUIRE(launches(log).size() == result.kernels.size());
  CHECK(log.size() == result.kernels.size());  // no allocation, no copy, no synchronisation
  bool has_q = false;
  for (std::size_t i = 0; i < result.kernels.size(); ++i) {
    const Launch launch = launches(log)[i];
    CHECK(launch.kernel == result.kernels[i]);
    CHECK(launch.stream == "1000");
    CHECK(launch.sizes.at("scale") == "0.5");
    if (!launch.tensors.contains("q")) continue;
    has_q = true;
    CHECK(launch.tensors.at("q") == Launch::Place{reinterpret_cast<std::uint64_t>(args.q.data), 70 * 512, 64, 512});
  }
  CHECK(has_q);
  fake().set_capturing(stream, false);
  fake().release(options.workspace);
  fake().release(args.q.data);
}

TEST_CASE("the functions of README.md enqueue a call on the stream") {
  DeviceExample example;
  BwdArgs args = example.bwd();
  args.v = on_gpu(args.v.data, args.v.dtype, args.v.shape, args.v.strides);
  const std::uintptr_t stream = fake().create_stream(fake().create_context(0));
  fake().reset();
  enqueue_backward(args, reinterpret_cast<void*>(stream));
  REQUIRE(!launches(fake().log()).empty());
  for (const Launch& launch : launches(fake().log())) CHECK(std::stoull(launch.stream, nullptr, 16) == stream);
}

TEST_CASE("C interface on device memory") {
  DeviceExample example(1);
  const BwdArgs b = example.bwd();
  gdr_tensor q = c_tensor(b.q), k = c_tensor(b.k), v = c_tensor(b.v), g = c_tensor(b.g), beta = c_tensor(b.beta),
             do_ = c_tensor(b.do_), dq = c_tensor(b.dq), dk = c_tensor(b.dk), dv = c_tensor(b.dv), dg = c_tensor(b.dg),
             dbeta = c_tensor(b.dbeta);
  gdr_bwd_args args = GDR_BWD_ARGS_INIT;
  args.q = &q, args.k = &k, args.v = &v, args.g = &g, args.beta = &beta, args.do_ = &do_;
  args.dq = &dq, args.dk = &dk, args.dv = &dv, args.dg = &dg, args.dbeta = &dbeta;
  gdr_problem problem = GDR_PROBLEM_INIT;
  problem.k_heads = 2, problem.v_heads = 4, problem.dim_k = problem.dim_v = 16;
  problem.forward = 0;
  problem.memory = GDR_DEVICE_CUDA;
  gdr_options options = GDR_OPTIONS_INIT;
  CHECK(gdr_why_not(&problem, &options) == GDR_OK);
  gdr_result result = GDR_RESULT_INIT;
  REQUIRE(gdr_prepare_bwd(&problem, 1, &options, &result) == GDR_OK);
  CHECK(std::string(result.device) == "Fake GPU 1");
  const std::int32_t num_kernels = result.num_kernels;
  fake().reset();
  REQUIRE(gdr_run_bwd(&args, &options, &result) == GDR_OK);
  CHECK(result.backend == GDR_BACKEND_CUDA);
  CHECK(result.num_kernels == num_kernels);
  CHECK(launches(fake().log()).size() == static_cast<std::size_t>(num_kernels));

  options.arch = "sm_90";
  size_t bytes = 0;
  REQUIRE(gdr_bwd_workspace_bytes(&problem, 2, 70, &options, &bytes) == GDR_OK);
  CHECK(bytes > 0);
  options.max_workspace_bytes = bytes - 1;
  CHECK(gdr_bwd_workspace_bytes(&problem, 2, 70, &options, &bytes) == GDR_UNSUPPORTED);
  CHECK(gdr_run_bwd(&args, &options, &result) == GDR_UNSUPPORTED);
  CHECK(std::string(gdr_last_error()).starts_with("GDR-G04 workspace: the call needs "));
  CHECK(gdr_bwd_workspace_bytes(&problem, 2, 70, &options, nullptr) == GDR_CONFIG);
  options.max_workspace_bytes = 0;
  options.workspace = example.memory.view("h0").data;
  options.workspace_bytes = 16;
  CHECK(gdr_run_bwd(&args, &options, &result) == GDR_CONFIG);
  CHECK(std::string(gdr_last_error()).starts_with("GDR-G06 workspace: it has 16 bytes, the call needs "));
  problem.dtype = 0;
  CHECK(gdr_why_not(&problem, nullptr) == GDR_CONFIG);
  CHECK(std::string(gdr_last_error()) == "GDR-A02 problem.dtype is 0; expected one of the constants of gdr.h.");
  CHECK(gdr_why_not(nullptr, nullptr) == GDR_CONFIG);
}

TEST_CASE("what the kernels cannot do is refused with the words of why_not") {
  struct Row {
    std::string name;
    std::function<void(BwdArgs&, Options&)> change;
    std::function<void(ProblemClass&)> change_class;
    std::string text;
  };
  static std::int32_t cu[] = {0, 70};
  const Row rows[] = {
      {"fp16",
       [](BwdArgs& a, Options&) {
         for (Tensor* t : {&a.q, &a.k, &a.v, &a.do_}) t->dtype = DType::fp16;
       },
       [](ProblemClass& p) { p.dtype = DType::fp16; },
       "GDR-G03 cuda backend: q is fp16, the kernels are for bf16; use the cpu backend"},
      {"packed",
       [](BwdArgs& a, Options&) {
         a.cu_seqlens = input(cu, DType::i32, {2}, {}, {DeviceKind::cuda, 0});
       },
       [](ProblemClass& p) { p.is_packed = true; },
       "GDR-G03 cuda backend: cu_seqlens is given, the kernels take sequences of one length; use the cpu backend"},
      {"vk", [](BwdArgs&, Options& o) { o.state_layout = StateLayout::vk; }, [](ProblemClass&) {},
       "GDR-G03 cuda backend: states in device memory must lie as [K, V]; use state layout kv, or host memory, which "
       "is "
       "transposed"},
      {"head dims",
       [](BwdArgs& a, Options&) {
         for (Tensor* t : {&a.q, &a.k, &a.dq, &a.dk}) {
           t->shape = {2, 70, 2, 8};
           t->strides = {70 * 32, 32, 16, 1};
         }
         a.initial_state.reset(), a.final_state_grad.reset(), a.dh0.reset();
       },
       [](ProblemClass& p) { p.dim_k = 8; },
       "GDR-P04 plan fused for sm_120: head dims 8 x 16; the kernels take multiples of 16"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    DeviceExample example;
    BwdArgs args = example.bwd();
    Options options;
    ProblemClass problem = problem_class();
    row.change(args, options);
    row.change_class(problem);
    fake().reset();
    CHECK(thrown([&] { run_bwd(args, options); }) == row.text);
    CHECK(why_not(problem, options).value_or("none") == row.text);
    CHECK(thrown([&] { prepare_bwd(problem, {DeviceKind::cuda, 0}, options); }) == row.text);
    CHECK(thrown([&] { bwd_workspace_bytes(problem, 2, 70, options); }) == row.text);
    CHECK(launches(fake().log()).empty());
  }
  // States that are not there have no layout.
  DeviceExample example;
  BwdArgs args = example.bwd();
  args.initial_state.reset(), args.final_state_grad.reset(), args.dh0.reset();
  Options vk;
  vk.state_layout = StateLayout::vk;
  CHECK(thrown([&] { run_bwd(args, vk); }) == "none");

  ProblemClass problem = problem_class();
  CHECK(!why_not(problem));
  problem.forward = true;
  const std::string no_forward = "GDR-G03 cuda backend: there are no forward kernels yet; use the cpu backend";
  CHECK(why_not(problem).value_or("none") == no_forward);
  CHECK(thrown([&] { run_fwd(example.fwd()); }) == no_forward);
}

TEST_CASE("wrong uses on device memory") {
  DeviceExample example;
  Options options;
  options.backend = Backend::cpu;
  CHECK(thrown([&] { run_bwd(example.bwd(), options); }) ==
        "GDR-A09 run_bwd: q lies in the memory of a cuda device; the cpu backend needs host memory.");
  options.backend = Backend::cuda;
  options.arch = "sm_999";
  CHECK(thrown([&] { run_bwd(example.bwd(), options); }).starts_with("GDR-C11 "));
  options.arch.clear();
  options.strategy = "magic";
  CHECK(thrown([&] { run_bwd(example.bwd(), options); }).starts_with("GDR-P01 strategy magic"));
  CHECK(thrown([&] { prepare_bwd(problem_class(), {}, {}); }) ==
        "GDR-A13 prepare_bwd: the device is the host; expected a cuda device.");
  CHECK(thrown([&] { bwd_workspace_bytes(problem_class(), 0, 70); }) ==
        "GDR-A04 bwd_workspace_bytes: batch is 0; expected at least 1.");
  BwdArgs args = example.bwd();
  args.dq.data = args.q.data;
  CHECK(thrown([&] { run_bwd(args); }) ==
        "GDR-A06 run_bwd: dq shares memory with q; an output needs memory of its own.");
  const std::vector<BackendInfo> list = backends();
  CHECK(list.at(0).device == "Fake GPU 0");
  CHECK(list.at(0).unavailable.empty());
}

}  // namespace gdr::test
