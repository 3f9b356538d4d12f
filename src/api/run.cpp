#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

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
#include "gpu/support.hpp"

namespace gdr {
namespace {

int num_threads(const Options& options) {
  return options.num_threads > 0 ? options.num_threads : settings().num_threads;
}

std::string cpu_device(int threads) {
  return fmt::format("host processor, {} thread{}, {} matrix products", threads, threads == 1 ? "" : "s",
                     cpu::gemm_sets().front().name);
}

// The backend that serves tensors of this kind of memory. Throws Error (unsupported): A09 if they lie where it cannot
// work, A10 if it is not there or has no such option.
Backend choose_backend(std::string_view function, DeviceKind memory, const Options& options) {
  if (memory == DeviceKind::cuda && options.backend == Backend::cpu)
    fail(ErrorKind::unsupported, "GDR-A09",
         "{}: q lies in the memory of a cuda device; the cpu backend needs host memory.", function);
  if (memory == DeviceKind::cuda || options.backend == Backend::cuda) {
    const std::string reason = gpu_unavailable(GpuSession::of_process());
    if (!reason.empty()) fail(ErrorKind::unsupported, "GDR-A10", "{}: {}.", function, reason);
    return Backend::cuda;
  }
  for (const auto& [name, value] : {std::pair{"arch", &options.arch}, {"strategy", &options.strategy}})
    if (!value->empty())
      fail(ErrorKind::unsupported, "GDR-A10",
           "{}: {} is \"{}\": the cpu backend has none to choose; leave it empty, or use the cuda backend.", function,
           name, *value);
  return Backend::cpu;
}

GpuChoice gpu_choice(const Device& device, const Options& options) {
  GpuChoice choice;
  choice.rules = {options.arch, options.strategy};
  choice.device = device.kind == DeviceKind::cuda ? device.index : 0;
  choice.stream = reinterpret_cast<StreamHandle>(options.stream);
  choice.workspace = options.workspace;
  choice.workspace_bytes = static_cast<std::int64_t>(options.workspace_bytes);
  if (options.max_workspace_bytes)
    choice.max_workspace_bytes = static_cast<std::int64_t>(
        std::min(*options.max_workspace_bytes, std::size_t{std::numeric_limits<std::int64_t>::max()}));
  return choice;
}

// Checks sizes and dtype, which hold for every backend.
void check_class(std::string_view function, const ProblemClass& problem, const Options& options) {
  check_options(function, options);
  check_heads(function, problem.k_heads, problem.v_heads, problem.dim_k, problem.dim_v);
  if (problem.dtype == DType::i32 || problem.dtype == DType::i64)
    fail(ErrorKind::config, "GDR-A02", "{}: dtype is {}; expected bf16, fp16, fp32 or fp64.", function,
         to_string(problem.dtype));
}

GpuClass gpu_class(const ProblemClass& problem, const Options& options) {
  return {problem.forward, problem.backward, problem.dtype, problem.is_packed,
          problem.memory == DeviceKind::cuda && options.state_layout == StateLayout::vk};
}

GpuProblem gpu_problem(std::string_view function, const ProblemClass& problem) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  for (const std::int64_t size : {problem.dim_k, problem.dim_v, problem.v_heads})
    if (size > kMost)
      fail(ErrorKind::unsupported, "GDR-G02", "{}: {} heads or columns, the kernels take {}.", function, size, kMost);
  return {static_cast<int>(problem.dim_k), static_cast<int>(problem.dim_v),
          static_cast<int>(problem.v_heads / problem.k_heads)};
}

Result result_of(GpuRun&& run) { return {Backend::cuda, std::move(run.device), std::move(run.kernels)}; }

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
  if (choose_backend("run_fwd", device_of(args).kind, options) == Backend::cuda) check_gpu_class({.forward = true});
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
  const Device device = device_of(args);
  const Backend backend = choose_backend("run_bwd", device.kind, options);
  const bool has_states = args.initial_state || args.final_state_grad || args.dh0;
  if (backend == Backend::cuda)
    check_gpu_class(
        {.forward = false,
         .backward = true,
         .dtype = args.q.dtype,
         .is_packed = args.cu_seqlens.has_value(),
         .is_vk_in_place = device.kind == DeviceKind::cuda && has_states && options.state_layout == StateLayout::vk});
  const cpu::BwdCall call = check_bwd(args, options);
  if (backend == Backend::cuda) {
    GpuSession& session = GpuSession::of_process();
    const GpuChoice choice = gpu_choice(device, options);
    return result_of(device.kind == DeviceKind::cuda ? gpu_backward(session, call, choice)
                                                     : gpu_backward_from_host(session, call, choice));
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

Result prepare_bwd(const ProblemClass& problem, Device device, const Options& options) {
  constexpr std::string_view kFunction = "prepare_bwd";
  check_class(kFunction, problem, options);
  if (device.kind != DeviceKind::cuda)
    fail(ErrorKind::config, "GDR-A13", "{}: the device is the host; expected a cuda device.", kFunction);
  choose_backend(kFunction, device.kind, options);
  GpuClass kernels = gpu_class(problem, options);
  kernels.forward = false;
  check_gpu_class(kernels);
  return result_of(gpu_prepare(GpuSession::of_process(), gpu_problem(kFunction, problem), gpu_choice(device, options)));
}

std::size_t bwd_workspace_bytes(const ProblemClass& problem, std::int64_t batch, std::int64_t tokens,
                                const Options& options) {
  constexpr std::string_view kFunction = "bwd_workspace_bytes";
  check_class(kFunction, problem, options);
  for (const auto& [name, size] : {std::pair{"batch", batch}, {"tokens", tokens}})
    if (size < 1) fail(ErrorKind::config, "GDR-A04", "{}: {} is {}; expected at least 1.", kFunction, name, size);
  GpuClass kernels = gpu_class(problem, options);
  kernels.forward = false;
  check_gpu_class(kernels);
  gpu_problem(kFunction, problem);
  const cpu::Sizes sizes = {batch, tokens, problem.k_heads, problem.v_heads, problem.dim_k, problem.dim_v};
  return static_cast<std::size_t>(
      gpu_workspace_bytes(GpuSession::of_process(), sizes, gpu_choice({DeviceKind::cuda, 0}, options)));
}

void check_support(const ProblemClass& problem, const Options& options) {
  constexpr std::string_view kFunction = "why_not";
  check_class(kFunction, problem, options);
  if (choose_backend(kFunction, problem.memory, options) == Backend::cpu) return;
  check_gpu_class(gpu_class(problem, options));
  gpu_check(GpuSession::of_process(), gpu_problem(kFunction, problem), gpu_choice({DeviceKind::cuda, 0}, options));
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
  GpuSession& session = GpuSession::of_process();
  return {{Backend::cuda, gpu_name(session, 0), gpu_unavailable(session)},
          {Backend::cpu, cpu_device(settings().num_threads), ""}};
}

void set_notice_handler(std::function<void(const std::string&)> handler) {
  if (!handler) return GpuSession::set_notice_callback({});
  GpuSession::set_notice_callback([handler = std::move(handler)](const Notice& notice) { handler(notice.text); });
}

}  // namespace gdr
