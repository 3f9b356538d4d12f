#include "schedule/plan_json.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../config/expect_error.hpp"
#include "sample_plan.hpp"
#include "schedule/names.hpp"

using namespace gdr;
using nlohmann::ordered_json;

namespace {

std::string read_error(const std::string& text) {
  return test::error_text(ErrorKind::config, [&] { (void)plan_from_json(text, "p.json"); });
}

// Another value of the same enumeration.
template <NamedEnum T>
void next(T& value) {
  const auto& table = EnumNames<T>::kTable;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].value == value) {
      value = table[(i + 1) % table.size()].value;
      return;
    }
}
void next(DType& value) { value = value == DType::bf16 ? DType::fp16 : DType::bf16; }
void next(bool& value) { value = !value; }

// One change for each field of the model that a file holds; each stays within what a reader lets pass.
struct Change {
  std::string field;
  std::function<void(Plan&)> apply;
};

Tile& tile(Plan& plan, const char* name) {
  for (Tile& tile : plan.kernels[0].tiles)
    if (tile.name == name) return tile;
  throw std::logic_error(name);
}
Op& op(Plan& plan, const char* id) {
  for (Op& op : plan.kernels[0].ops)
    if (op.id == id) return op;
  throw std::logic_error(id);
}

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges = {
      {"plan.arch", [](Plan& p) { p.arch += "a"; }},
      {"plan.strategy", [](Plan& p) { p.strategy += "x"; }},
      {"plan.chunk", [](Plan& p) { p.chunk += 1; }},
      {"plan.state_split", [](Plan& p) { p.state_split += 1; }},
      {"plan.smem_limit_bytes", [](Plan& p) { p.smem_limit_bytes += 1; }},
      {"problem.head_dim_k", [](Plan& p) { p.problem.head_dim_k += 1; }},
      {"problem.head_dim_v", [](Plan& p) { p.problem.head_dim_v += 1; }},
      {"problem.group", [](Plan& p) { p.problem.group += 1; }},
      {"problem.dtype", [](Plan& p) { next(p.problem.dtype); }},
      {"problem.gate_dtype", [](Plan& p) { next(p.problem.gate_dtype); }},
      {"problem.state_dtype", [](Plan& p) { next(p.problem.state_dtype); }},
      {"plan.tensors order", [](Plan& p) { std::swap(p.tensors[0], p.tensors[1]); }},
      {"tensor.kind", [](Plan& p) { next(p.tensors[0].kind); }},
      {"tensor.index", [](Plan& p) { next(p.tensors[1].index); }},
      {"tensor.heads", [](Plan& p) { next(p.tensors[2].heads); }},
      {"tensor.rows", [](Plan& p) { p.tensors[3].rows += 1; }},
      {"tensor.cols", [](Plan& p) { p.tensors[4].cols += 1; }},
      {"tensor.dtype", [](Plan& p) { next(p.tensors[5].dtype); }},
      {"tensor.order", [](Plan& p) { next(p.tensors[3].order); }},
      {"tensor.optional", [](Plan& p) { next(p.tensors[6].optional); }},
      {"plan.kernels",
       [](Plan& p) {
         p.kernels.push_back(p.kernels[0]);
         p.kernels.back().name += "x" + std::to_string(p.kernels.size());
       }},
      {"kernel.name", [](Plan& p) { p.kernels[0].name += "y"; }},
      {"kernel.function", [](Plan& p) { p.kernels[0].function += "x"; }},
      {"kernel.grid", [](Plan& p) { next(p.kernels[0].grid[0]); }},
      {"kernel.loop", [](Plan& p) { next(p.kernels[0].loop); }},
      {"kernel.v_slice_cols", [](Plan& p) { p.kernels[0].v_slice_cols += 1; }},
      {"kernel.blocks_per_sm", [](Plan& p) { p.kernels[0].blocks_per_sm = 3 - p.kernels[0].blocks_per_sm; }},
      {"kernel.launch_registers", [](Plan& p) { p.kernels[0].launch_registers ^= 8; }},
      {"kernel.setmaxnreg", [](Plan& p) { next(p.kernels[0].setmaxnreg); }},
      {"kernel.smem_bytes", [](Plan& p) { p.kernels[0].smem_bytes += 1; }},
      {"kernel.barrier_offset_bytes", [](Plan& p) { p.kernels[0].barrier_offset_bytes += 1; }},
      {"kernel.tiles order", [](Plan& p) { std::swap(p.kernels[0].tiles[0], p.kernels[0].tiles[9]); }},
      {"kernel.ops order",
       [](Plan& p) {
         std::swap(p.kernels[0].ops[2], p.kernels[0].ops[3]);
         for (Step& step : p.kernels[0].roles[0].body) step.op = step.op == 2 ? 3 : step.op == 3 ? 2 : step.op;
       }},
      {"tile.rows", [](Plan& p) { tile(p, "k").rows += 1; }},
      {"tile.cols", [](Plan& p) { tile(p, "k").cols += 1; }},
      {"tile.dtype", [](Plan& p) { next(tile(p, "do").dtype); }},
      {"tile.offset_bytes", [](Plan& p) { tile(p, "do").offset_bytes += 16; }},
      {"tile.parts", [](Plan& p) { tile(p, "h").parts = 4 + 4 * (tile(p, "h").parts == 4); }},
      {"tile.resident", [](Plan& p) { tile(p, "h").resident = 3 - tile(p, "h").resident; }},
      {"tile.stages", [](Plan& p) { tile(p, "gam").stages = 2 + tile(p, "gam").stages % 3; }},
      {"layout.panel_cols", [](Plan& p) { tile(p, "gam").smem.panel_cols += 1; }},
      {"layout.xor_mask", [](Plan& p) { tile(p, "k").smem.xor_mask ^= 3; }},
      {"layout.xor_shift", [](Plan& p) { tile(p, "k").smem.xor_shift ^= 1; }},
      {"layout.lower16", [](Plan& p) { next(tile(p, "p").smem.lower16); }},
      {"tile.role", [](Plan& p) { tile(p, "u").role = tile(p, "u").role == "state" ? "pairs" : "state"; }},
      {"reg.kind", [](Plan& p) { next(tile(p, "d").reg.kind); }},
      {"reg.grid_rows", [](Plan& p) { tile(p, "d").reg.grid_rows ^= 4; }},
      {"reg.grid_cols", [](Plan& p) { tile(p, "d").reg.grid_cols ^= 4; }},
      {"reg.deal_cols", [](Plan& p) { tile(p, "d").reg.deal_cols += 1; }},
      {"op.id", [](Plan& p) { p.kernels[0].ops[5].id += "z"; }},
      {"op.kind", [](Plan& p) { op(p, "u.map").kind = OpKind::reduce; }},
      {"op.expr", [](Plan& p) { op(p, "P.map").expr = "P[i,j] = P[i,j] * gam[C-1]"; }},
      {"op.scale_expr", [](Plan& p) { op(p, "dS.mma").scale_expr = "scale * gam[l]"; }},
      {"op.axis", [](Plan& p) { next(op(p, "u.map").axis); }},
      {"op.mechanism", [](Plan& p) { next(op(p, "do.in").mechanism); }},
      {"op.where", [](Plan& p) { next(op(p, "do.in").where); }},
      {"op.mask_d", [](Plan& p) { next(op(p, "u.mma").mask_d); }},
      {"op.mask_a", [](Plan& p) { next(op(p, "u.mma").mask_a); }},
      {"op.mask_b", [](Plan& p) { next(op(p, "u.mma").mask_b); }},
      {"op.slices and steps",
       [](Plan& p) {
         op(p, "P.mma").slices += 4;
         p.kernels[0].roles[2].body[2].slice_end += 4;
       }},
      {"op.step", [](Plan& p) { op(p, "u.map").step += "!"; }},
      {"op.barrier", [](Plan& p) { op(p, "wait.x_free.loader").barrier = "p_ready"; }},
      {"op.distance", [](Plan& p) { op(p, "wait.x_free.loader").distance ^= 1; }},
      {"op.after_copies", [](Plan& p) { next(op(p, "arrive.x_free.state").after_copies); }},
      {"op.operands order", [](Plan& p) { std::swap(op(p, "d.mma").operands[1], op(p, "d.mma").operands[2]); }},
      {"operand.name", [](Plan& p) { op(p, "d.mma2").operands[1].name = "e"; }},
      {"operand.is_tensor", [](Plan& p) { next(op(p, "k.in").operands[1].is_tensor); }},
      {"operand.access", [](Plan& p) { next(op(p, "d.mma").operands[0].access); }},
      {"operand.rows", [](Plan& p) { op(p, "d.mma").operands[0].rows.begin ^= 16; }},
      {"operand.cols", [](Plan& p) { op(p, "d.mma").operands[0].cols.end ^= 32; }},
      {"operand.part", [](Plan& p) { op(p, "u.mma").operands[2].part ^= 1; }},
      {"operand.transposed", [](Plan& p) { next(op(p, "u.mma").operands[2].transposed); }},
      {"operand.proxy", [](Plan& p) { next(op(p, "u.mma").operands[2].proxy); }},
      {"operand.head_index", [](Plan& p) { op(p, "do.in").operands[1].head_index += 1; }},
      {"operand.v_sliced", [](Plan& p) { next(op(p, "do.in").operands[1].v_sliced); }},
      {"role.name", [](Plan& p) { p.kernels[0].roles[0].name += "x"; }},
      {"role.warps", [](Plan& p) { p.kernels[0].roles[0].warps = 3 - p.kernels[0].roles[0].warps; }},
      {"role.registers", [](Plan& p) { p.kernels[0].roles[0].registers ^= 8; }},
      {"role.prologue",
       [](Plan& p) {
         p.kernels[0].roles[1].prologue.push_back({14, 0, 1});
       }},
      {"role.body", [](Plan& p) { std::swap(p.kernels[0].roles[1].body[2], p.kernels[0].roles[1].body[3]); }},
      {"role.epilogue",
       [](Plan& p) {
         p.kernels[0].roles[1].epilogue.push_back({14, 0, 1});
       }},
      {"barrier.name",
       [](Plan& p) {
         Barrier& barrier = p.kernels[0].barriers[4];
         for (Op& o : p.kernels[0].ops)
           if (o.barrier == barrier.name) o.barrier += "x";
         barrier.name += "x";
       }},
      {"barrier.kind", [](Plan& p) { next(p.kernels[0].barriers[3].kind); }},
      {"barrier.stages", [](Plan& p) { p.kernels[0].barriers[3].stages ^= 2; }},
      {"barrier.arrivals", [](Plan& p) { p.kernels[0].barriers[3].arrivals += 1; }},
      {"barrier.id", [](Plan& p) { p.kernels[0].barriers[7].id ^= 2; }},
      {"barrier.why", [](Plan& p) { p.kernels[0].barriers[7].why += "a \"quoted\" reason; "; }},
  };
  return kChanges;
}

}  // namespace

