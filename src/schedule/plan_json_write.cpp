#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "schedule/json_text.hpp"
#include "schedule/layout.hpp"
#include "schedule/memory_map.hpp"
#include "schedule/names.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

using nlohmann::ordered_json;

template <typename T>
void set(ordered_json& object, const char* key, const T& value) {
  if constexpr (NamedEnum<T> || std::same_as<T, DType>) {
    object[key] = to_string(value);
  } else {
    object[key] = value;
  }
}

// Leaves the key out where the value is what the reader assumes without it.
template <typename T>
void set_unless(ordered_json& object, const char* key, const T& value, const T& otherwise) {
  if (!(value == otherwise)) set(object, key, value);
}

ordered_json range_tree(const Range& range) { return {range.begin, range.end}; }

ordered_json problem_tree(const Problem& problem) {
  ordered_json tree;
  set(tree, "head_dim_k", problem.head_dim_k);
  set(tree, "head_dim_v", problem.head_dim_v);
  set(tree, "group", problem.group);
  set(tree, "dtype", problem.dtype);
  set(tree, "gate_dtype", problem.gate_dtype);
  set(tree, "state_dtype", problem.state_dtype);
  return tree;
}

ordered_json tensor_tree(const TensorSpec& tensor) {
  ordered_json tree;
  set(tree, "name", tensor.name);
  set(tree, "kind", tensor.kind);
  set(tree, "index", tensor.index);
  set(tree, "heads", tensor.heads);
  set(tree, "rows", tensor.rows);
  set(tree, "cols", tensor.cols);
  set(tree, "dtype", tensor.dtype);
  set_unless(tree, "order", tensor.order, GlobalOrder::rows);
  set_unless(tree, "optional", tensor.optional, false);
  return tree;
}

// The keys that tiles of both spaces have.
ordered_json tile_head(const Tile& tile, std::size_t order) {
  ordered_json tree;
  set(tree, "name", tile.name);
  set(tree, "order", order);
  set(tree, "rows", tile.rows);
  set(tree, "cols", tile.cols);
  set(tree, "dtype", tile.dtype);
  return tree;
}

ordered_json smem_tile_tree(const Kernel& kernel, const TileFacts& facts, std::size_t order) {
  const Tile& tile = *facts.tile;
  internal_check(tile.role.empty() && tile.reg == RegLayout{}, "a shared-memory tile has register fields");
  ordered_json tree = tile_head(tile, order);
  set(tree, "bytes", facts.bytes);
  set(tree, "offset", tile.offset_bytes);
  set(tree, "parts", tile.parts);
  set(tree, "resident", tile.resident);
  set(tree, "stages", tile.stages);
  set(tree, "panel_cols", tile.smem.panel_cols);
  set_unless(tree, "xor_mask", tile.smem.xor_mask, 0);
  set_unless(tree, "xor_shift", tile.smem.xor_shift, 0);
  set_unless(tree, "lower16", tile.smem.lower16, false);
  const auto op_id = [&](int op) {
    return op < 0 ? ordered_json(nullptr) : ordered_json(kernel.ops[static_cast<std::size_t>(op)].id);
  };
  tree["first_use"] = op_id(facts.first_op());
  tree["last_use"] = op_id(facts.last_op());
  set(tree, "aliases", facts.aliases);
  return tree;
}

ordered_json reg_tile_tree(const Tile& tile, std::size_t order) {
  internal_check(
      tile.parts == 1 && tile.resident == 1 && tile.stages == 1 && tile.smem == SmemLayout{} && tile.offset_bytes == -1,
      "a register tile has shared-memory fields");
  ordered_json tree = tile_head(tile, order);
  set(tree, "kind", tile.reg.kind);
  set(tree, "grid_rows", tile.reg.grid_rows);
  set(tree, "grid_cols", tile.reg.grid_cols);
  set(tree, "deal_cols", tile.reg.deal_cols);
  return tree;
}

