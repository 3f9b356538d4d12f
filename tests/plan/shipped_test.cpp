// Every shipped architecture with every shipped shape, by both strategies.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "../cpu/build_kind.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "plans.hpp"
#include "schedule/plan_json.hpp"

namespace gdr::test {
namespace {

// One name of each different shape: models share them.
std::vector<std::string> different_shapes() {
  std::vector<std::string> names;
  std::vector<Shape> known;
  for (const std::string_view name : config_names(ConfigKind::shape)) {
    Shape shape = load_shape(std::string(name));
    shape.name = shape.model = "";
    if (std::find(known.begin(), known.end(), shape) != known.end()) continue;
    known.push_back(shape);
    names.emplace_back(name);
  }
  return names;
}

void check_plan(const PlanResult& result, const Asked& asked) {
  const Plan& plan = result.plan;
  CHECK(plan.arch == asked.arch);
  CHECK(plan.strategy == asked.strategy);
  CHECK(result.proof.text() == "");
  CHECK(result.proof.accesses_checked > 0);
  CHECK(plan.smem_limit_bytes == load_arch(asked.arch).smem_per_block_optin_bytes);
  REQUIRE(result.facts.kernels.size() == plan.kernels.size());
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    CAPTURE(plan.kernels[k].name);
    CHECK(plan.kernels[k].smem_bytes <= plan.smem_limit_bytes);
    CHECK(result.facts.kernels[k].lower_bound_bytes <= plan.kernels[k].smem_bytes);
    CHECK(result.facts.kernels[k].predicted_us >= result.facts.kernels[k].floor_us);
  }
  const std::string json = plan_to_json(plan);
  CHECK(plan_from_json(json, "plan.json") == plan);
}

}  // namespace

TEST_CASE("all architectures and shapes are planned and proved, and their plans survive as JSON") {
  std::vector<std::string> shapes = different_shapes();
  CHECK(shapes.size() == 12);
  if (cpu::test::test_is_slow()) shapes.resize(1);
  const double begin = seconds_since_start();
  int plans = 0;
  std::set<std::string> keys;
  for (const std::string_view arch : config_names(ConfigKind::arch))
    for (const std::string_view strategy : strategy_names())
      for (const std::string& shape : shapes) {
        // Of chunk_parallel the largest and the smallest say enough: what differs is the number of heads.
        if (strategy != "fused" && shape != shapes.front() && shape != shapes.back()) continue;
        const Asked asked{.arch = std::string(arch), .shape = shape, .strategy = std::string(strategy)};
        CAPTURE(asked.arch);
        CAPTURE(asked.strategy);
        CAPTURE(shape);
        const PlanResult result = planned(asked);
        check_plan(result, asked);
        keys.insert(plan_hash(result.plan));
        ++plans;
      }
  MESSAGE(fmt::format("{} plans, {} different, in {:.1f} s", plans, keys.size(), seconds_since_start() - begin));
  CHECK(plans == 7 * static_cast<int>(shapes.size() + std::min<std::size_t>(shapes.size(), 2)));
}

TEST_CASE("planning twice gives the same bytes") {
  for (const std::string_view arch : config_names(ConfigKind::arch)) {
    if (cpu::test::test_is_slow() && arch != "sm_120") continue;
    for (const std::string_view strategy : strategy_names()) {
      const Asked asked{.arch = std::string(arch), .strategy = std::string(strategy)};
      CAPTURE(asked.arch);
      CAPTURE(asked.strategy);
      const PlanResult once = planned(asked), again = planned(asked);
      CHECK(plan_to_json(once.plan) == plan_to_json(again.plan));
      REQUIRE(once.facts.candidates.size() == again.facts.candidates.size());
      for (std::size_t i = 0; i < once.facts.candidates.size(); ++i)
        CHECK(once.facts.candidates[i].name == again.facts.candidates[i].name);
    }
  }
}

