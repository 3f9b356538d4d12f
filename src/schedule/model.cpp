#include "schedule/model.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace gdr {
namespace {

template <typename T>
const T* find_by_name(const std::vector<T>& items, const std::string& name) {
  for (const T& item : items)
    if (item.name == name) return &item;
  return nullptr;
}

}  // namespace

int Kernel::threads() const {
  int warps = 0;
  for (const Role& role : roles) warps += role.warps;
  return warps * 32;
}

const Tile* Kernel::find_tile(const std::string& tile_name) const { return find_by_name(tiles, tile_name); }

const Tile& Kernel::tile(const std::string& tile_name) const {
  if (const Tile* found = find_tile(tile_name)) return *found;
  fail(ErrorKind::internal, "GDR-X02", "kernel {}: no tile {}", name, tile_name);
}

const Role& Kernel::role_of(int op) const {
  for (const Role& role : roles)
    for (const auto* list : {&role.prologue, &role.body, &role.epilogue})
      for (const Step& step : *list)
        if (step.op == op) return role;
  fail(ErrorKind::internal, "GDR-X02", "kernel {}: op {} is in no role", name, op);
}

const TensorSpec* Plan::find_tensor(const std::string& tensor_name) const { return find_by_name(tensors, tensor_name); }

const TensorSpec& Plan::tensor(const std::string& tensor_name) const {
  if (const TensorSpec* found = find_tensor(tensor_name)) return *found;
  fail(ErrorKind::internal, "GDR-X02", "plan {} for {}: no tensor {}", strategy, arch, tensor_name);
}

std::vector<const TensorSpec*> Plan::tensors_of(const Kernel& kernel) const {
  std::vector<const TensorSpec*> touched;
  for (const TensorSpec& spec : tensors) {
    const auto touches = [&](const Op& op) {
      return std::any_of(op.operands.begin(), op.operands.end(),
                         [&](const Operand& o) { return o.is_tensor && o.name == spec.name; });
    };
    if (std::any_of(kernel.ops.begin(), kernel.ops.end(), touches)) touched.push_back(&spec);
  }
  return touched;
}

std::int64_t Plan::num_blocks(const Kernel& kernel, const GridSizes& sizes) const {
  std::int64_t blocks = 1;
  for (const GridAxis axis : kernel.grid) switch (axis) {
      case GridAxis::sequence:
        blocks *= sizes.sequences;
        break;
      case GridAxis::v_head:
        blocks *= sizes.v_heads;
        break;
      case GridAxis::k_head:
        blocks *= sizes.k_heads;
        break;
      case GridAxis::chunk:
        blocks *= sizes.chunks;
        break;
      case GridAxis::v_slice:
        blocks *= problem.head_dim_v / kernel.v_slice_cols;
        break;
    }
  return blocks;
}

}  // namespace gdr
