// configs/arch says which instructions a target has: the compiler takes each of these, and refuses each of the others.
// docs/architectures.md shows the same as a table.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "../support/golden.hpp"
#include "compile/nvrtc.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"

namespace gdr {
namespace {

// What a feature of a config means: instructions, as PTX names them, in use.
struct Instructions {
  std::string_view feature, names, text;
};
constexpr Instructions kInstructions[] = {
    {"cp_async", "cp.async", R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 0;" :: "r"(s), "l"(g));)"},
    {"ldmatrix", "ldmatrix, plain and .trans",
     R"(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(s));)"},
    {"mma_bf16", "mma.sync m16n8k16 bf16",
     R"(asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};" : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
                     : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));)"},
    {"mbarrier", "mbarrier, test_wait; cp.async.mbarrier.arrive",
     R"(asm volatile("{ .reg .pred p; .reg .b64 t; mbarrier.init.shared.b64 [%0], 1; mbarrier.arrive.shared.b64 t, [%0];\n"
                     "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];\n"
                     "mbarrier.test_wait.parity.shared.b64 p, [%0], 0; }" :: "r"(s));)"},
    {"mbarrier_try_wait", "mbarrier.try_wait, expect_tx",
     R"(asm volatile("{ .reg .pred p; .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], 16;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; }" :: "r"(s));)"},
    {"bulk_copy", "cp.async.bulk",
     R"(asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%0];"
                     :: "r"(s), "l"(g));)"},
    {"tensor_copy", "cp.async.bulk.tensor",
     R"(asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %2}], [%0];" :: "r"(s), "l"(g), "r"(0));)"},
    {"stmatrix", "stmatrix",
     R"(asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(s), "r"(r[0]));)"},
    {"clusters", "barrier.cluster", R"(asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");)"},
    {"setmaxnreg", "setmaxnreg", R"(asm volatile("setmaxnreg.inc.sync.aligned.u32 96;");)"},
    {"wgmma", "wgmma", R"(asm volatile("wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned;");)"},
    {"tcgen05", "tcgen05",
     R"(asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(s));)"},
    {"f32x2", "fma.f32x2", R"(asm volatile("fma.rn.f32x2 %0, %1, %1, %1;" : "=l"(d) : "l"(g));)"},
};

const Instructions& instructions_of(std::string_view feature) {
  for (const Instructions& row : kInstructions)
    if (row.feature == feature) return row;
  FAIL("no instructions for the feature " << std::string(feature));
  return kInstructions[0];
}

std::string kernel_with(std::string_view statement) {
  return fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(128, 1) f(const void* g, unsigned s, float* out) {{\n"
      "  unsigned r[6] = {{}}; float f[4] = {{}}; unsigned long long d = 0;\n  {}\n"
      "  out[0] = f[0] + f[1] + f[2] + f[3] + r[0] + r[1] + r[2] + r[3] + d;\n}}\n",
      statement);
}

}  // namespace

TEST_CASE("each target has the instructions that its config says, and no others") {
  std::shared_ptr<const Nvrtc> nvrtc;
  try {
    nvrtc = Nvrtc::open({"", "", {"/usr/local", "/usr"}});
  } catch (const Error& error) {
    REQUIRE(std::string(error.code()) == "GDR-N01");
    MESSAGE("skipped: " << error.what());
    return;
  }
  struct Job {
    std::string target, feature, source;
    bool expected = false, compiled = false;
    std::string log;
  };
  std::vector<Job> jobs;
  for (const std::string_view name : config_names(ConfigKind::arch))
    for (const CompileTarget& target : load_arch(std::string(name)).targets) {
      if (!nvrtc->choose_target({target.name})) {
        MESSAGE("left out: NVRTC " << nvrtc->version() << " does not know " << target.name);
        continue;
      }
      for (const FeatureName& feature : feature_names())
        jobs.push_back({target.name, std::string(feature.name), kernel_with(instructions_of(feature.name).text),
                        target.features.*feature.field, false, ""});
    }
  run_in_parallel(static_cast<int>(std::thread::hardware_concurrency()), static_cast<std::int64_t>(jobs.size()),
                  [&](int, std::int64_t index) {
                    Job& job = jobs[static_cast<std::size_t>(index)];
                    const auto outcome = nvrtc->compile(job.source, "f", job.target);
                    job.compiled = std::holds_alternative<CompiledKernel>(outcome);
                    if (!job.compiled) job.log = std::get<CompileFailure>(outcome).log;
                  });
  for (const Job& job : jobs) {
    CAPTURE(job.target);
    CAPTURE(job.feature);
    CAPTURE(job.log);
    CHECK(job.compiled == job.expected);
    // Refused for the target, and not because the text above is wrong.
    if (job.expected) continue;
    const auto says = [&](const char* words) { return job.log.find(words) != std::string::npos; };
    CHECK((says("requires .target sm_") || says("not supported on .target 'sm_")));
  }
}

TEST_CASE("docs/architectures.md shows what configs/arch says") {
  std::string text =
      "# Architectures and their instructions\n\n"
      "Written by a test from configs/arch (`GDRJIT_UPDATE_GOLDEN=1`), and proved by another: each instruction is "
      "compiled "
      "for\neach target that has it, and refused by the compiler for each that has it not (tests/compile).\n\n"
      "| target | shared memory a block |";
  std::string line = "|---|---|";
  for (const FeatureName& feature : feature_names()) {
    text += fmt::format(" {} |", instructions_of(feature.name).names);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const std::string_view name : config_names(ConfigKind::arch)) {
    const Arch arch = load_arch(std::string(name));
    for (const CompileTarget& target : arch.targets) {
      text += fmt::format("| {} | {} |", target.name, arch.smem_per_block_optin_bytes);
      for (const FeatureName& feature : feature_names()) text += target.features.*feature.field ? " yes |" : " |";
      text += "\n";
    }
  }
  text +=
      "\nOf an architecture's targets the first is taken that the installed NVRTC knows; targets ending in f exist "
      "from\nNVRTC 12.9 on. A plan uses what its target has and nothing else.\n";
  test::check_golden("../../docs/architectures.md", text);
}

}  // namespace gdr
