#include "emit/emit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "config/registry.hpp"
#include "emit/texts.hpp"
#include "plan/planner.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

Plan plan_for(const char* arch, const char* strategy) {
  PlanRequest request;
  request.arch = load_arch(arch);
  request.shape = load_shape("qwen3_next");
  request.budget = load_budget("default");
  request.strategy = strategy;
  return make_plan(request).plan;
}

const Kernel& fused_kernel(const Plan& plan) {
  return *std::find_if(plan.kernels.begin(), plan.kernels.end(),
                       [](const Kernel& k) { return k.function == "bwd_fused"; });
}

}  // namespace

TEST_CASE("every kernel of every plan is emitted, the same bytes from its plan file as from the planner") {
  for (const char* strategy : {"fused", "chunk_parallel"}) {
    CAPTURE(strategy);
    const Plan plan = plan_for("sm_120", strategy);
    const Plan again = plan_from_json(plan_to_json(plan), "plan.json");
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      const std::string text = emit_kernel(plan, plan.kernels[i]);
      CHECK(text == emit_kernel(again, again.kernels[i]));
      CHECK(text.find("extern \"C\" __global__") != std::string::npos);
      CHECK(text.find("%{") == std::string::npos);
      for (const Op& op : plan.kernels[i].ops) CHECK_MESSAGE(text.find("[" + op.id + "]") != std::string::npos, op.id);
    }
  }
}

TEST_CASE("two independent operations swapped in a plan file are swapped in the text, and it still verifies") {
  nlohmann::json file = nlohmann::json::parse(plan_to_json(plan_for("sm_120", "fused")));
  const auto is_first = [&] {
    const Plan plan = plan_from_json(file.dump(), "plan.json");
    CHECK(verify(plan).ok());
    const std::string text = emit_kernel(plan, fused_kernel(plan));
    return text.find("[xrow.sum]") < text.find("[xcol.sum]");
  };
  CHECK(is_first());
  int swapped = 0;
  for (nlohmann::json& kernel : file["kernels"])
    for (nlohmann::json& role : kernel["roles"])
      for (std::size_t i = 0; i + 1 < role["ops"].size(); ++i)
        if (role["ops"][i]["id"] == "xrow.sum" && role["ops"][i + 1]["id"] == "xcol.sum" && swapped++ == 0)
          std::swap(role["ops"][i], role["ops"][i + 1]);
  REQUIRE(swapped == 1);
  CHECK_FALSE(is_first());
}

TEST_CASE("a change of a field that shapes the kernel changes its text") {
  const Plan plan = plan_for("sm_120", "fused");
  const std::string text = emit_kernel(plan, fused_kernel(plan));
  const auto changed = [&](auto&& change) {
    Plan other = plan;
    change(const_cast<Kernel&>(fused_kernel(other)));
    return emit_kernel(other, fused_kernel(other)) != text;
  };
  CHECK(changed([](Kernel& k) { k.tiles.front().offset_bytes += 128; }));
  CHECK(changed([](Kernel& k) { k.barriers.front().stages += 1; }));
  CHECK(changed([](Kernel& k) { k.roles[1].registers += 8; }));
  CHECK(changed([](Kernel& k) {
    for (Op& op : k.ops)
      if (op.kind == OpKind::wait) op.distance += 1;
  }));
}

// What a template names would be a second place where the schedule is written down.
TEST_CASE("no template names a tile, a role, a barrier or a kernel") {
  std::set<std::string> names;
  for (const char* strategy : {"fused", "chunk_parallel"}) {
    const Plan plan = plan_for("sm_120", strategy);
    for (const Kernel& kernel : plan.kernels) {
      names.insert(kernel.function);
      for (const Role& role : kernel.roles) names.insert(role.name);
      for (const Barrier& barrier : kernel.barriers) names.insert(barrier.name);
      for (const Tile& tile : kernel.tiles) names.insert(tile.name);
    }
  }
  // Words of the language or of mathematics that are also names of tiles.
  for (const char* word : {"a", "d", "e", "k", "l", "q", "t", "u", "v", "w",    "do",
                           "D", "F", "M", "P", "S", "T", "Y", "h", "g", "cols", "sum"})
    names.erase(word);
  for (const TemplateText& file : template_texts())
    for (const std::string& name : names) {
      CAPTURE(file.name);
      CAPTURE(name);
      const std::string text(file.text);
      CHECK_FALSE(std::regex_search(text, std::regex("\\b" + name + "\\b")));
    }
}

}  // namespace gdr