TEST_CASE("a plan file round-trips, whichever field is changed, and shows the change") {
  const Plan plan = test::sample_plan();
  const std::string text = plan_to_json(plan);
  CHECK(plan_from_json(text, "p.json") == plan);
  for (const Change& change : changes()) {
    CAPTURE(change.field);
    Plan changed = plan;
    change.apply(changed);
    CHECK(changed != plan);
    const std::string changed_text = plan_to_json(changed);
    CHECK(changed_text != text);
    CHECK(plan_from_json(changed_text, "p.json") == changed);
  }
}

TEST_CASE("plans with many random changes round-trip") {
  constexpr unsigned kSeed = 20240607;
  CAPTURE(kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    Plan plan = test::sample_plan();
    // Names that a change looks up stay as they are, and a lower16 layout stays on the tile that can have it.
    for (int count = 0; count < 12; ++count) {
      const Change& change = changes()[random() % changes().size()];
      const std::string& field = change.field;
      if (field == "op.id" || field == "barrier.name" || field == "kernel.tiles order" || field == "tile.rows")
        continue;
      if (field == "operand.name" || field == "role.name" || field == "plan.kernels") continue;
      if (field == "kernel.ops order" || field == "op.slices and steps" || field == "role.body") continue;
      change.apply(plan);
    }
    const std::string text = plan_to_json(plan);
    const Plan again = plan_from_json(text, "p.json");
    CHECK(again == plan);
    CHECK(plan_to_json(again) == text);
  }
}

