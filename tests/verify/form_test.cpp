// Plans that are not well formed, or whose bytes lie where they must not, are refused under the code of what is wrong.
#include <doctest/doctest.h>

#include <climits>

#include "rows.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

Plan base() { return pipeline(2); }

Operand& operand_of(Plan& plan, const char* id, std::size_t i) { return op_of(plan, id).operands[i]; }

// A lower-triangular product: l is kept as its lower blocks.
Plan triangular() {
  Draft d;
  d.tensor("l", TensorKind::input, TensorIndex::chunk, 32, 32);
  d.tensor("x", TensorKind::input, TensorIndex::token, 32, 64);
  d.tensor("y", TensorKind::output, TensorIndex::token, 32, 64);
  d.role("loader", 1);
  d.role("worker", 2);
  d.smem("l", 32, 32, {.lower16 = true});
  d.smem("x", 32, 64);
  d.acc("worker", "s", 32, 64, 2, 1);
  d.mbarrier("arrived", 1);
  d.mbarrier("free", 2);
  d.wait("loader", "free", 1);
  d.copy_in("loader", "l_in", "l", "l");
  d.copy_in("loader", "x_in", "x", "x");
  d.arrive("loader", "arrived", true);
  d.wait("worker", "arrived");
  d.mma("worker", "s_mma", "s", "l", "x").mask_a = Mask::lower;
  d.arrive("worker", "free");
  d.copy_out("worker", "y_out", "y", "s");
  return d.finish();
}

// Registers to shared memory, the diagonal blocks inverted there, and back.
Plan inverse() {
  Draft d(LoopKind::once);
  d.tensor("m", TensorKind::input, TensorIndex::chunk, 64, 64, DType::fp32);
  d.tensor("y", TensorKind::output, TensorIndex::chunk, 64, 64, DType::fp32);
  d.role("worker", 2);
  d.smem("m", 64, 64, {}, DType::fp32);
  d.smem("w", 64, 64, {}, DType::fp32);
  d.acc("worker", "r", 64, 64, 2, 1);
  d.meeting("meet", 1, 64);
  OpKind load = OpKind::load, store = OpKind::store;
  d.op("worker", load, "m_read", {"r", "m"}).operands[1].is_tensor = true;
  d.op("worker", store, "w_store", {"w", "r"});
  d.op("worker", store, "m_store", {"m", "r"});
  d.sync("worker", "meet");
  d.op("worker", OpKind::tri_inverse, "w_inverse", {"w", "m"});
  d.sync("worker", "meet");
  d.op("worker", load, "w_load", {"r", "w"});
  d.copy_out("worker", "y_out", "y", "r");
  return d.finish();
}

}  // namespace

TEST_CASE("the kernels of this file are correct") {
  CHECK(verify(triangular()).text() == "");
  CHECK(verify(inverse()).text() == "");
}

