#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/support.hpp"
#include "core/error.hpp"
#include "gdr/gdr.h"
#include "gdr/gdr.hpp"

namespace gdr {
namespace {

// What the strings handed out point into.
struct ThreadState {
  std::string error;
  const char* error_text = "";
  std::string device;
  std::vector<std::string> kernels;
  std::vector<const char*> kernel_pointers;
};
thread_local ThreadState thread_state;

void remember(const char* text) noexcept {
  try {
    thread_state.error = text;
    thread_state.error_text = thread_state.error.c_str();
  } catch (...) {
    thread_state.error_text = "GDR-X05 out of memory, also for the text of an error.";
  }
}

// Runs `body`; whatever it throws becomes a code and the thread's last error.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return GDR_OK;
  } catch (const Error& error) {
    remember(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    remember("GDR-X05 out of memory.");
  } catch (const std::exception& error) {
    remember(error.what());
  } catch (...) {
    remember("GDR-X01 internal: an exception of unknown type. This is a fault of gdrjit; please report it.");
  }
  return GDR_INTERNAL;
}

// Checks the size that a caller's struct claims. A larger one comes from a newer header: fine as long as what this
// library does not know is zero.
template <class S>
void check_struct(const S* given, const char* name) {
  if (given == nullptr) fail(ErrorKind::config, "GDR-A01", "{} is a null pointer.", name);
  if (given->struct_size < sizeof(S))
    fail(ErrorKind::config, "GDR-A12",
         "{}: struct_size is {}; this library's struct has {} bytes. Set it with the _INIT macro.", name,
         given->struct_size, sizeof(S));
  const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(S); i < given->struct_size; ++i)
    if (bytes[i] != 0)
      fail(ErrorKind::unsupported, "GDR-A12",
           "{}: a member at byte {} is set, which this version ({}) does not know. Use a newer libgdrjit.", name, i,
           GDRJIT_VERSION);
}

template <class Value, std::size_t N>
Value choose(int value, const std::pair<int, Value> (&choices)[N], const char* name) {
  for (const auto& [number, meaning] : choices)
    if (number == value) return meaning;
  fail(ErrorKind::config, "GDR-A02", "{} is {}; expected one of the constants of gdr.h.", name, value);
}

constexpr std::pair<int, DType> kDTypes[] = {{GDR_BF16, DType::bf16}, {GDR_FP16, DType::fp16}, {GDR_FP32, DType::fp32},
                                             {GDR_FP64, DType::fp64}, {GDR_I32, DType::i32},   {GDR_I64, DType::i64}};
constexpr std::pair<int, DeviceKind> kDevices[] = {{GDR_DEVICE_CPU, DeviceKind::cpu},
                                                   {GDR_DEVICE_CUDA, DeviceKind::cuda}};
constexpr std::pair<int, Backend> kBackends[] = {
    {GDR_BACKEND_AUTOMATIC, Backend::automatic}, {GDR_BACKEND_CUDA, Backend::cuda}, {GDR_BACKEND_CPU, Backend::cpu}};
constexpr std::pair<int, StateLayout> kLayouts[] = {{GDR_STATE_KV, StateLayout::kv}, {GDR_STATE_VK, StateLayout::vk}};

Tensor tensor_of(const gdr_tensor* given, const std::string& name) {
  if (given == nullptr) fail(ErrorKind::config, "GDR-A01", "{} is a null pointer; it cannot be left out.", name);
  if (given->rank < 1 || given->rank > GDR_MAX_RANK)
    fail(ErrorKind::config, "GDR-A03", "{} has rank {}; expected 1 to {}.", name, given->rank, GDR_MAX_RANK);
  Tensor tensor;
  tensor.data = given->data;
  tensor.dtype = choose(given->dtype, kDTypes, (name + ".dtype").c_str());
  tensor.device = {choose(given->device_kind, kDevices, (name + ".device_kind").c_str()), given->device_index};
  for (int i = 0; i < given->rank; ++i) {
    tensor.shape.push_back(given->shape[i]);
    if (given->has_strides != 0) tensor.strides.push_back(given->strides[i]);
  }
  return tensor;
}

std::optional<Tensor> optional_tensor(const gdr_tensor* given, const std::string& name) {
  if (given == nullptr) return std::nullopt;
  return tensor_of(given, name);
}

std::optional<double> optional_value(const double* given) {
  if (given == nullptr) return std::nullopt;
  return *given;
}

Options options_of(const gdr_options* given) {
  Options options;
  if (given == nullptr) return options;
  check_struct(given, "options");
  options.backend = choose(given->backend, kBackends, "options.backend");
  options.state_layout = choose(given->state_layout, kLayouts, "options.state_layout");
  options.num_threads = given->num_threads;
  if (given->compute_dtype != GDR_COMPUTE_AUTOMATIC)
    options.compute_dtype = choose(given->compute_dtype, kDTypes, "options.compute_dtype");
  if (given->arch != nullptr) options.arch = given->arch;
  if (given->strategy != nullptr) options.strategy = given->strategy;
  options.stream = given->stream;
  options.workspace = given->workspace;
  options.workspace_bytes = given->workspace_bytes;
  if (given->max_workspace_bytes != 0) options.max_workspace_bytes = given->max_workspace_bytes;
  return options;
}