TEST_CASE("sm_120: the direct port misses by 37,888 bytes, the plan fits with its state tiles split") {
  const PlanResult result = planned({});
  const Kernel& fused = kernel_of(result.plan, "bwd_fused");
  CHECK(result.plan.smem_limit_bytes == 101'376);
  CHECK(fused.smem_bytes <= 101'376);
  CHECK(result.plan.chunk == 32);
  CHECK(result.plan.state_split > 1);
  for (const char* state : {"h", "ds"}) CHECK(fused.tile(state).parts == result.plan.state_split);
  CHECK(fused.tile("h").resident < fused.tile("h").parts);
  std::optional<std::int64_t> direct;
  for (std::size_t k = 0; k < result.plan.kernels.size(); ++k)
    if (result.plan.kernels[k].function == "bwd_fused") direct = result.facts.kernels[k].direct_port_bytes;
  REQUIRE(direct.has_value());
  CHECK(*direct == 139'264);
  CHECK(*direct - result.plan.smem_limit_bytes == 37'888);
}

TEST_CASE("what cannot be planned is refused with the exact reason") {
  const auto refusal = [](const PlanRequest& request) -> std::string {
    try {
      make_plan(request);
    } catch (const Error& error) {
      return fmt::format("{} {}", error.exit_code(), error.what());
    }
    return "planned";
  };
  SUBCASE("an unknown strategy") {
    CHECK(refusal(request({.strategy = "fastest"})) ==
          "2 GDR-P01 strategy fastest: there is none of this name; known are fused, chunk_parallel");
  }
  SUBCASE("registers") {
    PlanRequest asked = request({.arch = "sm_80"});
    asked.arch.registers_per_sm = 16'384;
    const std::string text = refusal(asked);
    CAPTURE(text);
    CHECK(text.starts_with(
        "3 GDR-P02 plan fused for sm_80: no candidate's registers suffice; the last tried was fused "));
    CHECK(text.ends_with("512 threads get 32"));
  }
  SUBCASE("no kernel") {
    PlanRequest asked = request({});
    asked.shape.head_dim_k = 24;
    const std::string text = refusal(asked);
    CAPTURE(text);
    CHECK(text.starts_with("3 GDR-P04 plan fused for sm_120: head dims 24 x 128; the kernels take multiples of 16"));
  }
  SUBCASE("no warps that would share its tiles evenly") {
    PlanRequest asked = request({});
    asked.shape.head_dim_k = asked.shape.head_dim_v = 48;
    const std::string text = refusal(asked);
    CAPTURE(text);
    CHECK(text.starts_with("3 GDR-P04 plan fused for sm_120: there is no kernel for head dims 48 x 48"));
  }
  // The bytes that a refusal asks for are enough, and one less is not.
  SUBCASE("shared memory") {
    for (const char* strategy : {"fused", "chunk_parallel"}) {
      CAPTURE(std::string(strategy));
      const std::string text = refusal(request({.budget_bytes = 16'384, .strategy = strategy}));
      CAPTURE(text);
      const std::string asks = "needs at least ";
      REQUIRE(text.find(asks) != std::string::npos);
      const int bytes = std::stoi(text.substr(text.find(asks) + asks.size()));
      CHECK(text.starts_with(fmt::format("3 GDR-P03 plan {} for sm_120: ", strategy)));
      CHECK(text.find(fmt::format("budget 16384_bytes grants 16384 B per block: {} B too many", bytes - 16'384)) !=
            std::string::npos);
      CHECK(refusal(request({.budget_bytes = bytes, .strategy = strategy})) == "planned");
      const std::string one_less = refusal(request({.budget_bytes = bytes - 1, .strategy = strategy}));
      CHECK(one_less.find(fmt::format("{}{} B", asks, bytes)) != std::string::npos);
      CHECK(one_less.find(": 1 B too many") != std::string::npos);
    }
  }
}

}  // namespace gdr::test
