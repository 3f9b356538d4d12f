#include "launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "machine.hpp"
#include "registry.hpp"

namespace gdr::host {
namespace {

const CompiledKernel& compiled(const Plan& plan, const Kernel& kernel) {
  for (const CompiledKernel& candidate : compiled_kernels())
    if (candidate.name == kernel.name && candidate.strategy == plan.strategy) return candidate;
  throw std::runtime_error("no compiled text of " + kernel.name);
}

// Where a tensor of a launch lies: for tokens with rows between the sequences that do not exist.
class Placement {
 public:
  Placement(const Plan& plan, const TensorSpec& tensor, const LaunchShape& shape) : tensor_(tensor) {
    sequences_ = static_cast<std::int64_t>(shape.sequences.size());
    tokens_ = shape.sequences.front().second - shape.sequences.front().first;
    for (std::size_t i = 0; i < shape.sequences.size(); ++i)
      if (shape.sequences[i].first != static_cast<std::int64_t>(i) * tokens_ ||
          shape.sequences[i].second - shape.sequences[i].first != tokens_)
        throw std::runtime_error("sequences of a host launch are equally long, one behind the other");
    heads_ = tensor.heads == HeadAxis::k_head ? shape.k_heads : shape.v_heads;
    const std::int64_t blocks = tensor.rows / 16;
    tile_ = tensor.order == GlobalOrder::lower16 ? blocks * (blocks + 1) / 2 * 256
                                                 : std::int64_t{tensor.rows} * tensor.cols;
    chunks_ = sequences_ * ((tokens_ + plan.chunk - 1) / plan.chunk);
  }

  std::vector<std::int64_t> shape() const {
    const std::int64_t rows = tensor_.order == GlobalOrder::lower16 ? tile_ / 16 : tensor_.rows;
    const std::int64_t cols = tensor_.order == GlobalOrder::lower16 ? 16 : tensor_.cols;
    if (is_token()) return {sequences_ * tokens_, heads_, tensor_.cols};
    return {tensor_.index == TensorIndex::chunk ? chunks_ : sequences_, heads_, rows, cols};
  }
  std::size_t host_bytes() const {
    const std::vector<std::int64_t> dims = shape();
    return element() *
           static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()));
  }
  std::size_t item_bytes() const {  // of a sequence's tokens
    return element() * static_cast<std::size_t>(tokens_ * heads_ * tensor_.cols);
  }
  std::size_t gap_bytes() const { return element() * static_cast<std::size_t>(kGapRows * heads_ * tensor_.cols); }
  bool is_token() const { return tensor_.index == TensorIndex::token; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t chunks() const { return chunks_; }
  std::int64_t tokens() const { return tokens_; }
  std::size_t placed_bytes() const {
    return is_token() ? static_cast<std::size_t>(sequences_) * (item_bytes() + gap_bytes()) : host_bytes();
  }
  TensorArgument argument(std::byte* data) const {
    if (is_token()) return {data, (tokens_ + kGapRows) * heads_ * tensor_.cols, tensor_.cols, heads_ * tensor_.cols};
    return {data, heads_ * tile_, tile_, tensor_.cols};
  }

 private:
  static constexpr std::int64_t kGapRows = 8;  // keeps 16-byte alignment
  std::size_t element() const { return size_bytes(tensor_.dtype); }

  const TensorSpec& tensor_;
  std::int64_t sequences_ = 0, tokens_ = 0, heads_ = 0, tile_ = 0, chunks_ = 0;
};

class HostLaunch {
 public:
  HostLaunch(const Plan& plan, const LaunchShape& shape, std::map<std::string, HostTensor>& tensors)
      : plan_(plan), shape_(shape), tensors_(tensors) {
    for (const TensorSpec& tensor : plan.tensors) {
      if (tensor.optional && !tensors.contains(tensor.name)) continue;
      place(tensor);
    }
    arguments_.tokens = shape.sequences.front().second - shape.sequences.front().first;
    arguments_.num_sequences = static_cast<int>(shape.sequences.size());
    arguments_.k_heads = shape.k_heads;
    arguments_.v_heads = shape.v_heads;
    arguments_.scale = static_cast<float>(shape.scale);
  }

  std::optional<Fault> run(const HostOptions& options) {
    arguments_.tokens += options.added_tokens;
    for (const Kernel& kernel : plan_.kernels)
      if (std::optional<Fault> fault = run_kernel(kernel, options)) return fault;
    for (const TensorSpec& tensor : plan_.tensors) {
      if (tensor.kind != TensorKind::output || !arguments_.tensors.contains(tensor.name)) continue;
      if (const std::int64_t byte = memory_.first_unwritten(tensor.name); byte >= 0)
        return Fault{FaultKind::global, fmt::format("global: output {}: byte {} was never written", tensor.name, byte),
                     "", "", tensor.name};
    }
    give_back();
    return std::nullopt;
  }

