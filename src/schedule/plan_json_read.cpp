#include "schedule/plan_json.hpp"

#include <fmt/format.h>

#include <bit>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/json.hpp"
#include "schedule/memory_map.hpp"
#include "schedule/plan_json_parts.hpp"

namespace gdr {
namespace {

using namespace plan_file;

// Reads one file. A member function for each kind of object; what needs the whole kernel comes after its parts.
class PlanReader {
 public:
  explicit PlanReader(const std::string& source) : source_(source), derived_(source) {}

  Plan read(const JsonValue& root) {
    ObjectReader reader = root.object();
    plan_.schema_version = reader.integer("schema_version", 1, 1);
    plan_.arch = name_at(reader, "arch");
    plan_.strategy = name_at(reader, "strategy");
    plan_.chunk = reader.integer("chunk", 1, kMaxDim);
    plan_.state_split = reader.integer("state_split", 1, kMaxDim);
    plan_.smem_limit_bytes = reader.integer("smem_limit_bytes", 0, kMaxBytes);
    ObjectReader problem = reader.object("problem");
    plan_.problem = read_problem(problem);
    const std::vector<JsonValue> tensors = reader.array("tensors", 0, kMaxListed);
    for (const JsonValue& tensor : tensors) plan_.tensors.push_back(read_tensor(tensor));
    refuse_repeated_names(plan_.tensors, tensors);
    const std::vector<JsonValue> kernels = reader.array("kernels", 0, kMaxListed);
    for (const JsonValue& kernel : kernels) plan_.kernels.push_back(read_kernel(kernel));
    refuse_repeated_names(plan_.kernels, kernels);
    plan_planned_keys(reader);
    reader.finish();
    return std::move(plan_);
  }

 private:
  Problem read_problem(ObjectReader& reader) const {
    Problem problem;
    problem.head_dim_k = reader.integer("head_dim_k", 1, kMaxDim);
    problem.head_dim_v = reader.integer("head_dim_v", 1, kMaxDim);
    problem.group = reader.integer("group", 1, kMaxDim);
    problem.dtype = dtype_at(reader, "dtype", source_);
    problem.gate_dtype = dtype_at(reader, "gate_dtype", source_);
    problem.state_dtype = dtype_at(reader, "state_dtype", source_);
    reader.finish();
    return problem;
  }

  TensorSpec read_tensor(const JsonValue& value) const {
    ObjectReader reader = value.object();
    TensorSpec tensor;
    tensor.name = name_at(reader, "name");
    tensor.kind = choice<TensorKind>(reader, "kind");
    tensor.index = choice<TensorIndex>(reader, "index");
    tensor.heads = choice<HeadAxis>(reader, "heads");
    tensor.rows = reader.integer("rows", 1, kMaxDim);
    tensor.cols = reader.integer("cols", 1, kMaxDim);
    tensor.dtype = dtype_at(reader, "dtype", source_);
    tensor.order = choice_or(reader, "order", GlobalOrder::rows);
    tensor.optional = reader.boolean_or("optional", false);
    reader.finish();
    return tensor;
  }

  // ---------------------------------------------------------------------------------------------------- kernels

  Kernel read_kernel(const JsonValue& value) {
    ObjectReader reader = value.object();
    Kernel kernel;
    kernel.name = name_at(reader, "name");
    kernel.function = name_at(reader, "function");
    for (const JsonValue& axis : reader.array("grid", 1, EnumNames<GridAxis>::kTable.size()))
      kernel.grid.push_back(axis.choice(EnumNames<GridAxis>::kTable));
    kernel.loop = choice<LoopKind>(reader, "loop");
    kernel.v_slice_cols = reader.integer_or("v_slice_cols", 0, 0, kMaxDim);
    kernel.blocks_per_sm = reader.integer("blocks_per_sm", 1, kMaxWarps);
    kernel.launch_registers = reader.integer("launch_registers", 0, kMaxRegisters);
    kernel.setmaxnreg = reader.boolean("setmaxnreg");

    tiles_ = {};
    tile_names_.clear();
    ObjectReader smem = reader.object("smem");
    kernel.smem_bytes = smem.integer("total_bytes", 0, kMaxBytes);
    kernel.barrier_offset_bytes = smem.integer("barrier_offset", -1, kMaxBytes);
    const std::vector<JsonValue> smem_tiles = smem.array("tiles", 0, kMaxListed);
    for (const JsonValue& tile : smem_tiles) read_smem_tile(tile);

    const std::vector<JsonValue> barriers = reader.array("barriers", 0, kMaxListed);
    for (const JsonValue& barrier : barriers) kernel.barriers.push_back(read_barrier(barrier));
    refuse_repeated_names(kernel.barriers, barriers);

    const std::vector<JsonValue> roles = reader.array("roles", 0, kMaxListed);
    for (const JsonValue& role : roles) kernel.roles.push_back(read_role_head(role));
    refuse_repeated_names(kernel.roles, roles);
    kernel.tiles = tiles_.take();
    read_ops(plan_, kernel, roles);

    check_derived(kernel, reader, smem, smem_tiles);
    smem.finish();
    reader.finish();
    return kernel;
  }