TEST_CASE("an op moves in the plan as its entry moves in the file") {
  const Plan plan = test::sample_plan();
  ordered_json tree = plan_to_tree(plan);
  ordered_json& ops = tree["kernels"][0]["roles"][0]["ops"];
  REQUIRE(ops[1]["id"] == "k.in");
  REQUIRE(ops[2]["id"] == "do.in");
  std::swap(ops[1], ops[2]);
  Plan expected = plan;
  std::swap(expected.kernels[0].roles[0].body[1], expected.kernels[0].roles[0].body[2]);
  CHECK(plan_from_json(tree.dump(), "p.json") == expected);

  // An op in two stretches: they may change places too, although the first carries the op.
  tree = plan_to_tree(plan);
  ordered_json& pairs = tree["kernels"][0]["roles"][2]["ops"];
  REQUIRE(pairs[1]["stretch"] == ordered_json({0, 2}));
  REQUIRE(pairs[2]["stretch"] == ordered_json({2, 4}));
  std::swap(pairs[1], pairs[2]);
  expected = plan;
  std::swap(expected.kernels[0].roles[2].body[1], expected.kernels[0].roles[2].body[2]);
  CHECK(plan_from_json(tree.dump(), "p.json") == expected);
}

TEST_CASE("the order of keys does not matter, and derived keys may be left out") {
  const Plan plan = test::sample_plan();
  const nlohmann::json sorted = nlohmann::json::parse(plan_to_json(plan));
  CHECK(plan_from_json(sorted.dump(), "p.json") == plan);

  ordered_json tree = plan_to_tree(plan);
  for (ordered_json& kernel : tree["kernels"]) {
    for (const char* key : {"chunk", "state_split", "threads"}) REQUIRE(kernel.erase(key) == 1);
    for (const char* key : {"limit_bytes", "headroom_bytes"}) REQUIRE(kernel["smem"].erase(key) == 1);
    for (ordered_json& t : kernel["smem"]["tiles"])
      for (const char* key : {"bytes", "first_use", "last_use", "aliases"}) REQUIRE(t.erase(key) == 1);
  }
  CHECK(plan_from_json(tree.dump(), "p.json") == plan);
}

