// Values in registers: what a role's list finds against what Kernel::ops means.
#include <doctest/doctest.h>

#include "rows.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

// One role that carries a state over the iterations: s += x x^T, sixteen columns of x at a time, beside a second
// product t; both leave the block.
Plan carry() {
  Draft d;
  d.tensor("x", TensorKind::input, TensorIndex::token, 32, 64);
  d.tensor("s0", TensorKind::input, TensorIndex::sequence, 32, 32, DType::fp32);
  d.tensor("s1", TensorKind::output, TensorIndex::sequence, 32, 32, DType::fp32);
  d.tensor("y", TensorKind::output, TensorIndex::token, 32, 32);
  d.role("loader", 1);
  d.role("worker", 2);
  d.smem("x", 32, 64);
  d.acc("worker", "s", 32, 32, 2, 1);
  d.acc("worker", "t", 32, 32, 2, 1);
  d.frag("worker", "xr", 32, 64, 2);
  d.mbarrier("x_arrived", 1);
  d.mbarrier("x_free", 2);

  d.section(Draft::Section::prologue);
  d.op("worker", OpKind::load, "s_load", {"s", "s0"});
  d.section(Draft::Section::body);
  d.wait("loader", "x_free", 1);
  d.copy_in("loader", "x_in", "x", "x");
  d.arrive("loader", "x_arrived", true);
  d.wait("worker", "x_arrived");
  d.op("worker", OpKind::load, "x_load", {"xr", "x"});
  d.mma("worker", "s_add", "s", "xr", Arg("x").t(), true);
  d.mma("worker", "t_first", "t", "xr", Arg("x").t());
  d.mma("worker", "t_second", "t", "xr", Arg("x").t(), true);
  d.arrive("worker", "x_free");
  d.map("worker", "t_scale", "t[i,j] = scale*t[i,j] + s[i,j]", {"t", "s"}, true);
  d.copy_out("worker", "y_out", "y", "t");
  d.section(Draft::Section::epilogue);
  d.copy_out("worker", "s_out", "s1", "s");
  Plan plan = d.finish();
  // Two products of four slices each, interleaved.
  std::vector<Step>& body = role_of(plan, "worker").body;
  const int first = body[3].op, second = body[4].op;
  for (const char* id : {"t_first", "t_second"}) op_of(plan, id).slices = 4;
  body.erase(body.begin() + 3, body.begin() + 5);
  int at = 3;
  for (int slice = 0; slice < 4; ++slice)
    for (const int op : {first, second}) body.insert(body.begin() + at++, {op, slice, slice + 1});
  return plan;
}

std::vector<Step>& body(Plan& plan) { return role_of(plan, "worker").body; }

}  // namespace

TEST_CASE("a carried state and interleaved slices are in order") {
  Plan plan = carry();
  CHECK(verify(plan).text() == "");
  // The two sums end in the other order: they commute.
  std::swap(body(plan)[9], body(plan)[10]);
  CHECK(verify(plan).text() == "");
}

TEST_CASE("register faults are found") {
  const Row rows[] = {
      {"state that nothing initialises",
       carry,
       [](Plan& p) { drop(p, "s_load"); },
       "GDR-V14",
       {"`s_add` (role worker, iteration 0) reads s", "registers that nothing has written"}},
      {"state that an empty sequence leaves undefined",
       carry,
       [](Plan& p) {
         drop(p, "s_load");
         op_of(p, "s_add").operands[0].access = Access::write;
       },
       "GDR-V14",
       {"`s_out` (role worker) reads s", "registers that nothing has written"}},
      {"read before it is written",
       carry,
       [](Plan& p) { move_after(p, "x_load", "s_add"); },
       "GDR-V14",
       {"`s_add` (role worker, iteration 0) reads xr", "registers that nothing has written",
        "it means the result of `x_load`"}},
      {"read of the version before",
       carry,
       [](Plan& p) { move_after(p, "t_scale", "y_out"); },
       "GDR-V14",
       {"`y_out` (role worker, iteration 0) reads t", "finds the result of `t_first` of iteration 0 plus `t_second`",
        "it means the result of `t_scale`"}},
      {"carried value used in place of the new one",
       carry,
       [](Plan& p) { move_after(p, "s_add", "t_scale"); },
       "GDR-V14",
       {"`t_scale` (role worker, iteration 0) reads s", "finds the result of `s_load`", "plus `s_add` of iteration 0"}},
      {"read between the slices of its producer",
       carry,
       [](Plan& p) {
         std::vector<Step>& list = body(p);
         const Step last = list[10];
         list.erase(list.begin() + 10);  // the last slice of t_second goes behind t_scale
         list.insert(list.begin() + 12, last);
       },
       "GDR-V14",
       {"`t_scale`", "reads t while `t_second` has not run all of its slices"}},
      {"written anew between the slices of a sum",
       carry,
       [](Plan& p) { std::swap(body(p)[3], body(p)[4]); },  // t_second begins, then t_first begins anew
       "GDR-V14",
       {"`t_second`"}},
      {"part that was never written",
       carry,
       [](Plan& p) {
         op_of(p, "x_load").operands[0].cols = {0, 32};
         op_of(p, "x_load").operands[1].cols = {0, 32};
       },
       "GDR-V14",
       {"`s_add`", "reads xr", "registers that nothing has written"}},
  };
  for (const Row& row : rows) check_found(row);
}

TEST_CASE("a kernel that runs its body once needs no value for the empty sequence") {
  Plan plan = carry();
  drop(plan, "s_load");
  op_of(plan, "s_add").operands[0].access = Access::write;
  plan.tensors.erase(plan.tensors.begin() + 1);
  Kernel& kernel = kernel_of(plan);
  kernel.loop = LoopKind::once;
  kernel.grid.push_back(GridAxis::chunk);
  plan.tensors[1].index = TensorIndex::chunk;  // every chunk writes its own
  CHECK(verify(plan).text() == "");
}