ProblemClass problem_of(const gdr_problem* given) {
  check_struct(given, "problem");
  ProblemClass problem;
  problem.k_heads = given->k_heads;
  problem.v_heads = given->v_heads;
  problem.dim_k = given->dim_k;
  problem.dim_v = given->dim_v;
  problem.dtype = choose(given->dtype, kDTypes, "problem.dtype");
  problem.forward = given->forward != 0;
  problem.backward = given->backward != 0;
  problem.is_packed = given->is_packed != 0;
  problem.memory = choose(given->memory, kDevices, "problem.memory");
  return problem;
}

void report(Result&& result, gdr_result* out) {
  if (out == nullptr) return;
  ThreadState& state = thread_state;
  state.device = std::move(result.device);
  state.kernels = std::move(result.kernels);
  state.kernel_pointers.clear();
  for (const std::string& kernel : state.kernels) state.kernel_pointers.push_back(kernel.c_str());
  out->backend = result.backend == Backend::cuda ? GDR_BACKEND_CUDA : GDR_BACKEND_CPU;
  out->num_kernels = static_cast<std::int32_t>(state.kernels.size());
  out->device = state.device.c_str();
  out->kernels = state.kernel_pointers.data();
}

}  // namespace
}  // namespace gdr

extern "C" {

int gdr_run_fwd(const gdr_fwd_args* given, const gdr_options* options, gdr_result* result) {
  return gdr::guarded([&] {
    gdr::check_struct(given, "args");
    if (result != nullptr) gdr::check_struct(result, "result");
    gdr::FwdArgs args;
    args.q = gdr::tensor_of(given->q, "q");
    args.k = gdr::tensor_of(given->k, "k");
    args.v = gdr::tensor_of(given->v, "v");
    args.g = gdr::tensor_of(given->g, "g");
    args.beta = gdr::tensor_of(given->beta, "beta");
    args.initial_state = gdr::optional_tensor(given->initial_state, "initial_state");
    args.cu_seqlens = gdr::optional_tensor(given->cu_seqlens, "cu_seqlens");
    args.o = gdr::tensor_of(given->o, "o");
    args.final_state = gdr::optional_tensor(given->final_state, "final_state");
    args.scale = gdr::optional_value(given->scale);
    gdr::report(gdr::run_fwd(args, gdr::options_of(options)), result);
  });
}

int gdr_run_bwd(const gdr_bwd_args* given, const gdr_options* options, gdr_result* result) {
  return gdr::guarded([&] {
    gdr::check_struct(given, "args");
    if (result != nullptr) gdr::check_struct(result, "result");
    gdr::BwdArgs args;
    args.q = gdr::tensor_of(given->q, "q");
    args.k = gdr::tensor_of(given->k, "k");
    args.v = gdr::tensor_of(given->v, "v");
    args.g = gdr::tensor_of(given->g, "g");
    args.beta = gdr::tensor_of(given->beta, "beta");
    args.do_ = gdr::tensor_of(given->do_, "do_");
    args.initial_state = gdr::optional_tensor(given->initial_state, "initial_state");
    args.final_state_grad = gdr::optional_tensor(given->final_state_grad, "final_state_grad");
    args.cu_seqlens = gdr::optional_tensor(given->cu_seqlens, "cu_seqlens");
    args.dq = gdr::tensor_of(given->dq, "dq");
    args.dk = gdr::tensor_of(given->dk, "dk");
    args.dv = gdr::tensor_of(given->dv, "dv");
    args.dg = gdr::tensor_of(given->dg, "dg");
    args.dbeta = gdr::tensor_of(given->dbeta, "dbeta");
    args.dh0 = gdr::optional_tensor(given->dh0, "dh0");
    args.scale = gdr::optional_value(given->scale);
    gdr::report(gdr::run_bwd(args, gdr::options_of(options)), result);
  });
}

int gdr_why_not(const gdr_problem* problem, const gdr_options* options) {
  return gdr::guarded([&] { gdr::check_support(gdr::problem_of(problem), gdr::options_of(options)); });
}

int gdr_prepare_bwd(const gdr_problem* problem, int32_t device_index, const gdr_options* options, gdr_result* result) {
  return gdr::guarded([&] {
    if (result != nullptr) gdr::check_struct(result, "result");
    gdr::report(
        gdr::prepare_bwd(gdr::problem_of(problem), {gdr::DeviceKind::cuda, device_index}, gdr::options_of(options)),
        result);
  });
}

int gdr_bwd_workspace_bytes(const gdr_problem* problem, int64_t batch, int64_t tokens, const gdr_options* options,
                            size_t* bytes) {
  return gdr::guarded([&] {
    if (bytes == nullptr) gdr::fail(gdr::ErrorKind::config, "GDR-A01", "bytes is a null pointer.");
    *bytes = gdr::bwd_workspace_bytes(gdr::problem_of(problem), batch, tokens, gdr::options_of(options));
  });
}

void gdr_set_notice_handler(void (*handler)(const char* text, void* user), void* user) {
  gdr::guarded([&] {
    if (handler == nullptr) return gdr::set_notice_handler({});
    gdr::set_notice_handler([handler, user](const std::string& text) { handler(text.c_str(), user); });
  });
}

const char* gdr_last_error(void) { return gdr::thread_state.error_text; }

const char* gdr_version(void) { return GDRJIT_VERSION; }

}  // extern "C"
