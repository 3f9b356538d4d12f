#include "interp/launch.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace gdr::interp {
namespace {

const char* axis_name(GridAxis axis) {
  switch (axis) {
    case GridAxis::sequence:
      return "sequence";
    case GridAxis::v_head:
      return "v_head";
    case GridAxis::k_head:
      return "k_head";
    case GridAxis::chunk:
      return "chunk";
    case GridAxis::v_slice:
      return "v_slice";
  }
  return "?";
}

bool has_axis(const Kernel& kernel, GridAxis axis) {
  return std::find(kernel.grid.begin(), kernel.grid.end(), axis) != kernel.grid.end();
}

[[noreturn]] void bad_grid(const Kernel& kernel, const char* what) {
  fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}: {}.", kernel.name, what);
}

void check_grid(const Plan& plan, const Kernel& kernel) {
  const bool sequence = has_axis(kernel, GridAxis::sequence), chunk = has_axis(kernel, GridAxis::chunk);
  if (has_axis(kernel, GridAxis::v_head) == has_axis(kernel, GridAxis::k_head))
    bad_grid(kernel, "the grid needs exactly one of v_head and k_head");
  if (sequence && chunk) bad_grid(kernel, "the grid has a sequence and a chunk axis; a chunk implies its sequence");
  if (kernel.loop != LoopKind::once && !sequence)
    bad_grid(kernel, "a loop over the chunks of a sequence needs a sequence axis");
  if (has_axis(kernel, GridAxis::v_slice) &&
      (kernel.v_slice_cols <= 0 || plan.problem.head_dim_v % kernel.v_slice_cols != 0))
    bad_grid(kernel, "v_slice_cols does not divide the head dimension of v");
}

std::int64_t axis_length(const Plan& plan, const Kernel& kernel, const Launch& launch, GridAxis axis) {
  switch (axis) {
    case GridAxis::sequence:
      return launch.num_sequences();
    case GridAxis::v_head:
      return launch.shape.v_heads;
    case GridAxis::k_head:
      return launch.shape.k_heads;
    case GridAxis::chunk:
      return static_cast<std::int64_t>(launch.chunks.size());
    case GridAxis::v_slice:
      return plan.problem.head_dim_v / kernel.v_slice_cols;
  }
  return 0;
}

Block place_block(const Kernel& kernel, const Launch& launch, const std::vector<std::int64_t>& position) {
  Block block;
  block.kernel = &kernel;
  block.position = position;
  block.count = 1;
  for (std::size_t axis = 0; axis < kernel.grid.size(); ++axis) {
    const std::int64_t at = position[axis];
    switch (kernel.grid[axis]) {
      case GridAxis::sequence:
        block.sequence = static_cast<int>(at);
        break;
      case GridAxis::v_head:
      case GridAxis::k_head:
        block.head = static_cast<int>(at);
        block.head_axis = kernel.grid[axis] == GridAxis::k_head ? HeadAxis::k_head : HeadAxis::v_head;
        break;
      case GridAxis::chunk:
        block.first_chunk = at;
        block.sequence = launch.chunks[static_cast<std::size_t>(at)].sequence;
        break;
      case GridAxis::v_slice:
        block.v_slice = static_cast<int>(at);
        break;
    }
  }
  if (kernel.loop != LoopKind::once) {
    const auto sequence = static_cast<std::size_t>(block.sequence);
    const std::int64_t begin = launch.first_chunk[sequence], end = launch.first_chunk[sequence + 1];
    const bool ascending = kernel.loop == LoopKind::chunks_ascending;
    block.count = end - begin;
    block.first_chunk = ascending ? begin : end - 1;
    block.chunk_step = ascending ? 1 : -1;
  }
  return block;
}

}  // namespace

Launch make_launch(const Plan& plan, const LaunchShape& shape) {
  if (plan.chunk <= 0) fail(ErrorKind::check_failed, "GDR-I02", "interp: the plan's chunk is {} rows.", plan.chunk);
  if (shape.k_heads <= 0 || shape.v_heads <= 0 || shape.v_heads % shape.k_heads != 0)
    fail(ErrorKind::config, "GDR-I01",
         "interp: {} v-heads over {} k-heads; both must be positive and the first a multiple of the second.",
         shape.v_heads, shape.k_heads);
  Launch launch;
  launch.shape = shape;
  launch.group = shape.v_heads / shape.k_heads;
  for (std::size_t index = 0; index < shape.sequences.size(); ++index) {
    const auto [begin, end] = shape.sequences[index];
    if (begin < 0 || begin > end || end > shape.tokens)
      fail(ErrorKind::config, "GDR-I01", "interp: sequence {} has tokens {} to {}; they must lie in 0 to {}.", index,
           begin, end, shape.tokens);
    launch.first_chunk.push_back(static_cast<std::int64_t>(launch.chunks.size()));
    for (std::int64_t token = begin; token < end; token += plan.chunk)
      launch.chunks.push_back(
          {static_cast<int>(index), token, static_cast<int>(std::min<std::int64_t>(plan.chunk, end - token))});
  }
  launch.first_chunk.push_back(static_cast<std::int64_t>(launch.chunks.size()));
  return launch;
}

std::string Block::describe() const {
  std::string text;
  for (std::size_t axis = 0; axis < position.size(); ++axis)
    text += fmt::format("{}{} {}", axis == 0 ? "" : ", ", axis_name(kernel->grid[axis]), position[axis]);
  return text;
}

std::vector<Block> blocks_of(const Plan& plan, const Kernel& kernel, const Launch& launch) {
  check_grid(plan, kernel);
  std::vector<std::int64_t> lengths;
  for (const GridAxis axis : kernel.grid) lengths.push_back(axis_length(plan, kernel, launch, axis));
  std::vector<Block> blocks;
  if (std::find(lengths.begin(), lengths.end(), 0) != lengths.end()) return blocks;
  std::vector<std::int64_t> position(lengths.size(), 0);
  for (;;) {
    blocks.push_back(place_block(kernel, launch, position));
    std::size_t axis = lengths.size();
    while (axis > 0 && ++position[axis - 1] == lengths[axis - 1]) position[--axis] = 0;
    if (axis == 0) return blocks;
  }
}

}  // namespace gdr::interp
