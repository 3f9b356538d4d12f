#include "gpu/backend.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "config/registry.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "gpu/kernel_library.hpp"
#include "gpu/program.hpp"

namespace gdr {
namespace {

// The shipped architecture of a device.
Arch arch_of(const DeviceFacts& device) {
  for (const std::string_view name : config_names(ConfigKind::arch)) {
    Arch arch = load_arch(std::string(name));
    if (arch.compute_capability_major == device.compute_capability_major &&
        arch.compute_capability_minor == device.compute_capability_minor)
      return arch;
  }
  fail(ErrorKind::unsupported, "GDR-G01", "{}: compute capability {}.{} is none of the shipped architectures",
       device.name, device.compute_capability_major, device.compute_capability_minor);
}

// What a process keeps: the libraries, and the programs by device, architecture, strategy and class of problems.
class Session {
 public:
  // Never destroyed: the driver shuts down on its own when the process ends, before or after us.
  static Session& of_process() {
    static Session* const session = new Session;
    return *session;
  }

  const std::shared_ptr<const Driver>& driver() {
    const std::lock_guard lock(mutex_);
    if (!driver_) driver_ = Driver::open(settings().libcuda);
    return driver_;
  }
  KernelLibrary& library() { return library_; }

  std::shared_ptr<const GpuProgram> program(const GpuChoice& choice, const Shape& shape) {
    const std::shared_ptr<const Driver>& driver = this->driver();
    const Arch device_arch = arch_of(driver->device(choice.device));
    const Key key = {choice.device,    choice.arch.empty() ? device_arch.name : choice.arch,
                     choice.strategy,  shape.head_dim_k,
                     shape.head_dim_v, shape.group()};
    const std::lock_guard lock(programs_mutex_);
    std::shared_ptr<const GpuProgram>& known = programs_[key];
    if (known) return known;
    KernelRequest request;
    request.plan.arch = load_arch(std::get<1>(key));
    request.plan.shape = shape;
    request.plan.budget = load_budget("default");
    request.targets = device_arch.targets;
    if (!choice.strategy.empty()) request.plan.strategy = choice.strategy;
    known = std::make_shared<GpuProgram>(library_.get(request), driver, choice.device);
    return known;
  }

 private:
  using Key = std::tuple<int, std::string, std::string, int, int, int>;
  std::mutex mutex_, programs_mutex_;
  std::shared_ptr<const Driver> driver_;
  KernelLibrary library_{library_options({})};
  std::map<Key, std::shared_ptr<const GpuProgram>> programs_;
};

// One tensor of the plan as a view of the caller's memory: [item, row, head, col] for tokens, [item, head, row, col].
struct Binding {
  const cpu::View* view = nullptr;
  bool is_token = false;
};

class HostCall {
 public:
  HostCall(const cpu::BwdCall& call, const GpuProgram& program, const std::shared_ptr<const Driver>& driver,
           int ordinal)
      : program_(program), driver_(driver), ordinal_(ordinal) {
    sizes_ = {call.sizes.batch, call.sizes.tokens, static_cast<int>(call.sizes.k_heads),
              static_cast<int>(call.sizes.v_heads), static_cast<float>(call.scale)};
    bindings_ = {{"q", {&call.q, true}},         {"k", {&call.k, true}},
                 {"v", {&call.v, true}},         {"g", {&call.g, true}},
                 {"beta", {&call.beta, true}},   {"do", {&call.do_, true}},
                 {"h0", {&call.initial_state}},  {"dht", {&call.final_state_grad}},
                 {"dq", {&call.dq, true}},       {"dk", {&call.dk, true}},
                 {"dv", {&call.dv, true}},       {"dg", {&call.dg, true}},
                 {"dbeta", {&call.dbeta, true}}, {"dh0", {&call.dh0}}};
  }

  void run() {
    std::map<std::string, TensorPlace> places;
    std::map<std::string, DeviceBuffer> buffers;
    for (const TensorSpec& tensor : program_.plan().tensors) {
      const auto binding = bindings_.find(tensor.name);
      if (tensor.optional && !binding->second.view->present) continue;
      const std::int64_t elements = num_elements(tensor, sizes_, program_.plan().chunk);
      DeviceBuffer& buffer = buffers
                                 .try_emplace(tensor.name, driver_, ordinal_,
                                              static_cast<std::size_t>(elements) * size_bytes(tensor.dtype))
                                 .first->second;
      if (tensor.kind == TensorKind::input) {
        const std::vector<std::byte> bytes = packed(tensor, binding->second, buffer.bytes());
        buffer.upload(bytes.data());
      }
      places[tensor.name] = dense_place(tensor, sizes_, buffer.pointer());
    }
    program_.launch(sizes_, places, 0);
    driver_->synchronise(ordinal_, 0);
    for (const TensorSpec& tensor : program_.plan().tensors)
      if (tensor.kind == TensorKind::output && buffers.contains(tensor.name))
        unpack(tensor, bindings_.at(tensor.name), buffers.at(tensor.name));
  }

