// What a proof costs: a kernel of the size of the largest shipped ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "../cpu/build_kind.hpp"
#include "rows.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

// A loader and two consumers of 8 warps, 20 warps in all; each consumer works on ten tiles that arrive in every
// iteration: product, store, meeting, product back. 26 tiles, 80 operations on data, 86 KB.
Plan large() {
  Draft d;
  constexpr int kTiles = 10;
  const std::string roles[] = {"left", "right"};
  d.role("loader", 4);
  for (const std::string& r : roles) d.role(r, 8);
  for (const std::string& r : roles) {
    d.smem("p_" + r, 32, 32);
    d.acc(r, "s_" + r, 32, 64, 2, 4);
    d.acc(r, "t_" + r, 32, 32, 2, 4);
    d.meeting("meet_" + r, r == "left" ? 1 : 2, 256);
  }
  for (int i = 0; i < kTiles; ++i)
    for (const std::string& r : roles) {
      const std::string x = "x_" + r + std::to_string(i), p = "p_" + r, s = "s_" + r, t = "t_" + r;
      d.tensor(x, TensorKind::input, TensorIndex::token, 32, 64);
      d.smem(x, 32, 64);
      d.mbarrier(x + "_arrived", 4);
      d.mbarrier(x + "_free", 8);
      d.wait("loader", x + "_free", 1);
      d.copy_in("loader", x + "_in", x.c_str(), x.c_str());
      d.arrive("loader", x + "_arrived", true);
      d.wait(r, x + "_arrived");
      d.mma(r, x + "_square", t.c_str(), x.c_str(), Arg(x.c_str()).t());
      d.op(r, OpKind::store, x + "_store", {p.c_str(), t.c_str()});
      d.sync(r, "meet_" + r);
      d.mma(r, x + "_back", s.c_str(), p.c_str(), x.c_str(), i > 0);
      d.sync(r, "meet_" + r);
      d.arrive(r, x + "_free");
    }
  return d.finish();
}

}  // namespace

TEST_CASE("a proof of a large kernel takes milliseconds") {
  using Clock = std::chrono::steady_clock;
  const Plan plan = large();
  const Kernel& kernel = plan.kernels.front();
  REQUIRE(kernel.threads() == 20 * 32);
  double best_ms = 1e9;
  VerifyReport report;
  for (int run = 0; run < 5; ++run) {
    const Clock::time_point start = Clock::now();
    report = verify(plan, kernel);
    best_ms = std::min(best_ms, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  CHECK(report.text() == "");
  const auto is_data = [](const Op& op) { return !op.operands.empty(); };
  MESSAGE(best_ms << " ms: " << kernel.threads() / 32 << " warps, "
                  << std::count_if(kernel.ops.begin(), kernel.ops.end(), is_data) << " operations on data, "
                  << kernel.tiles.size() << " tiles, " << kernel.smem_bytes << " B, " << report.iterations
                  << " iterations, " << report.accesses_checked << " accesses");
  if (!cpu::test::test_is_slow()) CHECK(best_ms < 100);
}
