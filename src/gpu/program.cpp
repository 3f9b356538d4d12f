#include "gpu/program.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace gdr {
namespace {

std::int64_t chunks_of(std::int64_t tokens, int chunk) { return (tokens + chunk - 1) / chunk; }

// Elements of one tile as it is stored.
std::int64_t tile_elements(const TensorSpec& tensor) {
  const std::int64_t blocks = tensor.rows / 16;
  return tensor.order == GlobalOrder::lower16 ? blocks * (blocks + 1) / 2 * 256
                                              : std::int64_t{tensor.rows} * tensor.cols;
}

// In double, a number of bytes that may be too large for a whole number.
template <class Number>
Number bytes_of(const TensorSpec& tensor, const LaunchSizes& sizes, int chunk) {
  Number count = static_cast<Number>(sizes.sequences) * static_cast<Number>(heads_of(tensor, sizes));
  if (tensor.index == TensorIndex::chunk) count *= static_cast<Number>(chunks_of(sizes.tokens, chunk));
  count *= tensor.index == TensorIndex::token ? static_cast<Number>(sizes.tokens) * static_cast<Number>(tensor.cols)
                                              : static_cast<Number>(tile_elements(tensor));
  return count * static_cast<Number>(size_bytes(tensor.dtype));
}

// The emitted struct Args: one TensorArg for each tensor that the kernel uses, in the plan's order, then the sizes.
class ArgumentBytes {
 public:
  template <typename T>
  void add(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  // The struct's size is a multiple of its alignment.
  std::vector<std::byte> finish() && {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::int64_t heads_of(const TensorSpec& tensor, const LaunchSizes& sizes) {
  return tensor.heads == HeadAxis::k_head ? sizes.k_heads : sizes.v_heads;
}

TensorPlace dense_place(const TensorSpec& tensor, const LaunchSizes& sizes, DevicePointer data) {
  const std::int64_t heads = heads_of(tensor, sizes), tile = tile_elements(tensor);
  if (tensor.index == TensorIndex::token)
    return {data, sizes.tokens * heads * tensor.cols, tensor.cols, heads * tensor.cols};
  return {data, heads * tile, tile, tensor.cols};
}

std::int64_t num_bytes(const TensorSpec& tensor, const LaunchSizes& sizes, int chunk) {
  return bytes_of<std::int64_t>(tensor, sizes, chunk);
}

WorkspaceLayout workspace_layout(const Plan& plan, const LaunchSizes& sizes) {
  constexpr double kMostBytes = 1e18;
  WorkspaceLayout layout;
  for (const TensorSpec& tensor : plan.tensors) {
    if (tensor.kind != TensorKind::workspace) continue;
    if (static_cast<double>(layout.bytes) + bytes_of<double>(tensor, sizes, plan.chunk) > kMostBytes)
      fail(ErrorKind::unsupported, "GDR-G02", "workspace: more than {:.0e} bytes for {} sequences of {} tokens",
           kMostBytes, sizes.sequences, sizes.tokens);
    layout.tensors.emplace_back(&tensor, layout.bytes);
    const std::int64_t end = layout.bytes + num_bytes(tensor, sizes, plan.chunk);
    layout.bytes = (end + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }
  return layout;
}

GpuProgram::GpuProgram(const ReadyPlan& ready, const std::shared_ptr<const Driver>& driver, const Context& context,
                       const std::vector<int>& smem_bytes)
    : plan_(ready.plan) {
  for (std::size_t i = 0; i < plan_->kernels.size(); ++i) {
    const KernelFigures& figures = ready.kernels[i].figures;
    loaded_.emplace_back(driver, context,
                         KernelImage{plan_->kernels[i].name, ready.kernels[i].cubin->payload(),
                                     smem_bytes.empty() ? plan_->kernels[i].smem_bytes : smem_bytes[i],
                                     figures.smem_bytes, figures.compiler});
  }
}

std::vector<std::int64_t> GpuProgram::num_blocks(const LaunchSizes& sizes) const {
  constexpr std::int64_t kMostBlocks = 0x7fffffff;  // grid x, every compute capability
  const GridSizes grid = {sizes.sequences, sizes.sequences * chunks_of(sizes.tokens, plan_->chunk), sizes.k_heads,
                          sizes.v_heads};
  std::vector<std::int64_t> blocks;
  for (const Kernel& kernel : plan_->kernels) {
    blocks.push_back(plan_->num_blocks(kernel, grid));
    if (blocks.back() > kMostBlocks)
      fail(ErrorKind::unsupported, "GDR-G02", "{}: {} blocks, a launch takes {}", kernel.name, blocks.back(),
           kMostBlocks);
  }
  return blocks;
}

void GpuProgram::launch(const LaunchSizes& sizes, const std::map<std::string, TensorPlace>& places,
                        const WorkspaceLayout& layout, DevicePointer workspace, StreamHandle stream,
                        const std::function<void(std::size_t)>& after) const {
  std::map<std::string, TensorPlace> all = places;
  for (const auto& [tensor, offset] : layout.tensors)
    all[tensor->name] = dense_place(*tensor, sizes, workspace + static_cast<DevicePointer>(offset));
  const std::vector<std::int64_t> blocks = num_blocks(sizes);
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    loaded_[i].launch(static_cast<unsigned>(blocks[i]), static_cast<unsigned>(plan_->kernels[i].threads()),
                      arguments_of(plan_->kernels[i], sizes, all), stream);
    if (after) after(i);
  }
}

std::vector<std::byte> GpuProgram::arguments_of(const Kernel& kernel, const LaunchSizes& sizes,
                                                const std::map<std::string, TensorPlace>& places) const {
  ArgumentBytes arguments;
  for (const TensorSpec* tensor : plan_->tensors_of(kernel)) {
    const auto place = places.find(tensor->name);
    arguments.add(place == places.end() ? TensorPlace{} : place->second);
  }
  arguments.add(sizes.tokens);
  arguments.add(static_cast<int>(sizes.sequences));
  arguments.add(sizes.k_heads);
  arguments.add(sizes.v_heads);
  arguments.add(sizes.scale);
  return std::move(arguments).finish();
}

}  // namespace gdr
