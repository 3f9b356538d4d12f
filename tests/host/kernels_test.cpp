#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>

#include "../kernels/reference.hpp"
#include "../kernels/support.hpp"
#include "launch.hpp"
#include "plans.hpp"

namespace gdr::host {
using test::Case;
using test::Tensors;

TEST_CASE("first") {
  for (const char* strategy : {"fused", "chunk_parallel"}) {
    const Plan plan = shipped_plan("sm_120", strategy);
    Case c{.name = "x", .lengths = {2 * plan.chunk + 5, 2 * plan.chunk + 5}, .chunk = plan.chunk, .k_heads = 1, .group = 2,
           .dim_k = 128, .dim_v = 128, .gate_scale = 0.04, .pad = 0};
    Tensors tensors = test::make_inputs(c, 1);
    const auto expected = test::reference(c, tensors);
    tensors["dh0"];
    Tensors interp = tensors;
    auto t0 = std::chrono::steady_clock::now();
    const auto fault = run_on_host(plan, c.launch(), tensors, {});
    auto t1 = std::chrono::steady_clock::now();
    MESSAGE(strategy << " " << std::chrono::duration<double>(t1 - t0).count() << " s " << (fault ? fault->text : ""));
    REQUIRE(!fault);
    interpret(plan, c.launch(), interp, {});
    auto t2 = std::chrono::steady_clock::now();
    MESSAGE("interp " << std::chrono::duration<double>(t2 - t1).count());
    for (const auto& [name, t] : interp) {
      const auto a = test::values(tensors.at(name)), b = test::values(t);
      std::string e = expected.contains(name) ? fmt::format("{} vs interp {}", test::relative_error(a, expected.at(name)), test::relative_error(b, expected.at(name))) : "";
      MESSAGE(name << " equal " << (tensors.at(name).bytes == t.bytes) << " rel " << test::relative_error(a, b) << "   float64 " << e);
    }
  }
}
}  // namespace gdr::host