  Tile read_tile_head(ObjectReader& reader) const {
    Tile tile;
    tile.name = name_at(reader, "name");
    tile.rows = reader.integer("rows", 1, kMaxDim);
    tile.cols = reader.integer("cols", 1, kMaxDim);
    tile.dtype = dtype_at(reader, "dtype", source_);
    return tile;
  }

  void read_smem_tile(const JsonValue& value) {
    ObjectReader reader = value.object();
    Tile tile = read_tile_head(reader);
    tile.offset_bytes = reader.integer("offset", -1, kMaxBytes);
    tile.parts = reader.integer("parts", 1, tile.rows);
    if (tile.rows % tile.parts != 0)
      reader.at("parts").reject(fmt::format("does not divide the tile's {} rows.", tile.rows));
    tile.resident = reader.integer("resident", 1, tile.parts);
    tile.stages = reader.integer("stages", 1, kMaxStages);
    tile.smem.panel_cols = reader.integer("panel_cols", 1, kMaxDim);
    tile.smem.xor_mask = reader.integer_or("xor_mask", 0, 0, kMaxDim);
    tile.smem.xor_shift = reader.integer_or("xor_shift", 0, 0, 16);
    tile.smem.lower16 = reader.boolean_or("lower16", false);
    check_layout(tile, reader);
    add_tile(reader, std::move(tile));
    // Keys that follow from the model: read here so that they count as known, compared in check_derived.
    for (const char* key : {"bytes", "first_use", "last_use", "aliases"}) reader.find(key);
    reader.finish();
  }

  // No element may fall outside the tile's own bytes, or two on one byte.
  static void check_layout(const Tile& tile, ObjectReader& reader) {
    if (tile.smem.xor_mask > 0) {
      const auto pitch = static_cast<std::size_t>(tile.smem.panel_cols) * size_bytes(tile.dtype);
      const std::size_t units = (pitch + kUnitBytes - 1) / kUnitBytes;
      if (!std::has_single_bit(units) || static_cast<std::size_t>(tile.smem.xor_mask) >= units)
        reader.at("xor_mask")
            .reject(fmt::format("does not fit a panel row of {} units of 16 bytes: it must be smaller, and their "
                                "number a power of two.",
                                units));
    }
    if (!tile.smem.lower16) return;
    if (tile.rows != tile.cols || tile.rows % kBlock != 0 || tile.parts != 1)
      reader.at("lower16").reject("needs a square tile in one part, its side a multiple of 16.");
    if (tile.smem.panel_cols != kBlock) reader.at("panel_cols").reject("must be 16 in a lower16 tile.");
  }

  void read_reg_tile(const JsonValue& value, const std::string& role) {
    ObjectReader reader = value.object();
    Tile tile = read_tile_head(reader);
    tile.space = Space::reg;
    tile.role = role;
    tile.reg.kind = choice<RegKind>(reader, "kind");
    tile.reg.grid_rows = reader.integer("grid_rows", 1, kMaxWarps);
    tile.reg.grid_cols = reader.integer("grid_cols", 1, kMaxWarps);
    tile.reg.deal_cols = reader.integer("deal_cols", 1, kMaxDim);
    add_tile(reader, std::move(tile));
    reader.finish();
  }

  void add_tile(ObjectReader& reader, Tile tile) {
    if (!tile_names_.insert(tile.name).second)
      reader.at("name").reject("is the name of an earlier tile too; names must differ.");
    tiles_.add(reader, std::move(tile));
  }

