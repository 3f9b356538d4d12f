// Emitted sources, byte for byte, from the plan on: the primitives in front of it are files of templates/.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../support/golden.hpp"
#include "../support/plan_changes.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "emit/emit.hpp"
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

std::string from_the_plan_on(const std::string& text) {
  const std::size_t begin = text.find("// -----");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin);
}

// The golden plan that belongs to the sources may hold facts beside the plan; what is compared is the plan in it.
std::string cause_of_change(const std::string& golden_plan, const Plan& plan) {
  constexpr int kMaxLines = 30;
  std::string before;
  try {
    before = plan_to_json(plan_from_json(test::golden_text(golden_plan), golden_plan));
  } catch (const Error& error) {
    return std::string("The form of plan files has changed: ") + error.what() + "\n";
  }
  const std::string changes = test::plan_changes(before, plan_to_json(plan), kMaxLines);
  if (changes.empty()) return "No field of the plan has changed: a template or a renderer has.\n";
  return "Fields of the plan (against tests/golden/" + golden_plan + ") that have changed:\n" + changes;
}

}  // namespace

TEST_CASE("golden: sources of the fused plan for sm_120") {
  const Plan plan = plan_for("sm_120", "fused");
  for (const Kernel& kernel : plan.kernels)
    test::check_golden("fused_sm_120." + kernel.function + ".cu", from_the_plan_on(emit_plan_text(plan, kernel)),
                       [&] { return cause_of_change("fused_sm_120.plan.json", plan); });
}

TEST_CASE("golden: source of a state pass for sm_90, whose plan file holds that kernel alone") {
  Plan plan = plan_for("sm_90", "chunk_parallel");
  std::erase_if(plan.kernels, [](const Kernel& kernel) { return kernel.function != "state_bwd"; });
  REQUIRE(plan.kernels.size() == 1);
  test::check_golden("state_bwd_sm_90.cu", from_the_plan_on(emit_plan_text(plan, plan.kernels[0])),
                     [&] { return cause_of_change("state_bwd_sm_90.plan.json", plan); });
  test::check_golden("state_bwd_sm_90.plan.json", plan_to_json(plan));
}

TEST_CASE("what changed in a plan is told by field") {
  const Plan plan = plan_for("sm_120", "fused");
  const auto changes = [&](const auto& change) {
    Plan other = plan;
    change(*std::find_if(other.kernels.begin(), other.kernels.end(),
                         [](const Kernel& kernel) { return kernel.function == "bwd_fused"; }));
    return test::plan_changes(plan_to_json(plan), plan_to_json(other), 3);
  };
  CHECK(changes([](Kernel&) {}).empty());
  const std::string kernel = "kernels[" + plan.kernels[2].name + "]";
  const Role& role = plan.kernels[2].roles[1];
  CHECK(changes([](Kernel& k) { k.roles[1].registers += 8; }) ==
        kernel + ".roles[" + role.name + "].registers: " + std::to_string(role.registers) + " -> " +
            std::to_string(role.registers + 8) + "\n");
  CHECK(changes([](Kernel& k) { k.tiles[1].offset_bytes += 128; }).find(".smem.tiles[k].offset: ") !=
        std::string::npos);
  const std::string moved = changes([](Kernel& k) { std::swap(k.roles[1].body[4], k.roles[1].body[5]); });
  CAPTURE(moved);
  CHECK(moved.find(kernel + ".roles[" + role.name + "].ops: order from element ") != std::string::npos);
}

// One text for both: what runs on the host in the tests is what a GPU runs.
TEST_CASE("from the primitives on, the text for the host is the text for the GPU") {
  const Plan plan = plan_for("sm_120", "fused");
  for (const Kernel& kernel : plan.kernels) {
    const std::string device = emit_kernel(plan, kernel), host = emit_kernel(plan, kernel, Primitives::host);
    const std::string first_of_tiles = "// Tiles: where the elements";
    const std::size_t a = device.find(first_of_tiles), b = host.find(first_of_tiles);
    REQUIRE(a != std::string::npos);
    REQUIRE(b != std::string::npos);
    CHECK(device.substr(a) == host.substr(b));
    for (const char* of_cuda :
         {"__global__", "__device__", "__shared__", "__sync", "threadIdx", "blockIdx", "asm", "_Pragma"})
      CHECK_MESSAGE(device.substr(a).find(of_cuda) == std::string::npos, of_cuda);
  }
}

}  // namespace gdr