TEST_CASE("malformed kernels are refused") {
  const Row rows[] = {
      // names
      {"operand names no tile", base, [](Plan& p) { operand_of(p, "p_store", 0).name = "q"; }, "GDR-V01",
       {"`p_store` names tile `q`"}},
      {"operand names no tensor", base, [](Plan& p) { operand_of(p, "x_in", 1).name = "q"; }, "GDR-V01",
       {"`x_in` names tensor `q`"}},
      {"op names no barrier", base, [](Plan& p) { op_of(p, "x_free.wait.loader").barrier = "q"; }, "GDR-V01",
       {"`x_free.wait.loader` names barrier `q`"}},
      {"two ops of one name", base, [](Plan& p) { op_of(p, "s_from_p").id = "s_from_x"; }, "GDR-V01",
       {"two ops are called `s_from_x`"}},
      {"two tiles of one name", base, [](Plan& p) { tile_of(p, "p").name = "x"; }, "GDR-V01", {"two tiles"}},
      {"register tile of no role", base, [](Plan& p) { tile_of(p, "s").role = "nobody"; }, "GDR-V01",
       {"register tile s", "`nobody`"}},
      {"a name is missing", base, [](Plan& p) { barrier_of(p, "x_free").name = ""; }, "GDR-V01", {"has no name"}},
      // operands
      {"operand too many", base, [](Plan& p) { op_of(p, "p_store").operands.push_back(operand_of(p, "p_store", 1)); },
       "GDR-V02", {"`p_store` (store, role consumer) has 3 operands"}},
      {"no operands", base, [](Plan& p) { op_of(p, "s_from_x").operands.clear(); }, "GDR-V02", {"has 0 operands"}},
      {"store from shared memory", base, [](Plan& p) { operand_of(p, "p_store", 1) = operand_of(p, "s_from_x", 1); },
       "GDR-V02", {"operand 1 (x) in shared memory"}},
      {"destination that is read", base, [](Plan& p) { operand_of(p, "p_store", 0).access = Access::read; }, "GDR-V02",
       {"operand 0 (p) with access read"}},
      {"source that is written", base, [](Plan& p) { operand_of(p, "p_store", 1).access = Access::write; }, "GDR-V02",
       {"operand 1 (s) with access write"}},
      {"mma of two types",
       base,
       [](Plan& p) { tile_of(p, "p").dtype = DType::fp16; operand_of(p, "s_from_p", 1) = operand_of(p, "s_from_x", 1);
         operand_of(p, "s_from_p", 1).cols = {0, 32}; },
       "GDR-V02",
       {"multiplies bf16 by fp16"}},
      {"asynchronous copy that converts", base, [](Plan& p) { p.tensors[0].dtype = DType::fp32; }, "GDR-V02",
       {"copies x (fp32) to x (bf16); cp_async cannot convert"}},
      {"copy without mechanism", base, [](Plan& p) { op_of(p, "x_in").mechanism = Mechanism::none; }, "GDR-V02",
       {"`x_in`", "mechanism none"}},
      {"bulk copy through the generic proxy", bulk_store, [](Plan& p) { operand_of(p, "y_out", 1).proxy = Proxy::generic; },
       "GDR-V02", {"`y_out`", "generic proxy", "bulk"}},
      {"register tile transposed", base, [](Plan& p) { operand_of(p, "p_store", 1).transposed = true; }, "GDR-V02",
       {"transposes register tile s"}},
      {"accumulator as left operand", base, [](Plan& p) {
         operand_of(p, "s_from_p", 1) = operand_of(p, "p_store", 1);
       }, "GDR-V02", {"multiplies by accumulator s"}},
      {"tile with fields of a tensor", base, [](Plan& p) { operand_of(p, "p_store", 0).head_index = 1; }, "GDR-V02",
       {"fields of tensors"}},
      {"vector of which one partial row is read", vectors, [](Plan& p) { operand_of(p, "run_scan", 1).rows = {0, 1}; },
       "GDR-V02", {"reads row as a vector"}},
      // shapes
      {"mma whose contractions differ", base, [](Plan& p) { operand_of(p, "s_from_x", 1).cols = {0, 32}; }, "GDR-V03",
       {"multiplies x (32 x 32) by x (64 x 32) into s (32 x 32)"}},
      {"copy of another shape", base, [](Plan& p) { operand_of(p, "x_in", 1).rows = {0, 16}; }, "GDR-V03",
       {"x as 32 x 64 and x as 16 x 64"}},
      {"slices that are no multiple of the instruction", base, [](Plan& p) {
         op_of(p, "s_from_x").slices = 8;
         for (Step& step : role_of(p, "consumer").body)
           if (kernel_of(p).ops[static_cast<std::size_t>(step.op)].id == "s_from_x") step.slice_end = 8;
       }, "GDR-V03", {"contraction of 64 into 8 slices"}},
      {"parts that are not equal", split_tile, [](Plan& p) { tile_of(p, "h").parts = 3; }, "GDR-V03", {"tile h", "3 parts"}},
      {"no stage", base, [](Plan& p) { tile_of(p, "x").stages = 0; }, "GDR-V03", {"tile x has 0 stages"}},
      {"no rows", base, [](Plan& p) { tile_of(p, "x").rows = 0; }, "GDR-V03", {"tile x is 0 x 64"}},
      {"lower blocks of a tile that is not square", triangular, [](Plan& p) { tile_of(p, "l").cols = 64; }, "GDR-V03",
       {"tile l of 32 x 64", "lower 16 x 16 blocks"}},
      {"elementwise on another rectangle", vectors, [](Plan& p) {
         operand_of(p, "col_sum", 1).cols = {0, 32};
         operand_of(p, "col_sum", 0).cols = {0, 64};
       }, "GDR-V03", {"`col_sum`", "elements 0..64 of col"}},
      {"partial sums without a row for each warp", vectors, [](Plan& p) { tile_of(p, "all").rows = 3; operand_of(p, "all_sum", 0).rows = {0, 3}; operand_of(p, "run_scan", 3).rows = {0, 3}; },
       "GDR-V03", {"`all_sum`", "axis all makes 4 partial rows"}},
      {"inverse off the diagonal", inverse, [](Plan& p) { operand_of(p, "w_inverse", 1).cols = {16, 48}; operand_of(p, "w_inverse", 1).rows = {0, 32};
         operand_of(p, "w_inverse", 0).rows = operand_of(p, "w_inverse", 0).cols = {0, 32}; },
       "GDR-V03", {"`w_inverse`", "16 x 16 blocks on the diagonal"}},
      // register tiles
      {"warp grid of another size than the role", base, [](Plan& p) { tile_of(p, "s").reg.grid_rows = 1; }, "GDR-V04",
       {"tile s has warp grid 1 x 2; role consumer has 4 warps"}},
      {"columns that cannot be dealt", base, [](Plan& p) { tile_of(p, "s").reg.deal_cols = 12; }, "GDR-V04",
       {"tile s", "runs of 12"}},
      {"register tile of another role", base, [](Plan& p) {
         tile_of(p, "s").role = "loader";
         tile_of(p, "s").reg = {RegKind::acc, 2, 1, 32};
       }, "GDR-V04", {"uses register tile s of role loader"}},
      {"left operand that other warps own", split_tile, [](Plan& p) { tile_of(p, "xr").reg = {RegKind::a, 1, 2, 32}; },
       "GDR-V04", {"of xr over the whole contraction in warp 0"}},
      {"accumulators of 16 bits", base, [](Plan& p) { tile_of(p, "s").dtype = DType::bf16; }, "GDR-V04", {"tile s", "bf16"}},
      // steps
      {"op in no list", base, [](Plan& p) { role_of(p, "consumer").body.pop_back(); }, "GDR-V05",
       {"`y_out` stands in no role's list"}},
      {"op in two lists", base, [](Plan& p) { role_of(p, "loader").body.push_back(role_of(p, "consumer").body.back()); },
       "GDR-V05", {"`y_out` stands in two lists (roles loader and consumer)"}},
      {"op that runs twice", base, [](Plan& p) { role_of(p, "consumer").body.push_back(role_of(p, "consumer").body.back()); },
       "GDR-V05", {"slices 0 to 1 of op `y_out`, where 1 of its 1 slices are done"}},
      {"slices left out", base, [](Plan& p) { op_of(p, "s_from_x").slices = 4; }, "GDR-V05",
       {"`s_from_x` stops after 1 of 4 slices"}},
      {"step of no op", base, [](Plan& p) { role_of(p, "consumer").body.push_back({99, 0, 1}); }, "GDR-V05", {"op number 99"}},
      {"shared memory in the prologue", base, [](Plan& p) {
         Role& r = role_of(p, "consumer");
         r.prologue.push_back(r.body[4]);
         r.body.erase(r.body.begin() + 4);
       }, "GDR-V05", {"prologue or epilogue of role consumer"}},
      {"slices of an op that has none", base, [](Plan& p) { op_of(p, "p_store").slices = 2; }, "GDR-V05",
       {"`p_store` (store) has 2 slices"}},
      // expressions
      {"expression that does not parse", vectors, [](Plan& p) { op_of(p, "out_map").expr = "out[i] = run[i]*"; }, "GDR-V06",
       {"`out_map`", "GDR-S01"}},
      {"expression that reads no operand", vectors, [](Plan& p) { op_of(p, "out_map").expr = "out[i] = run[i]*all[0]*gam[i]"; },
       "GDR-V06", {"reads all in its expression, which is no operand"}},
      {"operand that the expression does not read", vectors, [](Plan& p) { op_of(p, "out_map").expr = "out[i] = run[i]"; },
       "GDR-V06", {"has operand gam, which its expression does not read"}},
      {"expression for another target", vectors, [](Plan& p) { op_of(p, "out_map").expr = "run[i] = gam[i]"; }, "GDR-V06",
       {"assigns run; its first operand is out"}},
      {"running sum outside a scan", vectors, [](Plan& p) { op_of(p, "out_map").expr = "out[i] = prefix(run[i])*gam[i]"; },
       "GDR-V06", {"uses prefix, which belongs to scan"}},
      {"triangle in a vector", vectors, [](Plan& p) { op_of(p, "out_map").expr = "out[i] = select(i>=j, run[i], gam[i])"; },
       "GDR-V06", {"condition on i and j"}},
      {"target read and not said", vectors, [](Plan& p) { op_of(p, "s_map").operands[0].access = Access::write; }, "GDR-V06",
       {"reads its target s and has access write"}},
      {"sum under the wrong index", vectors, [](Plan& p) { op_of(p, "row_sum").expr = "row[j] = gam[j]*s[i,j]"; }, "GDR-V06",
       {"does not belong to axis cols"}},
      {"contraction index outside a scale", vectors, [](Plan& p) { op_of(p, "row_sum").expr = "row[i] = gam[l]*s[i,j]"; },
       "GDR-V06", {"index that has no meaning here"}},
      // masks and where
      {"mask on a tile that is not square", base, [](Plan& p) { op_of(p, "s_from_x").mask_a = Mask::lower; }, "GDR-V07",
       {"masks x [32 x 64]"}},
      {"mask on a copy", base, [](Plan& p) { op_of(p, "x_in").mask_d = Mask::lower; }, "GDR-V07", {"`x_in`", "mask"}},
      {"rows past the end of the sequence", base, [](Plan& p) { op_of(p, "x_in").where = Where::all; }, "GDR-V07",
       {"`x_in`", "token tensor x", "row_valid"}},
      {"where on an op that touches no tensor", base, [](Plan& p) { op_of(p, "p_store").where = Where::row_valid; }, "GDR-V07",
       {"`p_store`", "row_valid"}},
      // barriers
      {"named barrier with mbarrier's ops", base, [](Plan& p) { op_of(p, "consumer_meet1").kind = OpKind::wait; }, "GDR-V08",
       {"`consumer_meet1` (wait) works on named barrier"}},
      {"sync on an mbarrier", base, [](Plan& p) { op_of(p, "consumer_meet1").barrier = "x_free"; }, "GDR-V08",
       {"`consumer_meet1` (sync) works on mbarrier barrier x_free"}},
      {"hardware id 0", base, [](Plan& p) { barrier_of(p, "consumer_meet").id = 0; }, "GDR-V08", {"hardware id 0"}},
      {"hardware id twice", base, [](Plan& p) {
         kernel_of(p).barriers.push_back(barrier_of(p, "consumer_meet"));
         kernel_of(p).barriers.back().name = "other";
       }, "GDR-V08", {"barrier other has hardware id 1, which another one has"}},
      {"thread count of another role", base, [](Plan& p) { barrier_of(p, "consumer_meet").arrivals = 96; }, "GDR-V08",
       {"consumer_meet counts 96 threads", "128 threads"}},
      {"named barrier of two roles", base, [](Plan& p) {
         Op op = op_of(p, "consumer_meet1");
         op.id = "stranger";
         kernel_of(p).ops.push_back(op);
         role_of(p, "loader").body.push_back({static_cast<int>(kernel_of(p).ops.size()) - 1, 0, 1});
       }, "GDR-V08", {"used by roles consumer and loader"}},
      {"wait for the future", base, [](Plan& p) { op_of(p, "x_arrived.wait.consumer").distance = -1; }, "GDR-V08",
       {"has distance -1"}},
      {"barrier without stages", base, [](Plan& p) { barrier_of(p, "x_free").stages = 0; }, "GDR-V08", {"x_free has 0 stages"}},
      {"copy that names a barrier", base, [](Plan& p) { op_of(p, "x_in").barrier = "x_free"; }, "GDR-V08", {"`x_in`", "does nothing"}},
      // threads and registers
      {"too many threads", base, [](Plan& p) { role_of(p, "loader").warps = 30; barrier_of(p, "x_arrived").arrivals = 30; },
       "GDR-V09", {"1088 threads"}},
      {"registers not in eights", base, [](Plan& p) { role_of(p, "loader").registers = 63; }, "GDR-V09",
       {"role loader has 63 registers"}},
      {"more registers than an SM has", base, [](Plan& p) {
         for (Role& role : kernel_of(p).roles) role.registers = 256;
         kernel_of(p).launch_registers = 256;
         kernel_of(p).blocks_per_sm = 2;
       }, "GDR-V09", {"2 block(s)", "98304", "32768 too many"}},
      {"registers that the threads do not start with", base, [](Plan& p) { kernel_of(p).launch_registers = 72; }, "GDR-V09",
       {"role loader has 64 registers a thread, but without setmaxnreg it keeps the 72"}},
      {"registers at launch not in eights", base, [](Plan& p) { kernel_of(p).launch_registers = 63; }, "GDR-V09",
       {"a thread starts with 63 registers"}},
      {"roles that take more registers than the block has", base, [](Plan& p) {
         kernel_of(p).setmaxnreg = true;
         role_of(p, "loader").warps = 4;
         role_of(p, "loader").registers = 72;
       }, "GDR-V09", {"the roles want 17408 registers, the block starts with 16384"}},
      {"setmaxnreg on half a warpgroup", base, [](Plan& p) { kernel_of(p).setmaxnreg = true; }, "GDR-V09",
       {"the block has 6 warps; setmaxnreg works on whole warpgroups"}},
      {"setmaxnreg and roles that share a warpgroup", base, [](Plan& p) {
         kernel_of(p).setmaxnreg = true;
         role_of(p, "consumer").warps = 6;
         role_of(p, "consumer").registers = 72;
       }, "GDR-V09", {"role consumer has 72 registers a thread and shares a warpgroup with a role that has 64"}},
      // bounds
      {"rectangle outside its tile", base, [](Plan& p) {
         operand_of(p, "x_in", 0).cols = {8, 72};
       }, "GDR-V16", {"`x_in`", "columns 8..72 of x", "64 columns"}},
      {"rectangle in another part", split_tile, [](Plan& p) { operand_of(p, "s_from_h1", 2).part = 0; }, "GDR-V16",
       {"`s_from_h1`", "rows 32..64", "rows 0..32 in part 0"}},
      {"rectangle of extreme numbers", base, [](Plan& p) { operand_of(p, "x_in", 0).rows = {INT_MAX, INT_MIN}; }, "GDR-V16",
       {"`x_in`"}},
      {"part that does not exist", split_tile, [](Plan& p) { operand_of(p, "s_from_h1", 2).part = 2; }, "GDR-V16",
       {"part 2 of h, which has 2"}},
      {"blocks that a tile does not keep", triangular, [](Plan& p) { op_of(p, "s_mma").mask_a = Mask::none; }, "GDR-V16",
       {"`s_mma`", "above the diagonal of l"}},
      {"vector element outside the operand", vectors, [](Plan& p) { operand_of(p, "s_map", 1).cols = {0, 63}; }, "GDR-V16",
       {"`s_map`", "of gam"}},
      {"layout that leaves its slot", base, [](Plan& p) { tile_of(p, "x").smem.xor_mask = 16; }, "GDR-V16",
       {"tile x has element", "outside its slot"}},
      {"layout that folds elements",
       base,
       [](Plan& p) { tile_of(p, "p").smem = {32, 4, 0, false}; },
       "GDR-V16",
       {"tile p has element", "where another element lies"}},
      // placement
      {"tile past the end", base, [](Plan& p) { tile_of(p, "p").offset_bytes += 1024; }, "GDR-V17", {"tile p ends at byte"}},
      {"tile without a place", base, [](Plan& p) { tile_of(p, "p").offset_bytes = -1; }, "GDR-V17", {"tile p has no offset"}},
      {"tile at a crooked address", base, [](Plan& p) {
         tile_of(p, "p").offset_bytes += 64;
         kernel_of(p).barrier_offset_bytes += 64;
         kernel_of(p).smem_bytes += 64;
         p.smem_limit_bytes += 64;
       }, "GDR-V17", {"tile p has a slot at byte 8256", "multiple of 128"}},
      {"more than the budget", base, [](Plan& p) { p.smem_limit_bytes -= 100; }, "GDR-V17", {"100 B too many"}},
      {"barriers on a tile", base, [](Plan& p) { kernel_of(p).barrier_offset_bytes -= 8; }, "GDR-V17", {"lie on tile p"}},
      {"barriers past the end", base, [](Plan& p) { kernel_of(p).barrier_offset_bytes += 8; }, "GDR-V17", {"the barriers"}},
      {"an absurd amount of memory", base, [](Plan& p) { kernel_of(p).smem_bytes = INT_MAX; }, "GDR-V17", {"2147483647 B"}},
      // tensors
      {"output written twice", base, [](Plan& p) {
         Op op = op_of(p, "y_out");
         op.id = "again";
         kernel_of(p).ops.push_back(op);
         role_of(p, "consumer").body.push_back({static_cast<int>(kernel_of(p).ops.size()) - 1, 0, 1});
       }, "GDR-V18", {"`again` writes tensor y", "`y_out`"}},
      {"state written in every iteration", base, [](Plan& p) {
         p.tensors[1].index = TensorIndex::sequence;
         op_of(p, "y_out").where = Where::all;
       }, "GDR-V18", {"`y_out`", "every iteration"}},
      {"input written", base, [](Plan& p) { p.tensors[1].kind = TensorKind::input; }, "GDR-V18", {"it is an input"}},
      {"output that nobody writes", base, [](Plan& p) {
         p.tensors.push_back(p.tensors[1]);
         p.tensors.back().name = "z";
       }, "GDR-V18", {"no kernel writes output tensor z"}},
      {"output written in part", base, [](Plan& p) {
         operand_of(p, "y_out", 0).rows = {0, 16};
         operand_of(p, "y_out", 1).rows = {0, 16};
       }, "GDR-V18", {"writes 512 of the 1024 elements"}},
      {"workspace that no earlier kernel writes", base, [](Plan& p) { p.tensors[0].kind = TensorKind::workspace; }, "GDR-V18",
       {"`x_in` reads tensor x (workspace), which no earlier kernel writes"}},
      {"k-head output written by every v-head", base, [](Plan& p) {
         p.tensors[1].heads = HeadAxis::k_head;
         p.problem.group = 2;
       }, "GDR-V18", {"blocks of 2 v-heads"}},
      {"chunk tensor outside the loop", base, [](Plan& p) {
         Op op = op_of(p, "y_out");
         op.id = "y_load";
         op.kind = OpKind::load;
         op.mechanism = Mechanism::none;
         std::swap(op.operands[0], op.operands[1]);
         op.operands[0].access = Access::write;
         op.operands[1].access = Access::read;
         op.operands[1].name = "x";
         op.operands[1].cols = {0, 32};
         kernel_of(p).ops.push_back(op);
         role_of(p, "consumer").prologue.push_back({static_cast<int>(kernel_of(p).ops.size()) - 1, 0, 1});
       }, "GDR-V18", {"`y_load` reads tensor x", "there is no chunk here"}},
      {"head that the group does not have", base, [](Plan& p) { operand_of(p, "y_out", 0).head_index = 1; }, "GDR-V18",
       {"head index 1; there are 1"}},
  };
  for (const Row& row : rows) check_found(row);
}

TEST_CASE("every code has a title of its own") {
  std::vector<std::string> titles;
  for (int i = 1; i <= 18; ++i) {
    titles.emplace_back(finding_title(i < 10 ? "GDR-V0" + std::to_string(i) : "GDR-V" + std::to_string(i)));
    CHECK(titles.back() != "finding");
  }
  std::sort(titles.begin(), titles.end());
  CHECK(std::adjacent_find(titles.begin(), titles.end()) == titles.end());
  CHECK(finding_title("GDR-V99") == "finding");
}

TEST_CASE("a plan of no kernels has nothing to prove") {
  CHECK(verify(Plan{}).ok());
  CHECK(verify(Plan{}).kernels == 0);
}
