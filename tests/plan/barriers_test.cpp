// The passes leave no barrier that others imply: without any single wait, arrival or meeting the verifier objects, and
// so does the interpreter in some order of warps and copies. (Which order shows a fault depends on it: a meeting behind
// a wait for a copy is seen only when the copy lands early.)
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "../cpu/build_kind.hpp"
#include "../verify/mutate.hpp"
#include "core/error.hpp"
#include "plans.hpp"

namespace gdr::test {
namespace {

// The code of the first fault that one of `orders` runs meets, or "".
std::string fault_of(const Alone& one, const Kernel& kernel, const Case& c, int orders) {
  constexpr std::array kOrders = {Order::role_ahead, Order::role_behind, Order::random, Order::priorities};
  constexpr std::array kLandings = {Landing::late, Landing::early, Landing::random};
  Plan plan = one.plan;
  plan.kernels = {kernel};
  for (int run = 0; run < orders; ++run) {
    InterpOptions options;
    options.seed = static_cast<std::uint64_t>(run + 1);
    options.order = kOrders[static_cast<std::size_t>(run) % kOrders.size()];
    options.landing = kLandings[static_cast<std::size_t>(run / 4) % kLandings.size()];
    Tensors tensors = one.tensors;
    try {
      interpret(plan, c.launch(), tensors, options);
    } catch (const Error& error) {
      return error.code();
    }
  }
  return "";
}

bool is_removal(testing::Mutation mutation) {
  using enum testing::Mutation;
  return mutation == drop_wait || mutation == drop_arrive || mutation == drop_sync;
}

}  // namespace

TEST_CASE("no barrier can be left out") {
  constexpr int kOrders = 24;
  const bool is_slow = cpu::test::test_is_slow();
  for (const char* arch : {"sm_120", "sm_80"}) {
    if (is_slow && arch != std::string("sm_120")) continue;
    CAPTURE(std::string(arch));
    const double begin = seconds_since_start();
    const Plan plan = planned({.arch = arch}).plan;
    const Case c = for_plan({.name = "short", .lengths = {2 * plan.chunk + 1}}, plan);
    const Alone one = alone(plan, "bwd_fused", run_plan(plan, c, make_inputs(c, 1)));
    const Kernel& kernel = one.plan.kernels[0];
    CHECK(fault_of(one, kernel, c, 4) == "");
    int removed = 0, seen = 0;
    std::string table;
    for (const testing::Mutant& mutant : testing::sync_mutants(kernel)) {
      if (!is_removal(mutant.mutation)) continue;
      ++removed;
      CAPTURE(mutant.what);
      const VerifyReport report = verify(plan, mutant.kernel);
      CHECK_FALSE(report.ok());
      const std::string proof = report.ok() ? "nothing" : report.findings.front().code;
      const std::string fault = is_slow ? "" : fault_of(one, mutant.kernel, c, kOrders);
      seen += !fault.empty();
      table += fmt::format("  {:<50} {}  {}\n", mutant.what, proof,
                           fault.empty() ? fmt::format("not seen in {} orders", kOrders) : fault);
    }
    MESSAGE(fmt::format("{}: {} removals, {} seen by the interpreter, {:.1f} s\n{}", arch, removed, seen,
                        seconds_since_start() - begin, table));
    CHECK(removed > 40);
    if (!is_slow) CHECK(seen == removed);
  }
}

}  // namespace gdr::test
