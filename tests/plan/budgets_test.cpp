// Every budget from 60,000 bytes to the most that a block can have gets a plan that is proved and computes the right
// gradients; more bytes are never worse.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "../cpu/build_kind.hpp"
#include "core/error.hpp"
#include "plans.hpp"
#include "schedule/plan_json.hpp"

namespace gdr::test {
namespace {

constexpr std::int64_t kFirst = 60'000, kStep = 4'096;

std::vector<std::int64_t> budgets(std::int64_t limit) {
  std::vector<std::int64_t> all;
  const std::int64_t step = cpu::test::test_is_slow() ? 8 * kStep : kStep;
  for (std::int64_t bytes = kFirst; bytes < limit; bytes += step) all.push_back(bytes);
  all.push_back(limit);
  return all;
}

// The plan but for the limit under which it was made.
std::string hash_of(Plan plan) {
  plan.smem_limit_bytes = 0;
  return plan_hash(plan);
}

}  // namespace

TEST_CASE("budgets of 60,000 bytes and more: every plan is proved and right, more bytes are never worse") {
  std::set<std::string> distinct;
  const double begin = seconds_since_start();
  for (const std::string arch : {"sm_90", "sm_120"}) {
    const std::int64_t limit = request({.arch = arch}).arch.smem_per_block_optin_bytes;
    double before = std::numeric_limits<double>::infinity();  // predicted under the budget before
    for (const std::int64_t bytes : budgets(limit)) {
      CAPTURE(arch);
      CAPTURE(bytes);
      const PlanResult result = planned({.arch = arch, .budget_bytes = bytes});
      for (const Kernel& kernel : result.plan.kernels) CHECK(kernel.smem_bytes <= bytes);
      CHECK(result.plan.smem_limit_bytes == bytes);
      CHECK(verify(result.plan).text() == "");
      const double predicted = predicted_us(result);
      CHECK(predicted <= before);
      before = predicted;

      if (!distinct.insert(hash_of(result.plan)).second) continue;
      const Case c =
          for_plan({.name = "slow gates", .lengths = {3 * result.plan.chunk + 5, 1}, .gate_scale = 0.04}, result.plan);
      InterpOptions options;
      options.threads = 2;
      const double interp = seconds_since_start();
      const Errors errors = errors_of(result.plan, c, 1, options);
      MESSAGE(fmt::format("{} {:6} B: {} | {} B, {:.0f} us | {} | {:.2f} s", arch, bytes, chosen(result, "bwd_fused"),
                          kernel_of(result.plan, "bwd_fused").smem_bytes, predicted, table_row(errors),
                          seconds_since_start() - interp));
      CHECK(largest(errors) < 0.005);
    }
  }
  MESSAGE(fmt::format("{} distinct plans, {:.1f} s", distinct.size(), seconds_since_start() - begin));
  CHECK(distinct.size() >= (cpu::test::test_is_slow() ? 3 : 6));
}

// For chunk 16 the kernels with v in registers are fallbacks. The smallest of them needs less than any with v in shared
// memory, whose registers suffice too: it is what the least budget gets, and only that.
TEST_CASE("a fallback is taken where nothing else fits in bytes, and not tried where something does") {
  const auto least_bytes = [] {
    try {
      planned({.budget_bytes = 16'384});
    } catch (const Error& error) {
      const std::string text = error.what(), asks = "needs at least ";
      return std::stoi(text.substr(text.find(asks) + asks.size()));
    }
    return 0;
  };
  const auto num_tried = [](const PlanResult& result, const std::string& v, bool fits) {
    return std::count_if(result.facts.candidates.begin(), result.facts.candidates.end(), [&](const auto& candidate) {
      return candidate.name.starts_with("fused c16: ") && candidate.name.find(v) != std::string::npos &&
             (candidate.verdict != Verdict::refused) == fits;
    });
  };
  const int bytes = least_bytes();
  const PlanResult least = planned({.budget_bytes = bytes});
  CHECK(chosen(least, "bwd_fused").find("v to registers") != std::string::npos);
  CHECK(num_tried(least, "v in smem", true) == 0);
  CHECK(num_tried(least, "v in smem", false) > 0);
  CHECK(verify(least.plan).text() == "");
  const Case c = for_plan({.name = "", .lengths = {37, 1}, .gate_scale = 0.04}, least.plan);
  CHECK(largest(errors_of(least.plan, c, 1)) < 0.005);

  const PlanResult more = planned({.budget_bytes = bytes + 1024});
  CHECK(chosen(more, "bwd_fused").find("v in smem") != std::string::npos);
  CHECK(num_tried(more, "v to registers", true) + num_tried(more, "v to registers", false) == 0);
}

}  // namespace gdr::test
