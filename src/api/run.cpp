#include <fmt/format.h>

#include "api/arguments.hpp"
#include "api/support.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "cpu/chunk.hpp"
#include "cpu/chunked.hpp"
#include "cpu/gemm.hpp"
#include "gdr/gdr.hpp"
#include "gpu/backend.hpp"

namespace gdr {
namespace {

// What the cuda backend takes and gives lies in host memory.
constexpr std::string_view kNoDeviceMemory =
    "tensors in device memory are not taken yet; use tensors in host memory, which the cuda backend copies";
constexpr std::string_view kNoForward = "there are no forward kernels yet; use backend cpu or automatic";

int num_threads(const Options& options) {
  return options.num_threads > 0 ? options.num_threads : settings().num_threads;
}

std::string cpu_device(int threads) {
  return fmt::format("host processor, {} thread{}, {} matrix products", threads, threads == 1 ? "" : "s",
                     cpu::gemm_sets().front().name);
}

// Why these options cannot be served, apart from the tensors; empty if they can.
std::string refusal(const Options& options) {
  if (options.backend == Backend::cuda) return gpu_unavailable();
  for (const auto& [name, value] : {std::pair{"arch", &options.arch}, {"strategy", &options.strategy}})
    if (!value->empty())
      return fmt::format("{} is \"{}\": the cpu backend has none to choose; leave it empty, or use the cuda backend",
                         name, *value);
  return {};
}

// Checks that the backend asked for can be had. `automatic` is the cpu backend for host memory.
void check_backend(std::string_view function, DeviceKind device, const Options& options) {
  std::string reason = refusal(options);
  if (device == DeviceKind::cuda && options.backend != Backend::cpu) reason = kNoDeviceMemory;
  if (!reason.empty()) fail(ErrorKind::unsupported, "GDR-A10", "{}: {}.", function, reason);
}

DType compute_dtype(const cpu::Inputs& inputs, const Options& options) {
  return options.compute_dtype.value_or(inputs.q.dtype == DType::fp64 ? DType::fp64 : DType::fp32);
}

Result result_of(std::string_view direction, DType compute, int threads) {
  return {Backend::cpu,
          cpu_device(threads),
          {fmt::format("cpu_chunk_{}_{}_c{}__{}", direction, to_string(compute), cpu::kChunk,
                       cpu::gemm_sets().front().name)}};
}

}  // namespace

Result run_fwd(const FwdArgs& args, const Options& options) {
  check_options("run_fwd", options);
  check_backend("run_fwd", device_of(args), options);
  if (options.backend == Backend::cuda) fail(ErrorKind::unsupported, "GDR-A10", "run_fwd: {}.", kNoForward);
  const cpu::FwdCall call = check_fwd(args, options);
  const DType compute = compute_dtype(call, options);
  const cpu::ChunkedOptions chunked{.threads = num_threads(options)};
  if (compute == DType::fp64) {
    cpu::chunked_forward<double>(call, chunked);
  } else {
    cpu::chunked_forward<float>(call, chunked);
  }
  return result_of("fwd", compute, chunked.threads);
}

Result run_bwd(const BwdArgs& args, const Options& options) {
  check_options("run_bwd", options);
  check_backend("run_bwd", device_of(args), options);
  const cpu::BwdCall call = check_bwd(args, options);
  if (options.backend == Backend::cuda) {
    GpuRun run = gpu_backward(call, {options.arch, options.strategy});
    return {Backend::cuda, std::move(run.device), std::move(run.kernels)};
  }
  const DType compute = compute_dtype(call, options);
  const cpu::ChunkedOptions chunked{.threads = num_threads(options)};
  if (compute == DType::fp64) {
    cpu::chunked_backward<double>(call, chunked);
  } else {
    cpu::chunked_backward<float>(call, chunked);
  }
  return result_of("bwd", compute, chunked.threads);
}

void check_support(const ProblemClass& problem, const Options& options) {
  constexpr std::string_view kFunction = "why_not";
  check_options(kFunction, options);
  check_heads(kFunction, problem.k_heads, problem.v_heads, problem.dim_k, problem.dim_v);
  if (problem.dtype == DType::i32 || problem.dtype == DType::i64)
    fail(ErrorKind::config, "GDR-A02", "{}: dtype is {}; expected bf16, fp16, fp32 or fp64.", kFunction,
         to_string(problem.dtype));
  check_backend(kFunction, DeviceKind::cpu, options);
}

std::optional<std::string> why_not(const ProblemClass& problem, const Options& options) {
  try {
    check_support(problem, options);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

std::vector<BackendInfo> backends() {
  return {{Backend::cuda, "", gpu_unavailable()}, {Backend::cpu, cpu_device(settings().num_threads), ""}};
}

}  // namespace gdr
