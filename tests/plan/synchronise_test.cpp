// From dependences to barriers: what is merged, counted, named, and how many stages parity needs.
#include "plan/synchronise.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <set>

#include "plan/footprint.hpp"
#include "plans.hpp"
#include "schedule/builder.hpp"

namespace gdr::test {
namespace {

const std::vector<TensorSpec> kTensors = {
    {"t", TensorKind::input, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};

// Tiles x, y of 64 x 64 in `stages` stages; loader (2 warps), calc (4 warps), other (1 warp).
Kernel synchronised(LoopKind loop, int stages, const std::function<void(KernelBuilder&)>& ops) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, loop, kTensors);
  build.role("loader", 2);
  build.role("calc", 4);
  build.role("other", 1);
  build.smem("x", 64, 64, DType::bf16, {.stages = stages});
  build.smem("y", 64, 64, DType::bf16, {.stages = stages});
  build.acc("calc", "D", 64, 64, {4, 1});
  build.acc("other", "Q", 64, 64, {1, 1});
  ops(build);
  Kernel kernel = std::move(build).finish();
  const std::vector<Dependence> found = dependences(kernel, footprints(kernel), separate_bases(kernel));
  const Synchronisation order = order_dependences(body_ops(kernel), 3, found, max_stages(kernel));
  place_barriers(kernel, order, found);
  return kernel;
}

// "x_arrived 1 stages 2 arrivals", then each role's list.
std::string text(const Kernel& kernel) {
  std::string text;
  for (const Barrier& barrier : kernel.barriers)
    text += barrier.kind == BarrierKind::named
                ? fmt::format("{}: {} threads, id {}\n", barrier.name, barrier.arrivals, barrier.id)
                : fmt::format("{}: {} arrivals, {} stages\n", barrier.name, barrier.arrivals, barrier.stages);
  for (const Role& role : kernel.roles) {
    if (role.body.empty()) continue;
    text += role.name + ":";
    for (const Step& step : role.body) {
      const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
      text += " " + op.id;
      if (op.kind == OpKind::wait) text += fmt::format("({})", op.distance);
      if (op.after_copies) text += "(landed)";
    }
    text += "\n";
  }
  return text;
}

constexpr LoopKind kLoop = LoopKind::chunks_ascending;

void two_copies(KernelBuilder& b) {
  b.copy_in("loader", "x", "t", "", Where::all);
  b.copy_in("loader", "y", "t", "", Where::all);
  b.mma("calc", "D", "x", "y", "", true);
}

}  // namespace

