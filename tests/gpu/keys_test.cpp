// Keys: what must change them does, what must not does not.
#include "gpu/keys.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>

#include "cache/entry.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "support.hpp"

namespace gdr::test {
namespace {

std::string key_of_request(const KernelRequest& request, const std::string& target = "sm_120a") {
  return request_key(request.plan, target);
}

}  // namespace

TEST_CASE("a request key changes with everything that decides a plan") {
  const KernelRequest request = request_for_arch("sm_120", 16, 32, "", 128);
  std::set<std::string> keys = {key_of_request(request), key_of_request(request, "sm_120f")};
  CHECK(is_key(*keys.begin()));
  struct Row {
    std::string name;
    std::function<void(PlanRequest&)> change;
  };
  const Row rows[] = {
      {"strategy", [](PlanRequest& r) { r.strategy = "chunk_parallel"; }},
      {"budget", [](PlanRequest& r) { r.budget = load_budget("90000"); }},
      {"blocks", [](PlanRequest& r) { r.budget.blocks_per_sm = 2; }},
      {"arch", [](PlanRequest& r) { r.arch = load_arch("sm_121"); }},
      {"name of the arch", [](PlanRequest& r) { r.arch.name = "mine"; }},
      {"feature", [](PlanRequest& r) { r.arch.features.setmaxnreg = false; }},
      {"registers", [](PlanRequest& r) { r.arch.registers_per_sm = 32768; }},
      {"register unit", [](PlanRequest& r) { r.arch.register_allocation_unit = 512; }},
      {"rates", [](PlanRequest& r) { r.arch.rates.num_sms = 70; }},
      {"l2", [](PlanRequest& r) { r.arch.rates.l2_bytes = 1; }},
      {"K", [](PlanRequest& r) { r.shape.head_dim_k = 64; }},
      {"V", [](PlanRequest& r) { r.shape.head_dim_v = 64; }},
      {"group", [](PlanRequest& r) { r.shape.v_heads = 16; }},
      {"dtype", [](PlanRequest& r) { r.shape.dtype = DType::fp16; }},
      {"dtype of states", [](PlanRequest& r) { r.shape.state_dtype = DType::bf16; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    KernelRequest changed = request;
    row.change(changed.plan);
    CHECK(keys.insert(key_of_request(changed)).second);
  }
}

TEST_CASE("a request key does not change with head counts, lengths, or names for people") {
  const std::string key = key_of_request(request_for_arch("sm_120"));
  for (const int heads : {1, 2, 3, 8, 17, 100})
    CHECK(key_of_request(request_for_arch("sm_120", heads, 2 * heads)) == key);
  KernelRequest request = request_for_arch("sm_120");
  request.plan.shape.tokens = 7;
  request.plan.shape.sequences = 3;
  request.plan.shape.name = "another";
  request.plan.budget = load_budget("101376");  // what the default grants
  request.plan.clock_us = [] { return 1.0; };
  CHECK(key_of_request(request) == key);
}

TEST_CASE("what a target lacks is not planned with") {
  const PlanRequest request = request_for_arch("sm_120").plan;
  for (const CompileTarget& target : request.arch.targets) {
    CAPTURE(target.name);
    CHECK(request_for(request, target).arch.features == target.features);
  }
  // A stand-in: sm_120's rules on an sm_90 device.
  const Features both = request_for(request, load_arch("sm_90").targets.front()).arch.features;
  CHECK(both.setmaxnreg);
  CHECK(!both.wgmma);
  CHECK(!both.f32x2);
}

}  // namespace gdr::test
