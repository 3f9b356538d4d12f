#include "gpu/program.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/error.hpp"

namespace gdr {
namespace {

std::int64_t chunks_of(std::int64_t tokens, int chunk) { return (tokens + chunk - 1) / chunk; }

std::int64_t heads_of(const TensorSpec& tensor, const LaunchSizes& sizes) {
  return tensor.heads == HeadAxis::k_head ? sizes.k_heads : sizes.v_heads;
}

// Elements of one tile as it is stored.
std::int64_t tile_elements(const TensorSpec& tensor) {
  const std::int64_t blocks = tensor.rows / 16;
  return tensor.order == GlobalOrder::lower16 ? blocks * (blocks + 1) / 2 * 256
                                              : std::int64_t{tensor.rows} * tensor.cols;
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

TensorPlace dense_place(const TensorSpec& tensor, const LaunchSizes& sizes, DevicePointer data) {
  const std::int64_t heads = heads_of(tensor, sizes), tile = tile_elements(tensor);
  if (tensor.index == TensorIndex::token)
    return {data, sizes.tokens * heads * tensor.cols, tensor.cols, heads * tensor.cols};
  return {data, heads * tile, tile, tensor.cols};
}

std::int64_t num_elements(const TensorSpec& tensor, const LaunchSizes& sizes, int chunk) {
  const std::int64_t heads = heads_of(tensor, sizes);
  switch (tensor.index) {
    case TensorIndex::token:
      return sizes.sequences * sizes.tokens * heads * tensor.cols;
    case TensorIndex::chunk:
      return sizes.sequences * chunks_of(sizes.tokens, chunk) * heads * tile_elements(tensor);
    case TensorIndex::sequence:
      return sizes.sequences * heads * tile_elements(tensor);
  }
  return 0;
}

GpuProgram::GpuProgram(const ReadyPlan& ready, std::shared_ptr<const Driver> driver, int ordinal) : plan_(ready.plan) {
  for (std::size_t i = 0; i < plan().kernels.size(); ++i)
    loaded_.emplace_back(driver, ordinal, ready.kernels[i].cubin->payload(), plan().kernels[i].name,
                         plan().kernels[i].smem_bytes);
}

void GpuProgram::launch(const LaunchSizes& sizes, const std::map<std::string, TensorPlace>& places,
                        StreamHandle stream) const {
  for (std::size_t i = 0; i < plan().kernels.size(); ++i) launch_kernel(i, sizes, places, stream);
}

void GpuProgram::launch_kernel(std::size_t index, const LaunchSizes& sizes,
                               const std::map<std::string, TensorPlace>& places, StreamHandle stream) const {
  const Kernel& kernel = plan().kernels[index];
  ArgumentBytes arguments;
  for (const TensorSpec* tensor : plan().tensors_of(kernel)) {
    const auto place = places.find(tensor->name);
    arguments.add(place == places.end() ? TensorPlace{} : place->second);
  }
  arguments.add(sizes.tokens);
  arguments.add(static_cast<int>(sizes.sequences));
  arguments.add(sizes.k_heads);
  arguments.add(sizes.v_heads);
  arguments.add(sizes.scale);

  const std::int64_t blocks = plan().num_blocks(
      kernel, {sizes.sequences, sizes.sequences * chunks_of(sizes.tokens, plan().chunk), sizes.k_heads, sizes.v_heads});
  constexpr std::int64_t kMostBlocks = 0x7fffffff;  // grid x, every compute capability
  if (blocks > kMostBlocks)
    fail(ErrorKind::unsupported, "GDR-G02", "{}: {} blocks, a launch takes {}", kernel.name, blocks, kMostBlocks);
  loaded_[index].launch(static_cast<unsigned>(blocks), static_cast<unsigned>(kernel.threads()),
                        std::move(arguments).finish(), stream);
}

}  // namespace gdr
