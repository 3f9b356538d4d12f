// Every fault that a run reports, planted and found by name. Where the order of warps decides who stumbles first, the
// text is compared in part.
#include "core/error.hpp"
#include "harness.hpp"

using namespace gdr;
using namespace harness;
using enum TensorKind;

namespace {

Plan pipeline_plan(const Kernel& kernel) { return plan_of(kPipelineRows, pipeline_tensors(), {kernel}); }

// Takes the first step of this op out of the role's body.
void drop(Kernel& kernel, const std::string& role, OpKind kind, const std::string& barrier = "") {
  for (Role& r : kernel.roles)
    for (std::size_t at = 0; r.name == role && at < r.body.size(); ++at) {
      const Op op = kernel.ops[static_cast<std::size_t>(r.body[at].op)];
      if (op.kind != kind || op.barrier != barrier) continue;
      const int index = r.body[at].op;
      r.body.erase(r.body.begin() + static_cast<std::ptrdiff_t>(at));
      kernel.ops.erase(kernel.ops.begin() + index);
      for (Role& other : kernel.roles)
        for (auto* list : {&other.prologue, &other.body, &other.epilogue})
          for (Step& step : *list) step.op -= step.op > index ? 1 : 0;
      return;
    }
  FAIL("nothing to drop");
}

Op& op_named(Kernel& kernel, const std::string& id) {
  for (Op& op : kernel.ops)
    if (op.id == id) return op;
  FAIL("no op ", id);
  return kernel.ops[0];
}

void check_fault(const Plan& plan, const LaunchShape& shape, const Tensors& inputs,
                 const std::vector<std::string>& parts) {
  const std::string text = fault_of(plan, shape, inputs);
  CAPTURE(text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

// One role of `warps` warps on chunk tensors x -> y of 16 x 16, fp32; the test writes the ops.
struct Single {
  std::vector<TensorSpec> tensors = {chunk_tensor("x", input, 16, 16, DType::fp32),
                                     chunk_tensor("y", output, 16, 16, DType::fp32)};
  KernelBuilder build{"single", {GridAxis::sequence, GridAxis::v_head}, LoopKind::chunks_ascending, tensors};

  explicit Single(int warps) {
    build.role("all", warps);
    build.smem("s", 16, 16, DType::fp32);
    build.smem("t", 16, 16, DType::fp32);
    build.acc("all", "r", 16, 16, {1, 1});
  }
  Plan plan() {
    Kernel kernel = std::move(build).finish();
    place(kernel);
    return plan_of(16, tensors, {kernel});
  }
};

const Tensors& single_inputs() {
  static const Tensors tensors = {{"x", noise(DType::fp32, {2, 1, 16, 16}, 70)}};
  return tensors;
}

}  // namespace

TEST_CASE("no fault, no text: the pipeline as it should be") {
  CHECK(fault_of(pipeline_plan(pipeline(2)), one_sequence(100), pipeline_inputs(100)) == "");
}

TEST_CASE("deadlock names everyone who waits and what for") {
  Kernel kernel = pipeline(2);
  drop(kernel, "adder", OpKind::arrive, "x_free");
  InterpOptions options;
  options.order = Order::round_robin;
  std::string wanted =
      "GDR-I03 interp: kernel test_pipeline, block (sequence 0, v_head 0), role loader, warp 0, op x_free.wait5, "
      "iteration 2: deadlock; no warp can run. They wait for:";
  for (int warp = 0; warp < 3; ++warp)
    wanted += fmt::format(
        "\n  loader {} at op x_free.wait5, iteration 2: phase 0 of barrier x_free (copy 0: 0 phases complete, 0 of 2 "
        "arrivals)",
        warp);
  for (int warp = 0; warp < 2; ++warp)
    wanted += fmt::format(
        "\n  adder {} at op x_arrived.wait7, iteration 2: phase 1 of barrier x_arrived (copy 0: 1 phases complete, 0 "
        "of 3 arrivals)",
        warp);
  wanted += "\n  (order round robin, landing late, seed 1)";
  CHECK_THROWS_WITH_AS(run(pipeline_plan(kernel), one_sequence(100), pipeline_inputs(100), options), wanted.c_str(),
                       Error);
}

TEST_CASE("deadlock at a meeting of too many warps") {
  Single single(2);
  single.build.load("all", "r", View("x").global(), "");
  Kernel kernel = single.plan().kernels[0];
  Barrier meet;
  meet.name = "meet";
  meet.kind = BarrierKind::named;
  meet.arrivals = 96;
  kernel.barriers.push_back(meet);
  insert(kernel, "all", -1, sync("meet"));
  check_fault(plan_of(16, single.tensors, {kernel}), one_sequence(32), single_inputs(),
              {"GDR-I03", "all 0 at op meet.sync1, iteration 0: barrier meet (64 of 96 threads arrived)"});
}

TEST_CASE("reads of shared memory that hold something else than the schedule means") {
  struct Row {
    std::string name;
    void (*write)(Single&);
    std::vector<std::string> text;
  };
  const std::string at = " test_single, block (sequence 0, v_head 0), role all, warp 0, op ";
  const Row rows[] = {
      {"never written",
       [](Single& s) { s.build.load("all", "r", View("s"), ""); },
       {"GDR-I04 interp: kernel", at + "r.load, iteration 0: reads s (0, 0), bytes 0 to 3: never written."}},
      {"half of it written",
       [](Single& s) {
         s.build.map("all", "r[i,j] = 1", "");
         s.build.store("all", View("s").rows(0, 8), View("r").rows(0, 8), "");
         s.build.load("all", "r", "s", "");
       },
       {"GDR-I04 interp: kernel", at + "r.load, iteration 0: reads s (8, 0), bytes 512 to 515: never written."}},
      {"a copy in flight",
       [](Single& s) {
         s.build.copy_in("all", "s", "x", "", Where::all);
         s.build.load("all", "r", "s", "");
       },
       {"GDR-I05 interp: kernel",
        at + "r.load, iteration 0: reads s (0, 0), bytes 0 to 3: a copy into it is in flight. (order "
             "random, landing late, seed 1)"}},
      {"what another op wrote into the same tile",
       [](Single& s) {
         s.build.acc("all", "one", 16, 16, {1, 1});
         s.build.map("all", "one[i,j] = 1", "");
         s.build.store("all", "s", "one", "");
         s.build.load("all", "r", "s", "");
         s.build.store("all", "s", "one", "");
       },
       {"GDR-I06 interp: kernel",
        at + "r.load, iteration 0: reads s (0, 0), bytes 0 to 3: last written by op s.store2 (tile s, "
             "part 0) in iteration 0; the schedule means op s.store (tile s, part 0) in iteration 0."}},
      {"a write into bytes in flight",
       [](Single& s) {
         s.build.map("all", "r[i,j] = 1", "");
         s.build.copy_in("all", "s", "x", "", Where::all);
         s.build.store("all", "s", "r", "");
       },
       {"GDR-I07 interp: kernel",
        at + "s.store, iteration 0: writes s (0, 0), bytes 0 to 3: a copy into it is in flight."}},
      {"two copies in flight",
       [](Single& s) {
         s.build.copy_in("all", "s", "x", "", Where::all);
         s.build.copy_in("all", "s", "x", "", Where::all);
       },
       {"GDR-I07 interp: kernel",
        at + "s.in2, iteration 0: writes s (0, 0), bytes 0 to 3: a copy into it is in flight."}},
      {"a register never written",
       [](Single& s) {
         s.build.map("all", "r[i,j] = 1", "", View("r").cols(0, 8));
         s.build.copy_out("all", "y", "r", "", Where::all);
       },
       {"GDR-I08 interp: kernel", at + "y.out, iteration 0: reads register tile r (0, 8): never written."}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Single single(1);
    row.write(single);
    Plan plan = single.plan();
    if (row.name == "what another op wrote into the same tile") {  // the list swaps what Kernel::ops has in order
      std::vector<Step>& body = plan.kernels[0].roles[0].body;
      std::swap(body[2], body[3]);
    }
    check_fault(plan, one_sequence(32), single_inputs(), row.text);
  }
}

TEST_CASE("a tile on the bytes of another that is still read") {
  Single single(2);
  single.build.acc("all", "q", 16, 16, {1, 2});
  single.build.map("all", "q[i,j] = 1", "");
  single.build.store("all", "s", "q", "");
  single.build.map("all", "q[i,j] = 2*s[i,j]", "");  // each warp reads the columns that it wrote
  single.build.store("all", "t", "q", "");
  single.build.copy_out("all", "y", "q", "", Where::all);
  Plan plan = single.plan();
  CHECK(fault_of(plan, one_sequence(32), single_inputs()) == "");
  plan.kernels[0].tiles[1].offset_bytes = 32;  // half a row on: warp 0's columns of t on warp 1's of s
  check_fault(plan, one_sequence(32), single_inputs(),
              {"GDR-I06", "op q.map2, iteration ", ": reads s (",
               ": last written by op t.store (tile t, part 0) in "
               "iteration ",
               "; the schedule means op s.store (tile s, part 0) in iteration "});
}

TEST_CASE("every barrier step of the pipeline is needed") {
  struct Row {
    std::string role;
    OpKind kind;
    std::string barrier;
    std::string code;
  };
  const Row rows[] = {
      {"adder", OpKind::wait, "x_arrived", "GDR-I0"},  // I04 or I05: depends on who runs first
      {"loader", OpKind::wait, "x_free", "GDR-I"},     // I05, I06 or I13
      {"loader", OpKind::arrive, "x_arrived", "GDR-I03"},
      {"adder", OpKind::arrive, "x_free", "GDR-I03"},
  };
  for (const Row& row : rows)
    for (const int stages : {1, 2, 3}) {
      CAPTURE(row.role);
      CAPTURE(row.barrier);
      CAPTURE(stages);
      Kernel kernel = pipeline(stages);
      drop(kernel, row.role, row.kind, row.barrier);
      const std::string text = fault_of(pipeline_plan(kernel), one_sequence(100), pipeline_inputs(100));
      CAPTURE(text);
      CHECK(text.find(row.code) == 0);
    }
}

TEST_CASE("an arrival that does not wait for its copies") {
  Kernel kernel = pipeline(2);
  for (Op& op : kernel.ops) op.after_copies = false;
  check_fault(pipeline_plan(kernel), one_sequence(100), pipeline_inputs(100),
              {"GDR-I05", "a copy into it is in flight"});
}

TEST_CASE("barriers: parity aliases, and arrivals that count for another phase") {
  // Nobody holds the first role back: the barrier may be two phases ahead of what the second asks for.
  Single single(1);
  Plan plan = single.plan();
  Kernel& kernel = plan.kernels[0];
  Role second;
  second.name = "second";
  second.warps = 1;
  kernel.roles.push_back(second);
  mbarrier(kernel, "tick", 1);
  insert(kernel, "all", -1, arrive("tick"));
  insert(kernel, "second", -1, wait("tick"));
  plan.tensors.pop_back();
  place(kernel);
  InterpOptions options;
  options.order = Order::round_robin;
  CHECK_NOTHROW(run(plan, one_sequence(32), single_inputs(), options));
  check_fault(plan, one_sequence(32), single_inputs(),
              {"GDR-I13 interp: kernel test_single, block (sequence 0, v_head 0), role second, warp 0, op tick.wait1, "
               "iteration 0: waits for phase 0 of barrier tick (copy 0, of iteration 0), which blocks while 2 phases "
               "are complete. The barrier needs more stages or one more wait."});

  // Two warps arrive, one arrival completes a phase: the second arrival falls into the next phase.
  kernel.roles[0].warps = 2;
  check_fault(plan, one_sequence(32), single_inputs(),
              {"GDR-I13",
               "arrives for phase 0 of barrier tick (copy 0) while 1 phases are complete. Its arrivals do "
               "not match its phases, or a warp ran ahead."});
}

TEST_CASE("tensors: order of kernels, and who writes what") {
  const auto kernel_of = [](const std::vector<TensorSpec>& tensors, const char* from, const char* to, bool by_k_head) {
    KernelBuilder build("move", {GridAxis::chunk, by_k_head ? GridAxis::k_head : GridAxis::v_head}, LoopKind::once,
                        tensors);
    build.role("all", 1);
    build.acc("all", "r", 16, 16, {1, 1});
    if (*from != '\0') {
      build.load("all", "r", View(from).global(), "");
    } else {
      build.map("all", "r[i,j] = 1", "");
    }
    build.copy_out("all", to, "r", "", Where::all);
    Kernel kernel = std::move(build).finish();
    place(kernel);
    return kernel;
  };
  std::vector<TensorSpec> tensors = {chunk_tensor("x", input, 16, 16, DType::fp32),
                                     chunk_tensor("w", workspace, 16, 16, DType::fp32),
                                     chunk_tensor("y", output, 16, 16, DType::fp32)};
  const Kernel fill = kernel_of(tensors, "x", "w", false), use = kernel_of(tensors, "w", "y", false);
  const std::string place = " test_move, block (chunk 0, v_head 0), role all, warp 0, op ";
  const LaunchShape shape = one_sequence(10);
  const Tensors given = {{"x", noise(DType::fp32, {1, 1, 16, 16}, 71)}};
  CHECK(fault_of(plan_of(16, tensors, {fill, use}), shape, given) == "");
  check_fault(plan_of(16, tensors, {use, fill}), shape, given,
              {"GDR-I09 interp: kernel", place + "r.load, iteration 0: reads w (0, 0): no kernel has written it yet."});
  check_fault(plan_of(16, tensors, {fill, use, use}), shape, given,
              {"GDR-I10 interp: kernel",
               place + "y.out, iteration 0: writes y (0, 0), which was written before in this launch."});
  check_fault(plan_of(16, tensors, {kernel_of(tensors, "", "x", false)}), shape, given,
              {"GDR-I10 interp: kernel", place + "x.out, iteration 0: writes x (0, 0), which is an input."});
  check_fault(plan_of(16, tensors, {fill}), shape, given,
              {"GDR-I11 interp: output y: chunk 0, head 0, element 0 of 256 was never written. Some block must write "
               "it."});

  // Two v-heads write what is kept for their one k-head.
  std::vector<TensorSpec> by_k_head = tensors;
  by_k_head[2].heads = HeadAxis::k_head;
  LaunchShape two = shape;
  two.v_heads = 2;
  const Tensors twice = {{"x", noise(DType::fp32, {1, 2, 16, 16}, 72)}};
  check_fault(plan_of(16, by_k_head, {kernel_of(by_k_head, "x", "y", false)}), two, twice,
              {"GDR-I10", "writes y (0, 0), which was written before in this launch."});

  // A block reads what another block of the same kernel writes.
  KernelBuilder build("both", {GridAxis::chunk, GridAxis::v_head}, LoopKind::once, tensors);
  build.role("all", 1);
  build.acc("all", "r", 16, 16, {1, 1});
  build.load("all", "r", View("x").global(), "");
  build.copy_out("all", "w", "r", "", Where::all);
  build.load("all", "r", View("w").global(), "");
  build.copy_out("all", "y", "r", "", Where::all);
  Kernel both = std::move(build).finish();
  harness::place(both);
  check_fault(plan_of(16, tensors, {both}), shape, given,
              {"GDR-I09",
               "op r.load2, iteration 0: reads w (0, 0): this kernel wrote it; blocks of one kernel have no "
               "order."});
}

TEST_CASE("accesses outside") {
  struct Row {
    std::string name;
    void (*plant)(Plan&);
    std::string text;
  };
  const Row rows[] = {
      {"shared memory too small", [](Plan& p) { p.kernels[0].smem_bytes = 1000; },
       "GDR-I12 interp: kernel test_pipeline: its mbarriers end at byte 2080; the block has 1000 bytes of shared "
       "memory."},
      {"a tile past the end", [](Plan& p) { p.kernels[0].tiles[0].offset_bytes = 64; },
       "GDR-I12 interp: kernel test_pipeline, tile x: it ends at byte 2098; the block has 2080 bytes of shared "
       "memory."},
      {"a tile on the barriers", [](Plan& p) { p.kernels[0].tiles[0].offset_bytes = 16; },
       "GDR-I12 interp: kernel test_pipeline, tile x: its bytes 2048 to 2049 overlap the barriers at 2048 to 2079."},
      {"rows that do not exist",
       [](Plan& p) {
         for (Op& op : p.kernels[0].ops) op.where = Where::all;
       },
       "touches row 4 of x; this chunk has 4 valid rows. It needs where = row_valid."},
      {"an operand past its tile", [](Plan& p) { op_named(p.kernels[0], "sum.map").operands[1].rows.end = 17; },
       "GDR-I12 interp: kernel test_pipeline, op sum.map: x [0, 17) x [0, 32) reaches outside the tile's 16 x 32."},
      {"an operand past its tensor",
       [](Plan& p) {
         op_named(p.kernels[0], "x.in").operands[1].cols = {1, 33};
       },
       "GDR-I12 interp: kernel test_pipeline, op x.in: x [0, 16) x [1, 33) reaches outside the tensor's 16 x 32."},
      {"an operand outside its part",
       [](Plan& p) {
         p.kernels[0].tiles[0].parts = p.kernels[0].tiles[0].resident = 2;
         for (Operand& operand : op_named(p.kernels[0], "x.in").operands) operand.rows = {0, 8};
       },
       "GDR-I12 interp: kernel test_pipeline, op sum.map: x [0, 16) x [0, 32) reaches outside part 0 (rows 0 to 7)."},
      {"a head outside the group", [](Plan& p) { op_named(p.kernels[0], "x.in").operands[1].head_index = 1; },
       "GDR-I12 interp: kernel test_pipeline, op x.in: x [0, 16) x [0, 32) reaches outside the 1 heads of the group."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Plan plan = pipeline_plan(pipeline(2));
    row.plant(plan);
    check_fault(plan, one_sequence(100), pipeline_inputs(100), {row.text});
  }
}

TEST_CASE("plans that cannot be run are refused before anything runs") {
  struct Row {
    std::string name;
    void (*plant)(Plan&);
    std::string text;
  };
  const Row rows[] = {
      {"not packed", [](Plan& p) { p.kernels[0].tiles[0].offset_bytes = -1; },
       "tile x: it has no offset; pack the kernel first."},
      {"odd offset", [](Plan& p) { p.kernels[0].tiles[0].offset_bytes = 7; },
       "tile x: its offset is no multiple of its element size."},
      {"warp grid", [](Plan& p) { p.kernels[0].tiles[1].reg.deal_cols = 12; },
       "tile sum: its warp grid does not divide it."},
      {"too few warps", [](Plan& p) { p.kernels[0].roles[1].warps = 1; },
       "tile sum: its role 'adder' is absent or has too few warps."},
      {"barriers without a place", [](Plan& p) { p.kernels[0].barrier_offset_bytes = -1; },
       "its mbarriers have no place (offset -1)."},
      {"unknown barrier", [](Plan& p) { op_named(p.kernels[0], "x_free.wait5").barrier = "x_full"; },
       "op x_free.wait5: there is no barrier x_full of its kind."},
      {"unknown tile", [](Plan& p) { op_named(p.kernels[0], "sum.map").operands[1].name = std::string("z"); },
       "op sum.map: there is no tile z."},
      {"unknown tensor", [](Plan& p) { op_named(p.kernels[0], "x.in").operands[1].name = std::string("z"); },
       "op x.in: there is no tensor z."},
      {"sizes",
       [](Plan& p) {
         op_named(p.kernels[0], "x.in").operands[1].rows = {0, 8};
       },
       "op x.in: 8 x 32 elements cannot go to 16 x 32."},
      {"foreign registers", [](Plan& p) { p.kernels[0].tiles[1].role = "loader"; },
       "op sum.load: register tile sum belongs to role loader."},
      {"an expression without its operand", [](Plan& p) { op_named(p.kernels[0], "sum.map").operands.pop_back(); },
       "op sum.map: no operand reads the elements x[i,j] of the expression."},
      {"an operand that does not cover the expression",
       [](Plan& p) {
         op_named(p.kernels[0], "sum.map").operands[1].cols = {0, 31};
       },
       "op sum.map: no operand reads the elements x[i,j] of the expression."},
      {"scan words in a map", [](Plan& p) { op_named(p.kernels[0], "sum.map").expr = "sum[i,j] = prefix(x[i,j])"; },
       "op sum.map: prefix is for scan only."},
      {"an op in no list", [](Plan& p) { p.kernels[0].roles[0].body.pop_back(); },
       "op x_arrived.arrive6: it is in no role."},
      {"an op in two lists", [](Plan& p) { p.kernels[0].roles[1].body.push_back(p.kernels[0].roles[0].body[0]); },
       "op x_free.wait5: it stands in more than one list."},
      {"an op twice", [](Plan& p) { p.kernels[0].roles[0].body.push_back(p.kernels[0].roles[0].body[0]); },
       "op x_free.wait5: slices [0, 1) do not follow [0, 1) of 1."},
      {"slices left out", [](Plan& p) { op_named(p.kernels[0], "sum.map").slices = 2; },
       "op sum.map: only 1 of its 2 slices run."},
      {"shared memory in the epilogue",
       [](Plan& p) {
         p.kernels[0].roles[1].epilogue.push_back(p.kernels[0].roles[1].body[1]);
         p.kernels[0].roles[1].body.erase(p.kernels[0].roles[1].body.begin() + 1);
       },
       "op sum.map: prologue and epilogue may not touch shared memory."},
      {"a chunk in the epilogue",
       [](Plan& p) {
         Kernel& k = p.kernels[0];
         k.roles[1].epilogue.push_back(k.roles[1].body[3]);
         k.roles[1].body.pop_back();
       },
       "op y.out: prologue and epilogue have no chunk, so they cannot touch y."},
      {"no head axis", [](Plan& p) { p.kernels[0].grid.pop_back(); },
       "the grid needs exactly one of v_head and k_head."},
      {"no sequence axis", [](Plan& p) { p.kernels[0].grid[0] = GridAxis::chunk; },
       "a loop over the chunks of a sequence needs a sequence axis."},
      {"no chunk", [](Plan& p) { p.chunk = 0; }, "the plan's chunk is 0 rows."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Plan plan = pipeline_plan(pipeline(2));
    row.plant(plan);
    check_fault(plan, one_sequence(100), pipeline_inputs(100), {"GDR-I02 interp: ", row.text});
  }
}

TEST_CASE("registers of another warp cannot be read") {
  Single single(2);
  single.build.acc("all", "q", 16, 16, {1, 2});
  single.build.map("all", "q[i,j] = 1", "");
  single.build.relayout("all", "r", "q", "");
  check_fault(single.plan(), one_sequence(32), single_inputs(),
              {"GDR-I02", "op r.cast: warp 0 needs element (0, 8) of register tile q, which warp 1 owns."});

  Single fragment(2);
  fragment.build.acc("all", "q", 16, 16, {1, 2});
  fragment.build.frag("all", "a", 16, 16, DType::bf16, {1, 2});
  fragment.build.mma("all", "q", "a", "s", "", false);
  check_fault(fragment.plan(), one_sequence(32), single_inputs(),
              {"GDR-I02", "op q.mma: warp 0 needs element (0, 8) of register tile a, which warp 1 owns."});
}

TEST_CASE("a triangular tile needs a mask where its missing blocks would be read") {
  Single single(1);
  single.build.smem("low", 32, 32, DType::bf16, {.lower16 = true});
  single.build.smem("full", 32, 32, DType::bf16);
  single.build.acc("all", "d", 32, 32, {1, 1});
  Op& op = single.build.mma("all", "d", "low", "full", "", false);
  CHECK(op.mask_a == Mask::lower);
  op.mask_a = Mask::none;
  check_fault(single.plan(), one_sequence(32), single_inputs(),
              {"GDR-I02", "op d.mma: low stores no blocks above its diagonal, but the operand has no mask."});
}

TEST_CASE("tensors and shapes that do not fit the plan") {
  struct Row {
    std::string name;
    void (*plant)(Tensors&, LaunchShape&);
    std::string text;
  };
  const Row rows[] = {
      {"missing", [](Tensors& t, LaunchShape&) { t.erase("x"); },
       "GDR-I01 interp: input tensor x is missing; give [100, 1, 32] bf16."},
      {"unknown", [](Tensors& t, LaunchShape&) { t["z"]; }, "GDR-I01 interp: tensor z is none of the plan's."},
      {"dtype", [](Tensors& t, LaunchShape&) { t["x"].dtype = DType::fp16; },
       "GDR-I01 interp: tensor x is fp16; the plan wants bf16."},
      {"shape",
       [](Tensors& t, LaunchShape&) {
         t["x"].shape = {100, 32};
       },
       "GDR-I01 interp: tensor x has shape [100, 32]; this launch needs [100, 1, 32]."},
      {"bytes", [](Tensors& t, LaunchShape&) { t["x"].bytes.pop_back(); },
       "GDR-I01 interp: tensor x holds 6399 bytes; its shape [100, 1, 32] needs 6400."},
      {"heads", [](Tensors&, LaunchShape& s) { s.k_heads = 2; },
       "GDR-I01 interp: 1 v-heads over 2 k-heads; both must be positive and the first a multiple of the second."},
      {"sequence",
       [](Tensors&, LaunchShape& s) {
         s.sequences = {{0, 101}};
       },
       "GDR-I01 interp: sequence 0 has tokens 0 to 101; they must lie in 0 to 100."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Tensors tensors = pipeline_inputs(100);
    LaunchShape shape = one_sequence(100);
    row.plant(tensors, shape);
    try {
      interpret(pipeline_plan(pipeline(2)), shape, tensors, {});
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(std::string(error.what()) == row.text);
    }
  }
}