ordered_json operand_tree(const Operand& operand) {
  ordered_json tree;
  set(tree, operand.is_tensor ? "tensor" : "tile", operand.name);
  set_unless(tree, "access", operand.access, Access::read);
  tree["rows"] = range_tree(operand.rows);
  tree["cols"] = range_tree(operand.cols);
  set_unless(tree, "part", operand.part, 0);
  set_unless(tree, "transposed", operand.transposed, false);
  set_unless(tree, "proxy", operand.proxy, Proxy::generic);
  set_unless(tree, "head_index", operand.head_index, 0);
  set_unless(tree, "v_sliced", operand.v_sliced, false);
  return tree;
}

// One entry of a role's list. The first entry of an op carries the op; later stretches name it only.
ordered_json entry_tree(const Op& op, const Step& step, const char* section, std::optional<std::size_t> order) {
  ordered_json tree;
  set(tree, "id", op.id);
  if (order) set(tree, "order", *order);
  set_unless<std::string>(tree, "section", section, "body");
  if (order) set_unless(tree, "slices", op.slices, 1);
  if (step.slice_begin != 0 || step.slice_end != op.slices) tree["stretch"] = {step.slice_begin, step.slice_end};
  if (!order) return tree;
  set(tree, "kind", op.kind);
  set_unless<std::string>(tree, "barrier", op.barrier, "");
  set_unless(tree, "distance", op.distance, 0);
  set_unless(tree, "after_copies", op.after_copies, false);
  set_unless(tree, "mechanism", op.mechanism, Mechanism::none);
  set_unless(tree, "where", op.where, Where::all);
  set_unless(tree, "axis", op.axis, ReduceAxis::none);
  set_unless(tree, "mask_d", op.mask_d, Mask::none);
  set_unless(tree, "mask_a", op.mask_a, Mask::none);
  set_unless(tree, "mask_b", op.mask_b, Mask::none);
  set_unless<std::string>(tree, "step", op.step, "");
  set_unless<std::string>(tree, "expr", op.expr, "");
  set_unless<std::string>(tree, "scale_expr", op.scale_expr, "");
  for (const Operand& operand : op.operands) tree["operands"].push_back(operand_tree(operand));
  return tree;
}

ordered_json role_tree(const Kernel& kernel, const Role& role, std::vector<bool>& written) {
  ordered_json tree;
  set(tree, "name", role.name);
  set(tree, "warps", role.warps);
  set(tree, "registers", role.registers);
  tree["tiles"] = ordered_json::array();
  for (std::size_t i = 0; i < kernel.tiles.size(); ++i) {
    const Tile& tile = kernel.tiles[i];
    if (tile.space == Space::reg && tile.role == role.name) tree["tiles"].push_back(reg_tile_tree(tile, i));
  }
  tree["ops"] = ordered_json::array();
  const auto add = [&](const std::vector<Step>& steps, const char* section) {
    for (const Step& step : steps) {
      const auto op = static_cast<std::size_t>(step.op);
      internal_check(op < kernel.ops.size(), "a step names an op that does not exist");
      const std::optional<std::size_t> order = written[op] ? std::nullopt : std::optional(op);
      tree["ops"].push_back(entry_tree(kernel.ops[op], step, section, order));
      written[op] = true;
    }
  };
  add(role.prologue, "prologue");
  add(role.body, "body");
  add(role.epilogue, "epilogue");
  return tree;
}

ordered_json barrier_tree(const Barrier& barrier) {
  ordered_json tree;
  set(tree, "name", barrier.name);
  set(tree, "kind", barrier.kind);
  set_unless(tree, "stages", barrier.stages, 1);
  set(tree, "arrivals", barrier.arrivals);
  set_unless(tree, "id", barrier.id, -1);
  set_unless<std::string>(tree, "why", barrier.why, "");
  return tree;
}