 private:
  void place(const TensorSpec& tensor) {
    const Placement placement(plan_, tensor, shape_);
    const AllocationKind kind = tensor.kind == TensorKind::input    ? AllocationKind::input
                                : tensor.kind == TensorKind::output ? AllocationKind::output
                                                                    : AllocationKind::workspace;
    std::byte* const data = memory_.allocate(tensor.name, placement.placed_bytes(), kind);
    arguments_.tensors[tensor.name] = placement.argument(data);
    if (tensor.kind == TensorKind::input) {
      const HostTensor& given = tensors_.at(tensor.name);
      if (given.shape != placement.shape() || given.dtype != tensor.dtype)
        throw std::runtime_error("tensor " + tensor.name + " has another shape or type than the plan");
      for_runs(placement, [&](std::size_t at, std::size_t host_at, std::size_t bytes) {
        std::memcpy(data + at, given.bytes.data() + host_at, bytes);
        memory_.give(tensor.name, at, at + bytes);
      });
    }
    if (placement.is_token())
      for (std::int64_t s = 0; s < placement.sequences(); ++s) {
        const std::size_t begin =
            static_cast<std::size_t>(s) * (placement.item_bytes() + placement.gap_bytes()) + placement.item_bytes();
        memory_.forbid(tensor.name, begin, begin + placement.gap_bytes());
      }
  }

  // Calls visit(byte in the allocation, byte in the host tensor, bytes) for the runs that exist.
  template <typename Visit>
  static void for_runs(const Placement& placement, const Visit& visit) {
    if (!placement.is_token()) return visit(0, 0, placement.host_bytes());
    for (std::int64_t s = 0; s < placement.sequences(); ++s) {
      const auto i = static_cast<std::size_t>(s);
      visit(i * (placement.item_bytes() + placement.gap_bytes()), i * placement.item_bytes(), placement.item_bytes());
    }
  }

  std::optional<Fault> run_kernel(const Kernel& kernel, const HostOptions& options) {
    std::optional<KernelFacts> own;
    if (options.facts == nullptr) own.emplace(kernel);
    BlockRun run;
    run.facts = options.facts != nullptr ? options.facts : &*own;
    run.threads = kernel.threads();
    run.smem_bytes = kernel.smem_bytes;
    run.global = &memory_;
    run.options = options.engine;
    if (options.banks != nullptr) {
      run.options.counts_banks = true;
      run.banks = &(*options.banks)[kernel.function];
    }
    if (options.observer) run.observer = [&](const Published& p) { options.observer(kernel, p); };
    const std::function<void()> body = compiled(plan_, kernel).bind(arguments_);
    const auto chunks = Placement(plan_, plan_.tensors.front(), shape_).chunks();
    std::vector<int> blocks(static_cast<std::size_t>(
        plan_.num_blocks(kernel, {arguments_.num_sequences, chunks, arguments_.k_heads, arguments_.v_heads})));
    std::iota(blocks.begin(), blocks.end(), 0);
    Random random(options.engine.seed);
    for (std::size_t left = blocks.size(); left > 1; --left)
      std::swap(blocks[left - 1], blocks[static_cast<std::size_t>(random.below(static_cast<int>(left)))]);
    memory_.begin_launch();
    for (const int block : blocks)
      if (std::optional<Fault> fault = run_block(run, block, body)) return fault;
    return std::nullopt;
  }

  void give_back() {
    for (const TensorSpec& tensor : plan_.tensors) {
      const auto argument = arguments_.tensors.find(tensor.name);
      if (argument == arguments_.tensors.end() || tensor.kind == TensorKind::input) continue;
      const Placement placement(plan_, tensor, shape_);
      HostTensor& host = tensors_[tensor.name];
      host.dtype = tensor.dtype;
      host.shape = placement.shape();
      host.bytes.resize(placement.host_bytes());
      const auto* const data = static_cast<const std::byte*>(argument->second.data);
      for_runs(placement, [&](std::size_t at, std::size_t host_at, std::size_t bytes) {
        std::memcpy(host.bytes.data() + host_at, data + at, bytes);
      });
    }
  }

  const Plan& plan_;
  const LaunchShape& shape_;
  std::map<std::string, HostTensor>& tensors_;
  GlobalMemory memory_;
  Arguments arguments_;
};

}  // namespace

std::vector<CompiledKernel>& compiled_kernels() {
  static std::vector<CompiledKernel> kernels;
  return kernels;
}

std::optional<Fault> run_on_host(const Plan& plan, const LaunchShape& shape, std::map<std::string, HostTensor>& tensors,
                                 const HostOptions& options) {
  return HostLaunch(plan, shape, tensors).run(options);
}

}  // namespace gdr::host