TEST_CASE("keys of a report are known, and checked for their type") {
  const Plan plan = test::sample_plan();
  ordered_json tree = plan_to_tree(plan);
  tree["shape"] = "qwen3_next";
  tree["budget"] = "default";
  tree["request_key"] = "0123456789abcdef";
  tree["kernels"][0]["flops"] = 1.5e12;
  tree["kernels"][0]["floor_us"] = 12.5;
  tree["kernels"][0]["smem"]["lower_bound_bytes"] = 20000;
  CHECK(plan_from_json(tree.dump(), "p.json") == plan);
  tree["kernels"][0]["flops"] = "many";
  CHECK(read_error(tree.dump()) == "GDR-C07 p.json: /kernels/0/flops: \"many\" is not a number.");
}

TEST_CASE("docs/plan-format.md lists exactly the keys that the reader knows") {
  // What the reader knows is what it says when it refuses a key.
  const auto known_keys = [](ordered_json tree, const std::string& pointer) {
    tree[ordered_json::json_pointer(pointer + "/no_such_key")] = 1;
    const std::string text = read_error(tree.dump());
    const std::string lead = "allowed are ";
    REQUIRE_MESSAGE(text.find("key \"no_such_key\" is unknown; ") != std::string::npos, text);
    std::set<std::string> keys;
    std::istringstream list(text.substr(text.find(lead) + lead.size()));
    for (std::string key; list >> key;) keys.insert(key.substr(0, key.find_last_not_of(".,") + 1));
    return keys;
  };
  std::map<std::string, std::set<std::string>> documented;
  std::ifstream file(GDR_SOURCE_DIR "/docs/plan-format.md");
  REQUIRE(file.is_open());
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (line.starts_with("| `")) documented[section].insert(line.substr(3, line.find('`', 3) - 3));
  }

  ordered_json tree = plan_to_tree(test::sample_plan());
  tree["workload"] = ordered_json::object();
  tree["candidates"] = {{{"name", "x"}, {"verdict", "chosen"}}};
  const std::string kernel = "/kernels/0";
  const std::pair<std::string, std::string> kObjects[] = {
      {"plan", ""},
      {"problem", "/problem"},
      {"tensor", "/tensors/0"},
      {"kernel", kernel},
      {"smem", kernel + "/smem"},
      {"smem tile", kernel + "/smem/tiles/0"},
      {"role", kernel + "/roles/0"},
      {"register tile", kernel + "/roles/1/tiles/0"},
      {"op", kernel + "/roles/0/ops/1"},
      {"barrier", kernel + "/barriers/0"},
      {"workload", "/workload"},
      {"candidate", "/candidates/0"},
  };
  for (const auto& object : kObjects) {
    CAPTURE(object.first);
    CHECK(documented[object.first] == known_keys(tree, object.second));
  }
  // An operand is of a tile or of a tensor.
  std::set<std::string> operand = known_keys(tree, kernel + "/roles/0/ops/1/operands/0");
  operand.merge(known_keys(tree, kernel + "/roles/0/ops/1/operands/1"));
  CHECK(documented["operand"] == operand);
  CHECK(documented.size() == std::size(kObjects) + 1);
}

