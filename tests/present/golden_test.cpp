// Pictures of the sample plan and of real plans, byte for byte.
#include <doctest/doctest.h>

#include <string>

#include "../cpu/build_kind.hpp"
#include "../schedule/sample_plan.hpp"
#include "../support/golden.hpp"
#include "config/registry.hpp"
#include "plan/planner.hpp"
#include "present/report.hpp"
#include "present/svg.hpp"
#include "present/table.hpp"
#include "sample_facts.hpp"
#include "schedule/plan_json.hpp"

using namespace gdr;

TEST_CASE("golden: the sample plan as table, report and picture") {
  const Plan plan = test::sample_plan();
  const PlanFacts facts = test::sample_facts();
  TableOptions options;
  options.explain = true;
  options.proof = "Proved: nothing.";
  test::check_golden("sample.plan.txt", plan_table(plan, facts, options));
  test::check_golden("sample.plan.json", report_json(plan, facts, {.explain = true}));
  test::check_golden("sample.plan.svg", plan_svg(plan, facts));
}

TEST_CASE("golden: what is planned for every architecture") {
  for (const std::string_view arch : config_names(ConfigKind::arch)) {
    // Text does not depend on how this was built: two architectures run all that writes it.
    if (gdr::cpu::test::test_is_slow() && arch != "sm_120" && arch != "sm_80") continue;
    for (const std::string_view strategy : strategy_names()) {
      CAPTURE(arch);
      CAPTURE(strategy);
      const PlanResult result = make_plan({.arch = load_arch(std::string(arch)),
                                           .shape = load_shape("qwen3_next"),
                                           .budget = load_budget("default"),
                                           .strategy = std::string(strategy),
                                           .clock_us = {}});
      const std::string report = report_json(result.plan, result.facts);
      CHECK(plan_from_json(report, "report.json") == result.plan);
      const std::string name = std::string(strategy) + "_" + std::string(arch);
      test::check_golden(name + ".plan.txt", plan_table(result.plan, result.facts, {}));
      if (arch == "sm_120" && strategy == "fused") {
        test::check_golden(name + ".plan.json", report);
        test::check_golden("../../docs/plan_sm_120.svg",  // the picture of the README
                           plan_svg(result.plan, result.facts, {.kernel = "bwd_fused"}));
      }
    }
  }
}

TEST_CASE("a golden file that differs is shown by the lines that do") {
  CHECK(test::line_diff("a\nb\nc\n", "a\nx\nc\nd\n", 10) == "    2 - b\n    3 + x\n    4 + d\n");
  CHECK(test::line_diff("a\nb\n", "c\nd\n", 1) == "    1 - a\n      and 3 lines more\n");
  CHECK(test::line_diff("a\n", "a", 1).empty());
}
