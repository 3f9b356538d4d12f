#include "compare.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "schedule/layout.hpp"

namespace gdr::host {
namespace {

double element(const std::byte* at, DType dtype) {
  std::uint16_t half = 0;
  float single = 0;
  if (dtype == DType::fp32) {
    std::memcpy(&single, at, sizeof single);
    return static_cast<double>(single);
  }
  std::memcpy(&half, at, sizeof half);
  return static_cast<double>(dtype == DType::bf16 ? float_from_bf16(half) : float_from_fp16(half));
}

bool publishes(const Kernel& kernel, const Op& op) {
  if (op.operands.empty() || op.kind == OpKind::copy_in) return false;
  const Operand& target = op.operands[0];
  return !target.is_tensor && kernel.tile(target.name).space == Space::smem;
}

}  // namespace

void PublishedLog::expect(const StepView& step) {
  const Kernel& kernel = plan_.kernels[static_cast<std::size_t>(step.kernel)];
  const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
  if (!publishes(kernel, op)) return;
  const Operand& target = op.operands[0];
  std::vector<double> values;
  for (int row = target.rows.begin; row < target.rows.end; ++row)
    for (int col = target.cols.begin; col < target.cols.end; ++col) values.push_back(step.value(target.name, row, col));
  expected_[{kernel.function, index_of(kernel, step.block), step.iteration, step.op, step.warp}] = std::move(values);
}

// Of a block in its launch: the last axis counts fastest.
std::int64_t PublishedLog::index_of(const Kernel& kernel, const std::vector<std::int64_t>& position) const {
  GridSizes sizes;
  sizes.sequences = static_cast<std::int64_t>(shape_.sequences.size());
  for (const auto& [begin, end] : shape_.sequences) sizes.chunks += (end - begin + plan_.chunk - 1) / plan_.chunk;
  sizes.k_heads = shape_.k_heads;
  sizes.v_heads = shape_.v_heads;
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < position.size(); ++axis) {
    Kernel alone = kernel;
    alone.grid = {kernel.grid[axis]};
    index = index * plan_.num_blocks(alone, sizes) + position[axis];
  }
  return index;
}

void PublishedLog::compare(const Kernel& kernel, const Published& published) {
  const Op& op = kernel.ops[static_cast<std::size_t>(published.op)];
  if (!publishes(kernel, op)) return;
  const Operand& target = op.operands[0];
  const Tile& tile = kernel.tile(target.name);
  const auto bytes = static_cast<int>(size_bytes(tile.dtype));
  std::map<int, std::size_t> place;  // of an element's first byte in the rectangle
  std::size_t next = 0;
  for (int row = target.rows.begin; row < target.rows.end; ++row)
    for (int col = target.cols.begin; col < target.cols.end; ++col, ++next)
      if (element_exists(tile, row, col)) place[element_byte(tile, published.iteration, row, col)] = next;
  const auto expected =
      expected_.find({kernel.function, published.block, published.iteration, published.op, published.warp});
  OpDifference& difference = by_op_[op.id];
  for (const StoredBytes& stored : published.stored)
    for (int byte = stored.byte; byte < stored.byte + stored.bytes; byte += bytes) {
      const double found = element(published.memory(byte), tile.dtype);
      const auto at = place.find(byte);
      const double wanted = expected == expected_.end() || at == place.end() ? std::numeric_limits<double>::quiet_NaN()
                                                                             : expected->second[at->second];
      ++difference.elements;
      if (!std::isnan(wanted)) difference.magnitude = std::max(difference.magnitude, std::abs(wanted));
      if (found == wanted) continue;
      ++difference.different;
      const double by = std::abs(found - wanted);
      difference.largest = std::max(difference.largest, std::isnan(by) ? std::numeric_limits<double>::infinity() : by);
    }
}

}  // namespace gdr::host
