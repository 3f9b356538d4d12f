#include "compile/nvrtc.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "config/registry.hpp"
#include "core/error.hpp"
#include "emit/emit.hpp"
#include "plan/planner.hpp"

namespace gdr {
namespace {

const NvrtcSearch kSearch = {"", "", {"/usr/local", "/usr"}};

// Skips where there is no NVRTC; every other failure to open one is a failure.
std::shared_ptr<const Nvrtc> open_nvrtc() {
  try {
    return Nvrtc::open(kSearch);
  } catch (const Error& error) {
    MESSAGE("skipped: " << error.what());
    REQUIRE(std::string(error.code()) == "GDR-N01");
    return nullptr;
  }
}

}  // namespace

TEST_CASE("a library that is not there is an error that lists what was tried") {
  try {
    Nvrtc::open({"/nowhere/libnvrtc.so", "", {}});
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compilation);
    CHECK(std::string(error.what()).find("/nowhere/libnvrtc.so") != std::string::npos);
  }
}

TEST_CASE("text that does not compile is a failure with the compiler's log and the options") {
  const auto nvrtc = open_nvrtc();
  if (!nvrtc) return;
  const auto outcome = nvrtc->compile("extern \"C\" __global__ void f() { no_such_thing(); }", "f", "sm_90");
  const auto* failure = std::get_if<CompileFailure>(&outcome);
  REQUIRE(failure);
  CHECK(failure->log.find("no_such_thing") != std::string::npos);
  CHECK(failure->options == compile_options("sm_90"));
  try {
    throw_failure(*failure, "/folder/f.cu");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(error.kind() == ErrorKind::compilation);
    CHECK(text.starts_with("GDR-N02 f for sm_90: NVRTC_ERROR_COMPILATION (NVRTC "));
    for (const char* part : {"no_such_thing", "--gpu-architecture=sm_90", "The source is /folder/f.cu."})
      CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  }
}

TEST_CASE("figures of the compiler's log are read") {
  const auto nvrtc = open_nvrtc();
  if (!nvrtc) return;
  const auto outcome = nvrtc->compile(
      "extern \"C\" __global__ void f(float* x, int n) { __shared__ float s[32]; float a[64]; s[n % 32] = x[n];\n"
      "for (int i = 0; i < 64; ++i) a[i * n % 64] = x[i] + s[i % 32]; x[0] = a[n % 64]; }",
      "f", "sm_90");
  const auto* kernel = std::get_if<CompiledKernel>(&outcome);
  REQUIRE(kernel);
  CHECK(kernel->registers > 0);
  CHECK(kernel->local_bytes == 256);
  CHECK(kernel->smem_bytes == 128);
  CHECK(kernel->spill_bytes == 0);
  CHECK(kernel->seconds > 0);
  CHECK(kernel->cubin.size() > 500);
}

// With the registers that each role has. The estimate of src/plan/registers is calibrated on NVRTC 13.0.
TEST_CASE("every kernel of the default plan compiles for every architecture without spills") {
  const auto nvrtc = open_nvrtc();
  if (!nvrtc) return;
  for (const std::string_view name : config_names(ConfigKind::arch)) {
    PlanRequest request;
    request.arch = load_arch(std::string(name));
    request.shape = load_shape("qwen3_next");
    request.budget = load_budget("default");
    const Plan plan = make_plan(request).plan;
    std::vector<std::string> targets;
    for (const CompileTarget& target : request.arch.targets) targets.push_back(target.name);
    const std::optional<std::string> target = nvrtc->choose_target(targets);
    REQUIRE(target);
    for (const Kernel& kernel : plan.kernels) {
      const auto outcome = nvrtc->compile(emit_kernel(plan, kernel), kernel.name, *target);
      const auto* compiled = std::get_if<CompiledKernel>(&outcome);
      REQUIRE(compiled);
      fmt::print("{} for {}: {} registers\n", kernel.name, *target, compiled->registers);
      CHECK(compiled->spill_bytes == 0);
      CHECK(compiled->local_bytes == 0);
    }
  }
}

}  // namespace gdr
