#include "present/table.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "../config/expect_error.hpp"
#include "../schedule/sample_plan.hpp"
#include "sample_facts.hpp"

using namespace gdr;

TEST_CASE("the first lines say what was chosen, how much is left and what a direct port would miss") {
  const Plan plan = test::sample_plan();
  CHECK(plan_sentence(plan) ==
        "fused, chunk 32, state in 2 parts: sample takes 22,328 of 24,576 bytes of shared memory, 2,248 left");
  CHECK(direct_port_sentence(plan, test::sample_facts()) ==
        "A direct port of sample (every tile whole, resident and on bytes of its own) takes 40,000 bytes: 15,424 too "
        "many");
  Plan too_large = plan;
  too_large.smem_limit_bytes = 20000;
  CHECK(plan_sentence(too_large) ==
        "fused, chunk 32, state in 2 parts: sample takes 22,328 of 20,000 bytes of shared memory, 2,328 too many");
  PlanFacts facts = test::sample_facts();
  facts.kernels[0].direct_port_bytes = 20000;
  CHECK(direct_port_sentence(plan, facts).ends_with("takes 20,000 bytes: 4,576 left"));
  facts.kernels[0].direct_port_bytes.reset();
  CHECK(direct_port_sentence(plan, facts).empty());
}

TEST_CASE("no line is wider than 120 columns, and escapes stand there only when asked for") {
  for (const bool explain : {false, true}) {
    CAPTURE(explain);
    const std::string text = plan_table(test::sample_plan(), test::sample_facts(), {.explain = explain});
    CHECK(text.find('\x1b') == std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      CHECK_MESSAGE(line.size() <= 120, line);
      CHECK_MESSAGE((line.empty() || line.back() != ' '), line);
    }
    CHECK((text.find("What was tried") != std::string::npos) == explain);
  }
  CHECK(plan_table(test::sample_plan(), test::sample_facts(), {.color = true}).find("\x1b[1m") != std::string::npos);
}

TEST_CASE("one kernel may be asked for, by its name or by what it computes") {
  Plan plan = test::sample_plan();
  plan.kernels.push_back(plan.kernels[0]);
  plan.kernels[1].name = "other";
  plan.kernels[1].function = "second";
  PlanFacts facts = test::sample_facts();
  facts.kernels.push_back(facts.kernels[0]);
  const auto has = [&](const char* kernel, const char* text) {
    return plan_table(plan, facts, {.kernel = kernel}).find(text) != std::string::npos;
  };
  CHECK(has("second", "Kernel 2 of 2: other"));
  CHECK_FALSE(has("second", "Kernel 1 of 2"));
  CHECK(has("other", "Kernel 2 of 2: other"));
  CHECK(has("", "Kernel 1 of 2"));
  CHECK(test::error_text(ErrorKind::config, [&] { (void)plan_table(plan, facts, {.kernel = "third"}); }) ==
        "GDR-T01 kernel third: the plan has none of this name; it has sample, second.");
}