ordered_json smem_tree(const Plan& plan, const Kernel& kernel) {
  ordered_json tree;
  set(tree, "limit_bytes", plan.smem_limit_bytes);
  set(tree, "total_bytes", kernel.smem_bytes);
  set(tree, "headroom_bytes", plan.smem_limit_bytes - kernel.smem_bytes);
  set(tree, "barrier_offset", kernel.barrier_offset_bytes);
  tree["tiles"] = ordered_json::array();
  const std::vector<TileFacts> map = memory_map(kernel);
  auto facts = map.begin();
  for (std::size_t i = 0; i < kernel.tiles.size(); ++i)
    if (kernel.tiles[i].space == Space::smem) tree["tiles"].push_back(smem_tile_tree(kernel, *facts++, i));
  return tree;
}

void check_sayable(const Kernel& kernel) {
  std::set<std::string> ids;
  for (const Op& op : kernel.ops)
    internal_check(ids.insert(op.id).second, fmt::format("kernel {}: two ops have the id {}", kernel.name, op.id));
  std::set<std::string> roles;
  for (const Role& role : kernel.roles)
    internal_check(roles.insert(role.name).second, fmt::format("kernel {}: two roles {}", kernel.name, role.name));
  for (const Tile& tile : kernel.tiles)
    internal_check(tile.space == Space::smem || roles.contains(tile.role),
                   fmt::format("kernel {}: register tile {} belongs to no role", kernel.name, tile.name));
}

ordered_json kernel_tree(const Plan& plan, const Kernel& kernel) {
  check_sayable(kernel);
  ordered_json tree;
  set(tree, "name", kernel.name);
  set(tree, "function", kernel.function);
  set(tree, "chunk", plan.chunk);
  set(tree, "state_split", plan.state_split);
  set(tree, "threads", kernel.threads());
  tree["grid"] = ordered_json::array();
  for (const GridAxis axis : kernel.grid) tree["grid"].push_back(to_string(axis));
  set(tree, "loop", kernel.loop);
  set_unless(tree, "v_slice_cols", kernel.v_slice_cols, 0);
  set(tree, "blocks_per_sm", kernel.blocks_per_sm);
  set(tree, "launch_registers", kernel.launch_registers);
  set(tree, "setmaxnreg", kernel.setmaxnreg);
  tree["smem"] = smem_tree(plan, kernel);
  std::vector<bool> written(kernel.ops.size(), false);
  tree["roles"] = ordered_json::array();
  for (const Role& role : kernel.roles) tree["roles"].push_back(role_tree(kernel, role, written));
  for (std::size_t i = 0; i < written.size(); ++i)
    internal_check(written[i], fmt::format("kernel {}: op {} is in no role's list", kernel.name, kernel.ops[i].id));
  tree["barriers"] = ordered_json::array();
  for (const Barrier& barrier : kernel.barriers) tree["barriers"].push_back(barrier_tree(barrier));
  return tree;
}

}  // namespace

ordered_json plan_to_tree(const Plan& plan) {
  ordered_json tree;
  set(tree, "schema_version", plan.schema_version);
  set(tree, "arch", plan.arch);
  set(tree, "strategy", plan.strategy);
  set(tree, "chunk", plan.chunk);
  set(tree, "state_split", plan.state_split);
  set(tree, "smem_limit_bytes", plan.smem_limit_bytes);
  tree["problem"] = problem_tree(plan.problem);
  tree["tensors"] = ordered_json::array();
  for (const TensorSpec& tensor : plan.tensors) tree["tensors"].push_back(tensor_tree(tensor));
  tree["kernels"] = ordered_json::array();
  for (const Kernel& kernel : plan.kernels) tree["kernels"].push_back(kernel_tree(plan, kernel));
  return tree;
}

std::string plan_to_json(const Plan& plan) { return json_text(plan_to_tree(plan)); }

std::string plan_hash(const Plan& plan) { return hash_hex(plan_to_json(plan)); }

}  // namespace gdr