TEST_CASE("hashes tell plans apart") {
  const Plan plan = test::sample_plan();
  Plan other = plan;
  other.kernels[0].roles[0].registers += 8;
  CHECK(plan_hash(plan) == plan_hash(test::sample_plan()));
  CHECK(plan_hash(plan) != plan_hash(other));
}

TEST_CASE("what is wrong in a plan file is named with its place, value and limit") {
  struct Row {
    std::string name;
    const char* change;   // add, replace or remove
    const char* pointer;  // below /kernels/0 if it begins with '.'
    const char* value;
    const char* expected;
  };
  const Row kRows[] = {
      {"not an object", "replace", "", "[]", "GDR-C07 p.json: top level: an array of 0 is not an object."},
      {"unknown key", "add", "/colour", "1",
       "GDR-C06 p.json: top level: key \"colour\" is unknown; allowed are arch, budget, "},
      {"missing key", "remove", "/arch", "", "GDR-C05 p.json: top level: key 'arch' is missing."},
      {"other version", "replace", "/schema_version", "2",
       "GDR-C08 p.json: /schema_version: 2 is out of range; allowed are whole numbers from 1 to 1."},
      {"chunk as text", "replace", "/chunk", "\"32\"",
       "GDR-C07 p.json: /chunk: \"32\" is not a whole number from 1 to 1024."},
      {"chunk too large", "replace", "/chunk", "4294967328",
       "GDR-C08 p.json: /chunk: 4294967328 is out of range; allowed are whole numbers from 1 to 1024."},
      {"name with a newline", "replace", "/arch", "\"sm\\n120\"",
       "GDR-C08 p.json: /arch: \"sm\\n120\" holds a character that is not printable ASCII."},
      {"empty name", "replace", "/strategy", "\"\"", "GDR-C08 p.json: /strategy: \"\" is empty; a name is needed."},
      {"element type", "replace", "/problem/dtype", "\"bf17\"",
       "GDR-C20 p.json: /problem/dtype: 'bf17' is no element type; allowed are bf16, fp16, fp32, fp64, i32, i64."},
      {"tensor kind", "replace", "/tensors/0/kind", "\"in\"",
       "GDR-C08 p.json: /tensors/0/kind: \"in\" is not known; allowed are input, output, workspace."},
      {"tensor twice", "replace", "/tensors/1/name", "\"k\"",
       "GDR-C08 p.json: /tensors/1/name: \"k\" is the name of an earlier element too; names must differ."},
      {"no grid", "replace", ".grid", "[]",
       "GDR-C08 p.json: /kernels/0/grid: an array of 0 is too short; at least 1 elements are needed."},
      {"grid axis", "replace", ".grid/1", "\"head\"",
       "GDR-C08 p.json: /kernels/0/grid/1: \"head\" is not known; allowed are sequence, v_head, k_head, chunk, "
       "v_slice."},
      {"tile twice", "replace", ".roles/1/tiles/0/name", "\"k\"",
       "GDR-C08 p.json: /kernels/0/roles/1/tiles/0/name: \"k\" is the name of an earlier tile too; names must differ."},
      {"tile order twice", "replace", ".smem/tiles/3/order", "2",
       "GDR-C08 p.json: /kernels/0/smem/tiles/3/order: 2 is already taken by /kernels/0/smem/tiles/2/order."},
      {"tile order with a gap", "replace", ".smem/tiles/3/order", "40",
       "GDR-C08 p.json: /kernels/0/smem/tiles/4/order: 4 leaves a gap: no element has the order 3, of 12 elements."},
      {"parts", "replace", ".smem/tiles/2/parts", "5",
       "GDR-C08 p.json: /kernels/0/smem/tiles/2/parts: 5 does not divide the tile's 64 rows."},
      {"resident", "replace", ".smem/tiles/2/resident", "3",
       "GDR-C08 p.json: /kernels/0/smem/tiles/2/resident: 3 is out of range; allowed are whole numbers from 1 to 2."},
      {"swizzle out of the row", "replace", ".smem/tiles/2/xor_mask", "8",
       "GDR-C08 p.json: /kernels/0/smem/tiles/2/xor_mask: 8 does not fit a panel row of 8 units of 16 bytes: it must "
       "be "
       "smaller, and their number a power of two."},
      {"swizzle of a row of 3 units", "replace", ".smem/tiles/2/panel_cols", "24",
       "GDR-C08 p.json: /kernels/0/smem/tiles/2/xor_mask: 7 does not fit a panel row of 3 units of 16 bytes: it must "
       "be "
       "smaller, and their number a power of two."},
      {"lower16 of a tile that is not square", "add", ".smem/tiles/0/lower16", "true",
       "GDR-C08 p.json: /kernels/0/smem/tiles/0/lower16: true needs a square tile in one part, its side a multiple of "
       "16."},
      {"lower16 panels", "replace", ".smem/tiles/4/panel_cols", "32",
       "GDR-C08 p.json: /kernels/0/smem/tiles/4/panel_cols: 32 must be 16 in a lower16 tile."},
      {"register key on a shared tile", "add", ".smem/tiles/0/grid_rows", "1",
       "GDR-C06 p.json: /kernels/0/smem/tiles/0: key \"grid_rows\" is unknown; allowed are "},
      {"no deal", "replace", ".roles/1/tiles/0/deal_cols", "0",
       "GDR-C08 p.json: /kernels/0/roles/1/tiles/0/deal_cols: 0 is out of range; allowed are whole numbers from 1 to "
       "1024."},
      {"warps", "replace", ".roles/0/warps", "0",
       "GDR-C08 p.json: /kernels/0/roles/0/warps: 0 is out of range; allowed are whole numbers from 1 to 32."},
      {"barrier kind", "replace", ".barriers/0/kind", "\"flag\"",
       "GDR-C08 p.json: /kernels/0/barriers/0/kind: \"flag\" is not known; allowed are mbarrier, named."},
      {"op of no barrier", "replace", ".roles/0/ops/0/barrier", "\"k_free\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/0/barrier: \"k_free\" is no barrier of this kernel."},
      {"wait without a barrier", "remove", ".roles/0/ops/0/barrier", "",
       "GDR-C05 p.json: /kernels/0/roles/0/ops/0: key 'barrier' is missing."},
      {"op kind", "replace", ".roles/0/ops/1/kind", "\"copy\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/kind: \"copy\" is not known; allowed are copy_in, copy_out, load, "
       "store, "
       "mma, map, reduce, scan, tri_inverse, relayout, arrive, wait, sync, fence."},
      {"op order", "replace", ".roles/0/ops/1/order", "-1",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/order: -1 is out of range; allowed are whole numbers from 0 to 1023."},
      {"op order twice", "replace", ".roles/0/ops/1/order", "1",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/order: 1 is already taken by /kernels/0/roles/0/ops/0/order."},
      {"op order past the end", "replace", ".roles/1/ops/0/order", "900",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/0/order: 1 leaves a gap: no element has the order 0, of 39 elements."},
      {"op id twice", "replace", ".roles/0/ops/2/id", "\"k.in\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/2/id: \"k.in\" is the id of another op with a kind; ids must differ, "
       "and "
       "later stretches of an op have id, section and stretch only."},
      {"stretch of an unknown op", "replace", ".roles/2/ops/2/id", "\"Q.mma\"",
       "GDR-C08 p.json: /kernels/0/roles/2/ops/2/id: \"Q.mma\" is no op of this kernel: an op is stated in full, with "
       "its kind, in one of its entries."},
      {"later stretch with operands", "add", ".roles/2/ops/2/operands", "[]",
       "GDR-C06 p.json: /kernels/0/roles/2/ops/2: key \"operands\" is unknown; allowed are id, kind, section, "
       "stretch."},
      {"stretch past the slices", "replace", ".roles/2/ops/2/stretch/1", "5",
       "GDR-C08 p.json: /kernels/0/roles/2/ops/2/stretch/1: 5 is out of range; allowed are whole numbers from 0 to 4."},
      {"empty stretch", "replace", ".roles/2/ops/2/stretch/0", "4",
       "GDR-C08 p.json: /kernels/0/roles/2/ops/2/stretch/1: 4 is not above the beginning of the range, 4."},
      {"prologue after body", "add", ".roles/1/ops/2/section", "\"prologue\"",
       "GDR-C08 p.json: /kernels/0/roles/1/ops/2: an object of the prologue stands after ops of a later section."},
      {"expression", "replace", ".roles/2/ops/3/expr", "\"P[i,j] = exp(\"",
       "GDR-C08 p.json: /kernels/0/roles/2/ops/3/expr: \"P[i,j] = exp(\" is no expression: GDR-S01 "},
      {"expression about nothing", "replace", ".roles/2/ops/3/expr", "\"P[i,j] = P[i,j] * be[i]\"",
       "GDR-C08 p.json: /kernels/0/roles/2/ops/3/expr: \"P[i,j] = P[i,j] * be[i]\" speaks of be, which is no operand "
       "of "
       "this op."},
      {"unknown tile", "replace", ".roles/0/ops/1/operands/0/tile", "\"kk\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/operands/0/tile: \"kk\" is no tile of this kernel."},
      {"unknown tensor", "replace", ".roles/0/ops/1/operands/1/tensor", "\"kk\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/operands/1/tensor: \"kk\" is no tensor of this plan."},
      {"tile and tensor", "add", ".roles/0/ops/1/operands/1/tile", "\"k\"",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/operands/1: an object has a tile and a tensor; an operand is one of "
       "them."},
      {"empty rectangle", "replace", ".roles/0/ops/1/operands/0/rows/1", "0",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/operands/0/rows/1: 0 is not above the beginning of the range, 0."},
      {"rectangle of three", "add", ".roles/0/ops/1/operands/0/rows/2", "4",
       "GDR-C08 p.json: /kernels/0/roles/0/ops/1/operands/0/rows: an array of 3 is too long; at most 2 elements are "
       "allowed."},
      // Derived keys that disagree.
      {"threads", "replace", ".threads", "256",
       "GDR-S10 p.json: /kernels/0/threads: the file says 256, but its tiles, roles and operations make it 224. "
       "Correct "
       "this key or leave it out."},
      {"kernel chunk", "replace", ".chunk", "64", "GDR-S10 p.json: /kernels/0/chunk: the file says 64, but "},
      {"kernel split", "replace", ".state_split", "1", "GDR-S10 p.json: /kernels/0/state_split: the file says 1, but "},
      {"limit", "replace", ".smem/limit_bytes", "101376",
       "GDR-S10 p.json: /kernels/0/smem/limit_bytes: the file says 101376, but its tiles, roles and operations make it "
       "24576."},
      {"headroom", "replace", ".smem/headroom_bytes", "2249",
       "GDR-S10 p.json: /kernels/0/smem/headroom_bytes: the file says 2249, but its tiles, roles and operations make "
       "it "
       "2248."},
      {"tile bytes", "replace", ".smem/tiles/4/bytes", "2048",
       "GDR-S10 p.json: /kernels/0/smem/tiles/4/bytes: the file says 2048, but its tiles, roles and operations make it "
       "1536."},
      {"moved tile", "replace", ".smem/tiles/6/offset", "20000",
       "GDR-S10 p.json: /kernels/0/smem/tiles/1/aliases: the file says [e], but its tiles, roles and operations make "
       "it "
       "[]."},
      {"first use", "replace", ".smem/tiles/0/first_use", "\"P.mma\"",
       "GDR-S10 p.json: /kernels/0/smem/tiles/0/first_use: the file says \"P.mma\", but its tiles, roles and "
       "operations "
       "make it \"k.in\"."},
      {"last use", "replace", ".smem/tiles/0/last_use", "null",
       "GDR-S10 p.json: /kernels/0/smem/tiles/0/last_use: the file says null, but its tiles, roles and operations make "
       "it \"dS.mma\"."},
  };
  const ordered_json sample = plan_to_tree(test::sample_plan());
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    std::string pointer = row.pointer;
    if (pointer.starts_with('.')) pointer = "/kernels/0/" + pointer.substr(1);
    ordered_json patch = {{{"op", row.change}, {"path", pointer}}};
    if (row.value[0] != '\0') patch[0]["value"] = ordered_json::parse(row.value);
    const std::string text = read_error(sample.patch(patch).dump());
    CHECK(text.substr(0, std::string(row.expected).size()) == row.expected);
  }
  CHECK(read_error("{\"arch\": 1, \"arch\": 2}") == "GDR-C04 p.json: /arch: key is given twice.");
  CHECK(read_error("").starts_with("GDR-C02 p.json: line 1, column 1: "));
  CHECK(read_error(std::string(5'000'000, ' ')) == "GDR-C01 p.json: more than the limit of 4194304 bytes.");
}

TEST_CASE("every text cut short or with a byte changed is a plan or an error") {
  const std::string text = plan_to_json(test::sample_plan());
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  int num_errors = 0;
  const auto try_text = [&](const std::string& changed) {
    try {
      (void)plan_from_json(changed, "p.json");
    } catch (const Error& error) {
      ++num_errors;
      if (error.kind() != ErrorKind::config) FAIL(error.what());
    }
  };
  for (int round = 0; round < 200; ++round) try_text(text.substr(0, random() % text.size()));
  CHECK(num_errors == 200);
  for (int round = 0; round < 600; ++round) {
    std::string changed = text;
    changed[random() % text.size()] = "0123456789-\"[]{},:aek. "[random() % 23];
    try_text(changed);
  }
  CHECK(num_errors > 400);
}

TEST_CASE("a plan that a file cannot say is a fault of ours") {
  struct Row {
    std::string name;
    std::function<void(Plan&)> spoil;
    const char* expected;
  };
  const Row kRows[] = {
      {"op in no list", [](Plan& p) { p.kernels[0].roles[0].body.pop_back(); },
       "op arrive.h1_arrived.loader is in no role"},
      {"step of no op", [](Plan& p) { p.kernels[0].roles[0].body[0].op = 900; },
       "a step names an op that does not exist"},
      {"id twice", [](Plan& p) { p.kernels[0].ops[3].id = "k.in"; }, "two ops have the id k.in"},
      {"role twice", [](Plan& p) { p.kernels[0].roles[0].name = "pairs"; }, "two roles pairs"},
      {"tile of no role", [](Plan& p) { tile(p, "u").role = "keys"; }, "register tile u belongs to no role"},
      {"staged registers", [](Plan& p) { tile(p, "u").stages = 2; }, "a register tile has shared-memory fields"},
      {"dealt shared tile", [](Plan& p) { tile(p, "k").reg.grid_rows = 2; },
       "a shared-memory tile has register fields"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    Plan plan = test::sample_plan();
    row.spoil(plan);
    const std::string text = test::error_text(ErrorKind::internal, [&] { (void)plan_to_json(plan); });
    CHECK_MESSAGE(text.find(row.expected) != std::string::npos, text);
  }
}