 private:
  // The dense copy of a tensor in its own element type, as a view that is addressed like the caller's.
  cpu::View staging(const TensorSpec& tensor, const Binding& binding, std::byte* bytes) const {
    const TensorPlace dense = dense_place(tensor, sizes_, 0);
    cpu::View view{bytes, tensor.dtype, {}, true};
    if (binding.is_token)
      view.strides = {dense.item_stride, dense.row_stride, dense.head_stride, 1};
    else
      view.strides = {dense.item_stride, dense.head_stride, dense.row_stride, 1};
    return view;
  }

  // Copies all of a tensor, head by head, converted on the way.
  void copy(const TensorSpec& tensor, const Binding& binding, const cpu::View& from, const cpu::View& to) const {
    const std::int64_t heads = tensor.heads == HeadAxis::k_head ? sizes_.k_heads : sizes_.v_heads;
    const std::int64_t rows = binding.is_token ? sizes_.tokens : tensor.rows;
    std::vector<float> values(static_cast<std::size_t>(rows * tensor.cols));
    for (std::int64_t item = 0; item < sizes_.sequences; ++item)
      for (std::int64_t head = 0; head < heads; ++head) {
        const cpu::Block block = binding.is_token ? cpu::token_rows(item, 0, head, rows, tensor.cols)
                                                  : cpu::state_rows(item, head, rows, tensor.cols);
        cpu::read_block(from, block, values.data());
        cpu::write_block(to, block, values.data());
      }
  }

  std::vector<std::byte> packed(const TensorSpec& tensor, const Binding& binding, std::size_t num_bytes) const {
    std::vector<std::byte> bytes(num_bytes);
    copy(tensor, binding, *binding.view, staging(tensor, binding, bytes.data()));
    return bytes;
  }

  void unpack(const TensorSpec& tensor, const Binding& binding, const DeviceBuffer& buffer) const {
    std::vector<std::byte> bytes(buffer.bytes());
    buffer.download(bytes.data());
    copy(tensor, binding, staging(tensor, binding, bytes.data()), *binding.view);
  }

  const GpuProgram& program_;
  const std::shared_ptr<const Driver>& driver_;
  const int ordinal_;
  LaunchSizes sizes_;
  std::map<std::string, Binding> bindings_;
};

// What the generated kernels cannot do yet.
void check_supported(const cpu::BwdCall& call) {
  const auto refuse = [](const std::string& what) {
    fail(ErrorKind::unsupported, "GDR-G03", "cuda backend: {}; use the cpu backend", what);
  };
  if (call.q.dtype != DType::bf16) refuse(fmt::format("q is {}, the kernels are for bf16", to_string(call.q.dtype)));
  for (const cpu::Sequence& sequence : call.sequences)
    if (sequence.begin != 0 || sequence.end != call.sizes.tokens)
      refuse("cu_seqlens is given, the kernels take sequences of one length");
  if (call.sequences.empty() || call.sizes.tokens == 0) refuse("there are no tokens");
}

}  // namespace

std::string gpu_unavailable() {
  try {
    const std::shared_ptr<const Driver>& driver = Session::of_process().driver();
    if (driver->num_devices() == 0) return "the CUDA driver knows no device";
    arch_of(driver->device(0));
    Session::of_process().library().nvrtc();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

GpuRun gpu_backward(const cpu::BwdCall& call, const GpuChoice& choice) {
  check_supported(call);
  Session& session = Session::of_process();
  Shape shape;
  shape.name = "of the call";
  shape.k_heads = static_cast<int>(call.sizes.k_heads);
  shape.v_heads = static_cast<int>(call.sizes.v_heads);
  shape.head_dim_k = static_cast<int>(call.sizes.dim_k);
  shape.head_dim_v = static_cast<int>(call.sizes.dim_v);
  shape.tokens = 32'768;  // the workload that plans are costed for: no plan depends on a call's length
  shape.sequences = 1;
  const std::shared_ptr<const GpuProgram> program = session.program(choice, shape);
  HostCall(call, *program, session.driver(), choice.device).run();
  GpuRun run;
  run.device = session.driver()->device(choice.device).name;
  for (const Kernel& kernel : program->plan().kernels) run.kernels.push_back(kernel.name);
  return run;
}

}  // namespace gdr
