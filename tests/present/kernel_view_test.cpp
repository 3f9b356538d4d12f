#include "present/kernel_view.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../schedule/sample_plan.hpp"

using namespace gdr;

TEST_CASE("columns are the working ops: prologue, body, epilogue") {
  const Plan plan = test::sample_plan();
  const KernelView view = view_kernel(plan.kernels[0]);
  REQUIRE(view.columns.size() == 20);
  CHECK(view.op(view.columns.front()).id == "dS.load");
  CHECK(view.columns.front().section == Section::prologue);
  CHECK(view.op(view.columns.back()).id == "dh0.out");
  CHECK(view.columns.back().section == Section::epilogue);
  CHECK(view.body() == Range{1, 19});
  CHECK(view.op(view.columns[4]).id == "P.mma");
  CHECK(view.columns[4].step == "1");
  CHECK(view.columns[1].step == "");
  for (std::size_t i = 0; i < view.columns.size(); ++i)
    CHECK(view.column_of_op[static_cast<std::size_t>(view.columns[i].op)] == static_cast<int>(i));
}

TEST_CASE("a barrier knows who arrives after what and who waits before what") {
  const Plan plan = test::sample_plan();
  const KernelView view = view_kernel(plan.kernels[0]);
  const auto id = [&](int column) {
    return column < 0 ? std::string("-") : view.op(view.columns[static_cast<std::size_t>(column)]).id;
  };
  const BarrierView& free = view.barriers[1];
  REQUIRE(free.barrier->name == "chunk_free");
  REQUIRE(free.arrivals.size() == 2);
  CHECK(id(free.arrivals[0].before) == "ds.store");
  CHECK(id(free.arrivals[1].before) == "p.store");
  REQUIRE(free.waits.size() == 1);
  CHECK(id(free.waits[0].before) == "-");
  CHECK(id(free.waits[0].after) == "k.in");
  const BarrierView& meet = view.barriers[7];
  REQUIRE(meet.syncs.size() == 3);
  CHECK(meet.arrivals.empty());
  CHECK(id(meet.syncs[0].before) == "x.store");
  CHECK(id(meet.syncs[2].after) == "-");
}

TEST_CASE("the step of a formula is what stands before its colon, if that is short") {
  CHECK(step_label("3: D1 = er (K dS)") == "3");
  CHECK(step_label("F3: A' - I") == "F3");
  CHECK(step_label("dg = c + suffix") == "");
  CHECK(step_label("dbeta where beta is 0: E") == "");
  CHECK(step_label("") == "");
}
