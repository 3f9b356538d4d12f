#include "gpu/bench.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "core/dtype.hpp"
#include "plan/cost.hpp"
#include "runtime/measure.hpp"
#include "runtime/memory.hpp"

namespace gdr {
namespace {

constexpr int kWarmUps = 2;
constexpr StreamHandle kDefaultStream = 0;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

// Normal numbers, as many as a prime: what is laid out in rows does not repeat from row to row.
const std::vector<double>& normals() {
  static const std::vector<double> numbers = [] {
    std::vector<double> drawn(65'521);
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal;
    for (double& x : drawn) x = normal(generator);
    return drawn;
  }();
  return numbers;
}

// What a tensor of this name holds in a model, made of a normal number: rows of q and k have norm 1, nearly.
double value_of(const std::string& name, double normal, int dim_k) {
  if (name == "q" || name == "k") return normal / std::sqrt(static_cast<double>(dim_k));
  if (name == "g") return -0.5 * std::log1p(std::exp(normal));
  if (name == "beta") return 1 / (1 + std::exp(-normal));
  return normal;
}

std::vector<std::byte> random_elements(const TensorSpec& tensor, int dim_k, std::size_t num_bytes) {
  std::vector<std::byte> table(normals().size() * size_bytes(tensor.dtype));
  for (std::size_t i = 0; i < normals().size(); ++i) {
    const auto x = static_cast<float>(value_of(tensor.name, normals()[i], dim_k));
    const std::uint16_t half = tensor.dtype == DType::fp16 ? fp16_from_float(x) : bf16_from_float(x);
    if (tensor.dtype == DType::fp32)
      std::memcpy(table.data() + i * sizeof x, &x, sizeof x);
    else
      std::memcpy(table.data() + i * sizeof half, &half, sizeof half);
  }
  std::vector<std::byte> bytes(num_bytes);
  for (std::size_t at = 0; at < num_bytes; at += table.size())
    std::memcpy(bytes.data() + at, table.data(), std::min(table.size(), num_bytes - at));
  return bytes;
}

// Registers of the plan for a thread.
int registers_of(const Kernel& kernel) {
  int most = 0, sum = 0, warps = 0;
  for (const Role& role : kernel.roles) {
    most = std::max(most, role.registers);
    sum += role.registers * role.warps;
    warps += role.warps;
  }
  return kernel.setmaxnreg ? sum / std::max(1, warps) : most;
}

int blocks_per_sm(const Arch& arch, const Kernel& kernel, int registers) {
  const int unit = std::max(1, arch.register_allocation_unit / 32);
  const int granted = (std::max(1, registers) + unit - 1) / unit * unit;
  const std::int64_t by_smem = arch.smem_per_sm_bytes / (kernel.smem_bytes + arch.smem_reserved_per_block_bytes);
  return std::max(1, std::min({static_cast<int>(by_smem), arch.registers_per_sm / (granted * kernel.threads()),
                               arch.max_threads_per_sm / kernel.threads(), arch.max_blocks_per_sm}));
}

// The most that a block may ask for so that `blocks` of them still share an SM.
int padded_smem_bytes(const Arch& device, const Kernel& kernel, int blocks) {
  const std::int64_t share = device.smem_per_sm_bytes / blocks - device.smem_reserved_per_block_bytes;
  const std::int64_t most = std::min(share, device.smem_per_block_optin_bytes) / 128 * 128;
  return std::max(kernel.smem_bytes, static_cast<int>(most));
}

// The tensors of the calls to be timed, in device memory: inputs and outputs that are not optional, and workspace.
class Tensors {
 public:
  Tensors(const Plan& plan, const LaunchSizes& sizes, const std::shared_ptr<const Driver>& driver,
          const Context& context)
      : layout_(workspace_layout(plan, sizes)), workspace_(driver, context, static_cast<std::size_t>(layout_.bytes)) {
    for (const TensorSpec& tensor : plan.tensors) {
      if (tensor.kind == TensorKind::workspace || tensor.optional) continue;
      const auto bytes = static_cast<std::size_t>(num_bytes(tensor, sizes, plan.chunk));
      DeviceBuffer buffer(driver, context, bytes);
      if (tensor.kind == TensorKind::input)
        buffer.upload(random_elements(tensor, plan.problem.head_dim_k, bytes).data());
      places_[tensor.name] = dense_place(tensor, sizes, buffer.pointer());
      if (tensor.kind == TensorKind::output) element_bytes_.push_back(static_cast<int>(size_bytes(tensor.dtype)));
      (tensor.kind == TensorKind::input ? inputs_ : outputs_).push_back(std::move(buffer));
    }
  }

  const WorkspaceLayout& layout() const { return layout_; }
  DevicePointer workspace() const { return workspace_.pointer(); }
  const std::map<std::string, TensorPlace>& places() const { return places_; }

  void poison_outputs(const Driver& driver, const Context& context) const {
    for (const DeviceBuffer& output : outputs_) fill_bytes(driver, context, output, 0xff, kDefaultStream);
  }
  std::vector<std::vector<std::byte>> outputs() const {
    std::vector<std::vector<std::byte>> all;
    for (const DeviceBuffer& output : outputs_) output.download(all.emplace_back(output.bytes()).data());
    return all;
  }
  // Elements of `outputs` that are as poison_outputs leaves them, which no kernel writes: not the NaN of arithmetic.
  std::int64_t num_poisoned(const std::vector<std::vector<std::byte>>& outputs) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (auto at = outputs[i].begin(); at != outputs[i].end(); at += element_bytes_[i])
        count += std::all_of(at, at + element_bytes_[i], [](std::byte x) { return x == std::byte{0xff}; });
    return count;
  }

 private:
  WorkspaceLayout layout_;
  DeviceBuffer workspace_;
  std::vector<DeviceBuffer> inputs_, outputs_;
  std::vector<int> element_bytes_;  // of each output
  std::map<std::string, TensorPlace> places_;
};

// Shared memory of each kernel's launch.
std::vector<int> launch_smem_bytes(const BenchRequest& request, const ReadyPlan& ready, const Arch& planned,
                                   const Arch& device) {
  std::vector<int> bytes;
  for (std::size_t i = 0; i < ready.plan->kernels.size(); ++i) {
    const Kernel& kernel = ready.plan->kernels[i];
    const bool pads = request.like_planned_arch && planned.name != device.name;
    bytes.push_back(
        pads ? padded_smem_bytes(device, kernel, blocks_per_sm(planned, kernel, ready.kernels[i].figures.registers)) -
                   ready.kernels[i].figures.smem_bytes
             : kernel.smem_bytes);
  }
  return bytes;
}

// What plan and driver say of each kernel.
std::vector<BenchKernel> described(const ReadyPlan& ready, const GpuProgram& program, const LaunchSizes& sizes,
                                   const PlanRequest& request, const std::vector<int>& smem_bytes) {
  std::vector<BenchKernel> all;
  const std::vector<std::int64_t> blocks = program.num_blocks(sizes);
  for (std::size_t i = 0; i < ready.plan->kernels.size(); ++i) {
    const Kernel& kernel = ready.plan->kernels[i];
    const CodeFacts code = program.loaded()[i].facts();
    BenchKernel out;
    out.name = kernel.name;
    out.function = kernel.function;
    out.blocks = blocks[i];
    out.threads = kernel.threads();
    out.plan_registers = registers_of(kernel);
    out.plan_smem_bytes = kernel.smem_bytes;
    out.plan_blocks_per_sm = blocks_per_sm(request.arch, kernel, out.plan_registers);
    const KernelCost cost = kernel_cost(*ready.plan, kernel, request.arch, request.shape);
    out.plan_hbm_bytes = cost.hbm_bytes;
    out.plan_flops = cost.flops;
    out.registers = code.registers;
    out.local_bytes = code.local_bytes;
    out.static_smem_bytes = code.static_smem_bytes;
    out.launch_smem_bytes = smem_bytes[i];
    out.blocks_per_sm = program.loaded()[i].blocks_per_sm(kernel.threads());
    all.push_back(out);
  }
  return all;
}

}  // namespace

BenchResult gpu_bench(GpuSession& session, const BenchRequest& request) {
  const std::shared_ptr<const Driver> driver = session.driver();
  const Context context = driver->context_for(request.device, kDefaultStream);
  const Arch device = *session.arch_of(request.device);
  KernelRequest wanted = GpuSession::request(request.rules, request.problem, device);
  const ReadyPlan ready = session.library().get(wanted);
  // The plan is one for all workloads; what it costs is asked for this one.
  wanted.plan.shape.tokens = request.tokens;
  wanted.plan.shape.sequences = static_cast<int>(request.sequences);
  wanted.plan.shape.k_heads = request.k_heads;
  wanted.plan.shape.v_heads = request.k_heads * request.problem.group;

  const std::vector<int> smem_bytes = launch_smem_bytes(request, ready, wanted.plan.arch, device);
  const GpuProgram program(ready, driver, context, smem_bytes);
  const LaunchSizes sizes = {request.sequences, request.tokens, request.k_heads,
                             request.k_heads * request.problem.group,
                             1 / std::sqrt(static_cast<float>(request.problem.dim_k))};
  const Tensors tensors(*ready.plan, sizes, driver, context);
  const DeviceBuffer evicting(driver, context, static_cast<std::size_t>(2 * device.rates.l2_bytes));

  BenchResult result;
  result.device = driver->device(request.device);
  result.arch = ready.plan->arch;
  result.strategy = ready.plan->strategy;
  result.target = ready.target;
  result.chunk = ready.plan->chunk;
  result.kernels = described(ready, program, sizes, wanted.plan, smem_bytes);

  std::vector<Event> ends;  // of each kernel
  for (std::size_t i = 0; i < result.kernels.size(); ++i) ends.emplace_back(driver, context);
  const Event begin(driver, context);
  std::vector<std::vector<double>> times(result.kernels.size());
  std::vector<double> all;
  std::vector<std::vector<std::byte>> first;
  for (int run = -kWarmUps; run < request.repeats; ++run) {
    if (request.check_bits) tensors.poison_outputs(*driver, context);
    fill_bytes(*driver, context, evicting, run & 1, kDefaultStream);
    begin.record(kDefaultStream);
    program.launch(sizes, tensors.places(), tensors.layout(), tensors.workspace(), kDefaultStream,
                   [&](std::size_t kernel) { ends[kernel].record(kDefaultStream); });
    driver->synchronise(context, kDefaultStream);
    if (request.check_bits) {
      std::vector<std::vector<std::byte>> outputs = tensors.outputs();
      if (first.empty()) {
        result.unwritten = tensors.num_poisoned(outputs);
        first = std::move(outputs);
      } else {
        result.different += outputs != first;
      }
    }
    if (run < 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i)
      times[i].push_back(ends[i].milliseconds_since(i == 0 ? begin : ends[i - 1]));
    all.push_back(ends.back().milliseconds_since(begin));
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    result.kernels[i].median_ms = median(times[i]);
    result.kernels[i].least_ms = least(times[i]);
  }
  result.median_ms = median(all);
  result.least_ms = least(all);
  return result;
}

}  // namespace gdr
