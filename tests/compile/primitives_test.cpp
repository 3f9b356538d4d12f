// Every primitive of templates/device/gpu.cuh, compiled for every target that a shipped architecture names and that
// this NVRTC knows. What they do is tested on the host (tests/host), by the implementation with the same signatures.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "compile/nvrtc.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "emit/texts.hpp"

namespace gdr {
namespace {

// One use of each primitive but set_registers, which few targets have.
constexpr const char* kUses = R"(
GDR_KERNEL(128, 1) uses(float* out, const u32* in, int n) {
  at_op<3>(n);
  const int me = thread_index() + block_index();
  if (me == 0) barrier_init(1024, 128);
  block_sync();
  copy_16(me % 32 * 16, in + me * 4, n > 5);
  barrier_arrive_after_copies(1024);
  barrier_wait(1024, 0);
  barrier_arrive(1024);
  role_sync<1, 64>();
  warp_sync();
  u32 a[4], b[4];
  load_matrices(a, me % 32 * 16);
  load_matrices_transposed(b, me % 32 * 16);
  float d[4] = {float_of_bits(global_load(in)), float_of_fp16(shared_load<u16>(2)), exp_of(1.0f * n), 0.0f};
  matrix_product(bf16{}, d, a, b[0], b[1]);
  matrix_product(fp16{}, d, a, b[2], b[3]);
  d[0] += shuffle_xor(d[1], 1) + shuffle_up(d[1], 2) + shuffle_down(d[2], 3) + shuffle_from(d[3], 4);
  shared_store<u32>(512 + me * 4, pack_bf16(d[0], d[1]) ^ pack_fp16(d[2], d[3]));
  global_store(out + me, d[0] + d[1] + d[2] + d[3] + float_of_bits(shared_load<u32>(512 + me * 4)));
}
)";
constexpr const char* kRegisters = R"(
GDR_KERNEL(256, 1) registers(float* out) {
  if (thread_index() < 128) {
    set_registers<24, false>();
  } else {
    set_registers<240, true>();
    global_store(out, 1.0f);
  }
}
)";

}  // namespace

TEST_CASE("every primitive compiles for every target") {
  std::shared_ptr<const Nvrtc> nvrtc;
  try {
    nvrtc = Nvrtc::open({"", "", {"/usr/local", "/usr"}});
  } catch (const Error& error) {
    MESSAGE("skipped: " << error.what());
    REQUIRE(std::string(error.code()) == "GDR-N01");
    return;
  }
  const std::string primitives(template_text("device/gpu.cuh"));
  std::set<std::string> compiled, with_registers;
  for (const std::string_view name : config_names(ConfigKind::arch))
    for (const CompileTarget& target : load_arch(std::string(name)).targets) {
      if (nvrtc->choose_target({target.name}) != target.name || !compiled.insert(target.name).second) continue;
      CAPTURE(target.name);
      CHECK_NOTHROW(nvrtc->compile(primitives + kUses, "uses", target.name));
      if (!target.features.setmaxnreg) continue;
      with_registers.insert(target.name);
      CHECK_NOTHROW(nvrtc->compile(primitives + kRegisters, "registers", target.name));
    }
  MESSAGE(fmt::format("{} targets, {} of them with setmaxnreg", compiled.size(), with_registers.size()));
  CHECK(compiled.size() >= 7);
  CHECK_FALSE(with_registers.empty());
}

}  // namespace gdr
