#include "present/report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "../schedule/sample_plan.hpp"
#include "core/error.hpp"
#include "sample_facts.hpp"
#include "schedule/plan_json.hpp"

using namespace gdr;
using nlohmann::json;

TEST_CASE("a report is a plan file: reading it gives the plan") {
  const Plan plan = test::sample_plan();
  for (const bool explain : {false, true}) {
    CAPTURE(explain);
    const std::string text = report_json(plan, test::sample_facts(), {.explain = explain});
    CHECK(plan_from_json(text, "report.json") == plan);
    CHECK(text == report_json(plan, test::sample_facts(), {.explain = explain}));
    CHECK(json::parse(text).contains("candidates") == explain);
  }
}

TEST_CASE("a report has the keys that others script against") {
  const json report = json::parse(report_json(test::sample_plan(), test::sample_facts()));
  for (const std::string key : {"arch", "shape", "budget", "strategy", "request_key", "kernels"}) {
    CAPTURE(key);
    CHECK(report.contains(key));
  }
  const json& kernel = report["kernels"][0];
  for (const std::string key : {"name", "kernel_key", "chunk", "state_split", "threads", "grid", "roles", "barriers",
                                "smem", "flops", "hbm_bytes", "floor_us"}) {
    CAPTURE(key);
    CHECK(kernel.contains(key));
  }
  for (const std::string key : {"ops", "registers"}) CHECK(kernel["roles"][0].contains(key));
  for (const std::string key :
       {"limit_bytes", "total_bytes", "headroom_bytes", "lower_bound_bytes", "direct_port_bytes"}) {
    CAPTURE(key);
    CHECK(kernel["smem"].contains(key));
  }
  for (const std::string key : {"name", "bytes", "offset", "parts", "first_use", "last_use", "aliases"}) {
    CAPTURE(key);
    CHECK(kernel["smem"]["tiles"][0].contains(key));
  }
  CHECK(kernel["floor_us"] == 551.235);
  CHECK(kernel["smem"]["direct_port_bytes"] == 40000);
}

TEST_CASE("what is not known is left out, and facts of another plan are a fault of ours") {
  PlanFacts facts = test::sample_facts();
  facts.kernels[0].direct_port_bytes.reset();
  facts.kernels[0].kernel_key.clear();
  const json report = json::parse(report_json(test::sample_plan(), facts));
  CHECK_FALSE(report["kernels"][0]["smem"].contains("direct_port_bytes"));
  CHECK_FALSE(report["kernels"][0].contains("kernel_key"));
  facts.kernels.clear();
  CHECK_THROWS_AS((void)report_json(test::sample_plan(), facts), Error);
}