  Barrier read_barrier(const JsonValue& value) const {
    ObjectReader reader = value.object();
    Barrier barrier;
    barrier.name = name_at(reader, "name");
    barrier.kind = choice<BarrierKind>(reader, "kind");
    barrier.stages = reader.integer_or("stages", 1, 1, kMaxStages);
    barrier.arrivals = reader.integer("arrivals", 0, kMaxArrivals);
    barrier.id = reader.integer_or("id", -1, 0, kMaxNamedBarrier);
    barrier.why = text_or_empty(reader, "why");
    reader.finish();
    return barrier;
  }

  Role read_role_head(const JsonValue& value) {
    ObjectReader reader = value.object();
    Role role;
    role.name = name_at(reader, "name");
    role.warps = reader.integer("warps", 1, kMaxWarps);
    role.registers = reader.integer("registers", 0, kMaxRegisters);
    for (const JsonValue& tile : reader.array("tiles", 0, kMaxListed)) read_reg_tile(tile, role.name);
    reader.at("ops");
    reader.finish();
    return role;
  }

  // -------------------------------------------------------------------------------------------- derived, planned

  void check_derived(const Kernel& kernel, ObjectReader& reader, ObjectReader& smem,
                     const std::vector<JsonValue>& smem_tiles) const {
    derived_.integer(reader, "chunk", plan_.chunk);
    derived_.integer(reader, "state_split", plan_.state_split);
    derived_.integer(reader, "threads", kernel.threads());
    derived_.integer(smem, "limit_bytes", plan_.smem_limit_bytes);
    derived_.integer(smem, "headroom_bytes", plan_.smem_limit_bytes - kernel.smem_bytes);
    const auto op_id = [&](int op) { return op < 0 ? std::string() : kernel.ops[static_cast<std::size_t>(op)].id; };
    std::map<std::string, TileFacts> facts_of;
    for (TileFacts& facts : memory_map(kernel)) facts_of.emplace(facts.tile->name, std::move(facts));
    for (const JsonValue& value : smem_tiles) {
      ObjectReader tile = value.object();
      const TileFacts& facts = facts_of.at(tile.string("name"));
      derived_.integer(tile, "bytes", facts.bytes);
      derived_.op_id(tile, "first_use", op_id(facts.first_op()));
      derived_.op_id(tile, "last_use", op_id(facts.last_op()));
      derived_.names(tile, "aliases", facts.aliases);
    }
    kernel_planned_keys(reader, smem);
  }

  // What the planner knows beyond the plan: names, costs and bounds. Checked for their type.
  static void check_name(ObjectReader& reader, std::string_view key) {
    if (reader.find(key)) name_at(reader, key);
  }
  static void check_numbers(ObjectReader& reader, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const auto value = reader.find(key)) value->number(0);
  }
  static void kernel_planned_keys(ObjectReader& kernel, ObjectReader& smem) {
    check_name(kernel, "kernel_key");
    check_numbers(kernel, {"blocks", "flops", "hbm_bytes", "l2_bytes", "workspace_bytes", "floor_us", "predicted_us",
                           "cycles_per_iteration"});
    check_numbers(smem, {"lower_bound_bytes", "direct_port_bytes"});
    smem.boolean_or("packing_is_optimal", false);
  }
  static void plan_planned_keys(ObjectReader& plan) {
    for (const char* key : {"shape", "budget", "request_key"}) check_name(plan, key);
    if (const auto value = plan.find("workload")) {
      ObjectReader workload = value->object();
      check_numbers(workload, {"tokens", "sequences", "k_heads", "v_heads"});
      workload.finish();
    }
    if (const auto list = plan.find("candidates"))
      for (const JsonValue& value : list->array(0, kMaxListed)) {
        ObjectReader candidate = value.object();
        for (const char* key : {"name", "verdict"}) check_name(candidate, key);
        check_numbers(candidate, {"smem_bytes", "registers", "predicted_us"});
        text_or_empty(candidate, "reason");
        candidate.finish();
      }
  }

  const std::string& source_;
  DerivedCheck derived_;
  Plan plan_;
  // Of the kernel that is being read.
  OrderedList<Tile> tiles_;
  std::set<std::string> tile_names_;
};

}  // namespace

Plan plan_from_json(std::string_view text, const std::string& source) {
  constexpr std::size_t kMaxPlanBytes = std::size_t{4} << 20;
  const JsonDocument document = JsonDocument::parse(text, source, {.max_bytes = kMaxPlanBytes});
  return PlanReader(source).read(document.root());
}

}  // namespace gdr
