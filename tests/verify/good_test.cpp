// Correct kernels verify without a finding, and the report says how much was looked at.
#include <doctest/doctest.h>

#include "draft.hpp"
#include "verify/verify.hpp"

using namespace gdr;
using namespace gdr::testing;

TEST_CASE("correct kernels have no findings") {
  struct Row {
    const char* name;
    Plan plan;
    int iterations;  // 2 * largest common multiple of two stages + largest distance + 1
  };
  const Row rows[] = {
      {"pipeline, 1 stage", pipeline(1), 4},
      {"pipeline, 2 stages", pipeline(2), 7},
      {"pipeline, 3 stages", pipeline(3), 10},
      {"split tile, reloaded", split_tile(), 4},
      {"alias", alias(), 4},
      {"bulk store", bulk_store(), 7},
      {"vectors", vectors(), 4},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const VerifyReport report = verify(row.plan);
    CHECK(report.text() == "");
    CHECK(report.ok());
    CHECK(report.kernels == 1);
    CHECK(report.iterations == row.iterations);
    CHECK(report.accesses_checked > 0);
    CHECK(report.phases_checked > 0);
  }
}

TEST_CASE("a kernel that runs its body once is run once") {
  Plan plan = pipeline(1);
  kernel_of(plan).loop = LoopKind::once;
  kernel_of(plan).grid.push_back(GridAxis::chunk);
  const VerifyReport report = verify(plan);
  CHECK(report.text() == "");
  CHECK(report.iterations == 1);
  CHECK(report.steps_run == 2 * 3 + 4 * 8);
  CHECK(report.phases_checked == 0);  // no second phase
  // What only the next iteration would need is not asked for: nobody waits for x_free in the first iteration.
  drop(plan, "x_free.wait.loader");
  drop(plan, "consumer_meet2");
  CHECK(verify(plan).text() == "");
}
