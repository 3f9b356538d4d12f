#include "gpu/backend.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>

#include "config/registry.hpp"
#include "core/error.hpp"
#include "gpu/host_call.hpp"
#include "gpu/support.hpp"
#include "runtime/memory.hpp"

namespace gdr {
namespace {

GpuProblem problem_of(const cpu::Sizes& sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  for (const std::int64_t size : {sizes.k_heads, sizes.v_heads, sizes.dim_k, sizes.dim_v})
    if (size > kMost) fail(ErrorKind::unsupported, "GDR-G02", "{} heads or columns, the kernels take {}", size, kMost);
  return {static_cast<int>(sizes.dim_k), static_cast<int>(sizes.dim_v),
          static_cast<int>(sizes.v_heads / sizes.k_heads)};
}

LaunchSizes launch_sizes(const cpu::Sizes& sizes, double scale) {
  return {sizes.batch, sizes.tokens, static_cast<int>(sizes.k_heads), static_cast<int>(sizes.v_heads),
          static_cast<float>(scale)};
}

void check_tokens(const cpu::Sizes& sizes) {
  if (sizes.batch == 0 || sizes.tokens == 0)
    fail(ErrorKind::unsupported, "GDR-G03", "cuda backend: there are no tokens; use the cpu backend");
}

void check_maximum(std::int64_t bytes, const GpuChoice& choice) {
  if (choice.max_workspace_bytes && bytes > *choice.max_workspace_bytes)
    fail(ErrorKind::unsupported, "GDR-G04",
         "workspace: the call needs {} bytes, max_workspace_bytes is {}: {} too many. Raise it, or split the batch",
         bytes, *choice.max_workspace_bytes, bytes - *choice.max_workspace_bytes);
}

void check_workspace(std::int64_t bytes, const GpuChoice& choice) {
  check_maximum(bytes, choice);
  if (choice.workspace == nullptr) return;
  if (choice.workspace_bytes < bytes)
    fail(ErrorKind::config, "GDR-G06", "workspace: it has {} bytes, the call needs {}: {} too few",
         choice.workspace_bytes, bytes, bytes - choice.workspace_bytes);
  if (reinterpret_cast<std::uintptr_t>(choice.workspace) % kWorkspaceAlignment != 0)
    fail(ErrorKind::config, "GDR-G06", "workspace: it begins at {}; expected a multiple of {} bytes", choice.workspace,
         kWorkspaceAlignment);
}

// That kernels on the device can use an address: a host pointer or another device's would kill the context.
void check_pointer(const Driver& driver, const Context& context, std::string_view name, const void* pointer) {
  const DeviceFacts& device = driver.device(context.device);
  const PointerFacts facts = driver.pointer_facts(context, pointer);
  if (!facts.is_known && !device.reaches_host_memory)
    fail(ErrorKind::config, "GDR-G07", "{}: {} is not memory of CUDA's; it is said to lie on device {} ({})", name,
         pointer, device.ordinal, device.name);
  if (facts.is_device && facts.device != device.ordinal)
    fail(ErrorKind::config, "GDR-G07", "{}: {} lies on device {}; it is said to lie on device {} ({})", name, pointer,
         facts.device, device.ordinal, device.name);
}

// The caller's tensors where they lie.
std::map<std::string, TensorPlace> places_of(const cpu::BwdCall& call, const LaunchSizes& sizes, const Plan& plan,
                                             const Driver& driver, const Context& context) {
  const std::map<std::string, Binding> bindings = bindings_of(call);
  std::map<std::string, TensorPlace> places;
  for (const TensorSpec& tensor : plan.tensors) {
    if (tensor.kind == TensorKind::workspace) continue;
    const auto& [view, is_token] = bindings.at(tensor.name);
    if (!view->present) continue;
    const std::int64_t heads = heads_of(tensor, sizes);
    if (is_token) {
      check_in_place(tensor.name, *view, tensor, {call.sizes.batch, call.sizes.tokens, heads, tensor.cols});
    } else {
      check_in_place(tensor.name, *view, tensor, {call.sizes.batch, heads, tensor.rows, tensor.cols});
    }
    check_pointer(driver, context, tensor.name, view->data);
    const auto& strides = view->strides;
    const auto data = reinterpret_cast<DevicePointer>(view->data);
    places[tensor.name] = is_token ? TensorPlace{data, strides[0], strides[2], strides[1]}
                                   : TensorPlace{data, strides[0], strides[1], strides[2]};
  }
  return places;
}

GpuRun run_of(const Driver& driver, int device, const Plan& plan) {
  GpuRun run;
  run.device = driver.device(device).name;
  for (const Kernel& kernel : plan.kernels) run.kernels.push_back(kernel.name);
  return run;
}

// The architecture in whose machine code a call would run: the device's; without a device that of the rules.
std::shared_ptr<const Arch> target_arch(GpuSession& session, const GpuChoice& choice) {
  try {
    if (session.driver()->num_devices() > 0) return session.arch_of(choice.device);
  } catch (const Error&) {
    if (choice.rules.arch.empty()) throw;
  }
  if (choice.rules.arch.empty())
    fail(ErrorKind::unsupported, "GDR-G01", "there is no device to take the architecture from; name one in arch");
  return std::make_shared<const Arch>(load_arch(choice.rules.arch));
}

}  // namespace

std::string gpu_unavailable(GpuSession& session) {
  try {
    if (session.driver()->num_devices() == 0) return "the CUDA driver knows no device";
    session.arch_of(0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string gpu_name(GpuSession& session, int device) {
  return gpu_unavailable(session).empty() ? session.driver()->device(device).name : "";
}

GpuRun gpu_backward(GpuSession& session, const cpu::BwdCall& call, const GpuChoice& choice) {
  check_tokens(call.sizes);
  const GpuProblem problem = problem_of(call.sizes);
  const std::shared_ptr<const Driver> driver = session.driver();
  const Context context = driver->context_for(choice.device, choice.stream);
  std::shared_ptr<const GpuProgram> program = session.find(choice.rules, problem, context);
  if (!program) {
    if (driver->is_capturing(context, choice.stream))
      fail(
          ErrorKind::config, "GDR-G05",
          "the stream is being captured, and the kernels of this call are not loaded yet: loading and compiling cannot "
          "be captured. Call prepare_bwd, or run the call once, before the capture begins");
    program = session.get(choice.rules, problem, context);
  }
  const LaunchSizes sizes = launch_sizes(call.sizes, call.scale);
  const std::map<std::string, TensorPlace> places = places_of(call, sizes, program->plan(), *driver, context);
  const WorkspaceLayout layout = workspace_layout(program->plan(), sizes);
  check_workspace(layout.bytes, choice);
  if (choice.workspace != nullptr || layout.bytes == 0) {
    if (layout.bytes > 0) check_pointer(*driver, context, "workspace", choice.workspace);
    program->launch(sizes, places, layout, reinterpret_cast<DevicePointer>(choice.workspace), choice.stream);
  } else {
    const DeviceFacts& device = driver->device(choice.device);
    if (!device.has_memory_pools)
      fail(ErrorKind::unsupported, "GDR-G04",
           "workspace: {} has no stream-ordered allocation; give the call a workspace of {} bytes", device.name,
           layout.bytes);
    StreamBuffer workspace(*driver, context, choice.stream, static_cast<std::size_t>(layout.bytes));
    program->launch(sizes, places, layout, workspace.pointer(), choice.stream);
    workspace.free();
  }
  return run_of(*driver, choice.device, program->plan());
}

GpuRun gpu_backward_from_host(GpuSession& session, const cpu::BwdCall& call, const GpuChoice& choice) {
  check_tokens(call.sizes);
  constexpr StreamHandle kDefaultStream = 0;  // the one that copies from and to pageable memory are ordered with
  const std::shared_ptr<const Driver> driver = session.driver();
  const Context context = driver->context_for(choice.device, kDefaultStream);
  const std::shared_ptr<const GpuProgram> program = session.get(choice.rules, problem_of(call.sizes), context);
  const LaunchSizes sizes = launch_sizes(call.sizes, call.scale);
  const WorkspaceLayout layout = workspace_layout(program->plan(), sizes);
  check_maximum(layout.bytes, choice);
  const HostCall host(call, program->plan(), sizes, driver, context);
  const DeviceBuffer workspace(driver, context, static_cast<std::size_t>(layout.bytes));
  program->launch(sizes, host.places(), layout, workspace.pointer(), kDefaultStream);
  driver->synchronise(context, kDefaultStream);
  host.finish();
  return run_of(*driver, choice.device, program->plan());
}

GpuRun gpu_prepare(GpuSession& session, const GpuProblem& problem, const GpuChoice& choice) {
  const std::shared_ptr<const Driver> driver = session.driver();
  const Context context = driver->context_for(choice.device, choice.stream);
  return run_of(*driver, choice.device, session.get(choice.rules, problem, context)->plan());
}

std::int64_t gpu_workspace_bytes(GpuSession& session, const cpu::Sizes& sizes, const GpuChoice& choice) {
  check_tokens(sizes);
  const KernelRequest request = GpuSession::request(choice.rules, problem_of(sizes), *target_arch(session, choice));
  const KeyedPlan plan = session.library().plan(request);
  const std::int64_t bytes = workspace_layout(*plan.plan, launch_sizes(sizes, 1)).bytes;
  check_maximum(bytes, choice);
  return bytes;
}

void gpu_check(GpuSession& session, const GpuProblem& problem, const GpuChoice& choice) {
  session.library().plan(GpuSession::request(choice.rules, problem, *target_arch(session, choice)));
}

}  // namespace gdr
