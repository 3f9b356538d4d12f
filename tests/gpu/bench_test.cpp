// Benchmarks against the fake driver, whose events are a millisecond apart: what is launched, timed and reported.
#include "gpu/bench.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"
#include "device_call.hpp"
#include "support.hpp"

namespace gdr::test {
namespace {

const int kDevices = ::setenv("FAKE_CUDA_DEVICES", "9.0,12.0", 1);

BenchRequest small() {
  BenchRequest request;
  request.rules.arch = "sm_120";
  request.problem = {32, 32, 2};
  request.tokens = 70;
  request.k_heads = 3;
  request.repeats = 4;
  return request;
}

}  // namespace

TEST_CASE("bench: every kernel is launched in each run, and timed between the ends of its neighbours") {
  Place place;
  Notices notices;
  GpuSession session(GDR_FAKE_CUDA, place.options(notices));
  for (const bool check_bits : {false, true}) {
    CAPTURE(check_bits);
    fake().reset();
    BenchRequest request = small();
    request.check_bits = check_bits;
    const BenchResult result = gpu_bench(session, request);
    CHECK(result.arch == "sm_120");
    CHECK(result.strategy == "fused");
    CHECK(result.device.name == "Fake GPU 0");
    CHECK(result.different == 0);
    // These kernels do nothing: dq, dk [70, 3, 32], dv [70, 6, 32], dg and dbeta [70, 6] keep their poison.
    CHECK(result.unwritten == (check_bits ? 70 * (2 * 3 * 32 + 6 * 32 + 2 * 6) : 0));
    REQUIRE(result.kernels.size() == 4);
    CHECK(result.median_ms == 4);
    const std::vector<Launch> launched = launches(fake().log());
    REQUIRE(launched.size() == 4 * (2 + 4));
    for (std::size_t i = 0; i < launched.size(); ++i) {
      const BenchKernel& kernel = result.kernels[i % 4];
      CHECK(launched[i].kernel == kernel.name);
      CHECK(launched[i].blocks == kernel.blocks);
      CHECK(launched[i].threads == kernel.threads);
      CHECK(launched[i].smem_bytes == kernel.launch_smem_bytes);
      CHECK(launched[i].sizes.at("Hv") == "6");
      if (launched[i].tensors.contains("h0")) CHECK(launched[i].tensors.at("h0").data == 0);  // absent
    }
    for (const BenchKernel& kernel : result.kernels) {
      CHECK(kernel.median_ms == 1);
      CHECK(kernel.least_ms == 1);
      CHECK(kernel.registers == 100);
      CHECK(kernel.local_bytes == 16);
      CHECK(kernel.plan_hbm_bytes > 0);
    }
    const std::vector<std::string> log = fake().log();
    const auto fills =
        std::count_if(log.begin(), log.end(), [](const auto& line) { return line.starts_with("fill "); });
    CHECK(fills == (check_bits ? 6 * 6 : 6));  // five outputs, and the cache
  }
  CHECK(fake().alive().starts_with("0 allocations, 0 modules"));
}

TEST_CASE("bench: as many blocks share an SM as on the plan's architecture, unless that is not wanted") {
  Place place;
  Notices notices;
  GpuSession session(GDR_FAKE_CUDA, place.options(notices));
  for (const bool padded : {true, false}) {
    CAPTURE(padded);
    BenchRequest request = small();
    request.problem = {128, 128, 2};
    request.like_planned_arch = padded;
    const BenchResult result = gpu_bench(session, request);
    for (const BenchKernel& kernel : result.kernels) {
      CAPTURE(kernel.name);
      if (!padded) CHECK(kernel.launch_smem_bytes == kernel.plan_smem_bytes);
      if (!padded || kernel.function != "bwd_fused") continue;
      CHECK(kernel.plan_blocks_per_sm == 1);
      CHECK(kernel.blocks_per_sm == 1);
      CHECK(kernel.launch_smem_bytes > 116'000);  // two would not fit
    }
  }
  BenchRequest own = small();
  own.rules.arch = "";
  for (const BenchKernel& kernel : gpu_bench(session, own).kernels)
    CHECK(kernel.launch_smem_bytes == kernel.plan_smem_bytes);
}

}  // namespace gdr::test