TEST_CASE("barriers by hand") {
  struct Row {
    std::string name;
    LoopKind loop;
    int stages;
    std::function<void(KernelBuilder&)> ops;
    std::string expected;
  };
  const Row rows[] = {
      {"two copies that are read together: one event, after the second; one for the way back", kLoop, 1, two_copies,
       "y_arrived: 2 arrivals, 1 stages\n"
       "x_free: 4 arrivals, 1 stages\n"
       "loader: x_free.wait(1) x.in y.in y_arrived.arrive.loader(landed)\n"
       "calc: y_arrived.wait(0) D.mma x_free.arrive.calc\n"},
      {"the same in two stages: the slot is free after two iterations", kLoop, 2, two_copies,
       "y_arrived: 2 arrivals, 2 stages\n"
       "x_free: 4 arrivals, 2 stages\n"
       "loader: x_free.wait(2) x.in y.in y_arrived.arrive.loader(landed)\n"
       "calc: y_arrived.wait(0) D.mma x_free.arrive.calc\n"},
      {"the same once: no way back, one phase", LoopKind::once, 1, two_copies,
       "y_arrived: 2 arrivals, 1 stages\n"
       "loader: x.in y.in y_arrived.arrive.loader(landed)\n"
       "calc: y_arrived.wait(0) D.mma\n"},
      {"two roles release a slot: one barrier, arrivals of both", kLoop, 1,
       [](KernelBuilder& b) {
         b.copy_in("loader", "x", "t", "", Where::all);
         b.load("calc", "D", "x", "");
         b.load("other", "Q", "x", "");
       },
       "x_arrived: 2 arrivals, 1 stages\n"
       "x_free: 5 arrivals, 1 stages\n"
       "loader: x_free.wait(1) x.in x_arrived.arrive.loader(landed)\n"
       "calc: x_arrived.wait(0) D.load x_free.arrive.calc\n"
       "other: x_arrived.wait2(0) Q.load x_free.arrive.other\n"},
      {"inside a role the warps meet", kLoop, 1,
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.mma("calc", "D", "x", "x", "", true);
       },
       "calc_meet: 128 threads, id 1\n"
       "calc: calc_meet.before.x.store x.store calc_meet.before.D.mma D.mma\n"},
      {"a role waits for its own copies", kLoop, 1,
       [](KernelBuilder& b) {
         b.copy_in("calc", "x", "t", "", Where::all);
         b.mma("calc", "D", "x", "x", "", true);
       },
       "x_arrived: 4 arrivals, 1 stages\n"
       "calc_meet: 128 threads, id 1\n"
       "calc: calc_meet.before.x.in x.in x_arrived.arrive.calc(landed) x_arrived.wait(0) D.mma\n"},
      {"data stored by one role for another: ready, not arrived", kLoop, 1,
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("other", "Q", "x", "");
       },
       "x_ready: 4 arrivals, 1 stages\n"
       "x_free: 1 arrivals, 1 stages\n"
       "calc: x_free.wait(1) x.store x_ready.arrive.calc\n"
       "other: x_ready.wait(0) Q.load x_free.arrive.other\n"},
      {"the same tile twice: names are told apart", kLoop, 1,
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("other", "Q", "x", "");
         b.store("calc", "x", "D", "");
         b.load("other", "Q", "x", "");
       },
       "x_ready: 4 arrivals, 1 stages\n"
       "x_free: 1 arrivals, 1 stages\n"
       "x_ready_2: 4 arrivals, 1 stages\n"
       "x_free_2: 1 arrivals, 1 stages\n"
       "calc: x_free_2.wait(1) x.store x_ready.arrive.calc x_free.wait(0) x.store2 x_ready_2.arrive.calc\n"
       "other: x_ready.wait(0) Q.load x_free.arrive.other x_ready_2.wait(0) Q.load2 x_free_2.arrive.other\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Kernel kernel = synchronised(row.loop, row.stages, row.ops);
    CHECK(text(kernel) == row.expected);
    for (const Barrier& barrier : kernel.barriers) CHECK_FALSE(barrier.why.empty());
  }
}

TEST_CASE("a barrier says which hazards it is there for") {
  const Kernel kernel = synchronised(kLoop, 1, two_copies);
  REQUIRE(kernel.barriers.size() == 2);
  CHECK(kernel.barriers[0].why == "y of y.in is read by D.mma");
  CHECK(kernel.barriers[1].why == "x of D.mma was read before x.in");
}

TEST_CASE("barriers of real plans: names, ids and counts") {
  for (const auto& [arch, strategy] :
       {std::pair{"sm_120", "fused"}, {"sm_80", "fused"}, {"sm_90", "fused"}, {"sm_120", "chunk_parallel"}})
    for (const Kernel& kernel : planned({.arch = arch, .strategy = strategy}).plan.kernels) {
      CAPTURE(kernel.name);
      std::set<std::string> names, ids;
      std::set<int> hardware_ids;
      for (const Barrier& barrier : kernel.barriers) {
        CAPTURE(barrier.name);
        CHECK(names.insert(barrier.name).second);
        CHECK_FALSE(barrier.why.empty());
        int arrivals = 0, waits = 0, syncs = 0;
        for (const Role& role : kernel.roles)
          for (const Step& step : role.body) {
            const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
            if (op.barrier != barrier.name) continue;
            arrivals += op.kind == OpKind::arrive ? role.warps : op.kind == OpKind::sync ? 32 * role.warps : 0;
            waits += op.kind == OpKind::wait;
            syncs += op.kind == OpKind::sync;
          }
        if (barrier.kind == BarrierKind::mbarrier) {
          CHECK(barrier.arrivals == arrivals);
          CHECK(waits >= 1);
          CHECK(barrier.id == -1);
        } else {
          CHECK(barrier.arrivals * syncs == arrivals);
          CHECK(syncs >= 1);
          CHECK(barrier.id >= 1);
          CHECK(barrier.id <= 15);
          CHECK(hardware_ids.insert(barrier.id).second);
        }
      }
      for (const Op& op : kernel.ops) CHECK(ids.insert(op.id).second);
    }
}

}  // namespace gdr::test
