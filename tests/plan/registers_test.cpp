// Fragments alive at once, and what roles are given.
#include "plan/registers.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "config/registry.hpp"
#include "schedule/builder.hpp"

namespace gdr::test {
namespace {

const std::vector<TensorSpec> kTensors = {
    {"t", TensorKind::output, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};

// Accumulators A, B, C of 64 x 64 over 4 warps: 32 registers a thread each; F, their bf16 fragments: 16.
KernelBuilder hand_made(LoopKind loop) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, loop, kTensors);
  build.role("calc", 4);
  build.smem("x", 64, 64, DType::bf16);
  for (const char* name : {"A", "B", "C"}) build.acc("calc", name, 64, 64, {4, 1});
  build.frag("calc", "F", 64, 64, DType::bf16, {4, 1});
  return build;
}

constexpr LoopKind kLoop = LoopKind::chunks_ascending;

// Roles of these warps, each with an accumulator of `registers` a thread (0: none) alive all through the loop.
struct Wants {
  int warps, registers;
};
Kernel kernel_of(const std::vector<Wants>& roles) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, kLoop, kTensors);
  for (std::size_t r = 0; r < roles.size(); ++r) {
    const std::string role = "role" + std::to_string(r), tile = "acc" + std::to_string(r);
    build.role(role, roles[r].warps);
    if (roles[r].registers == 0) continue;
    build.acc(role, tile, 16 * roles[r].warps, 2 * roles[r].registers, {roles[r].warps, 1});
    build.map(role, tile + "[i,j] = 2 * " + tile + "[i,j]", "");
  }
  return std::move(build).finish();
}

}  // namespace

TEST_CASE("fragments alive at once") {
  struct Row {
    std::string name;
    LoopKind loop;
    std::function<void(KernelBuilder&)> ops;
    int expected;
  };
  const Row rows[] = {
      {"one after the other, not together", kLoop,
       [](KernelBuilder& b) {
         b.load("calc", "A", "x", "");
         b.copy_out("calc", "t", "A", "", Where::all);
         b.load("calc", "B", "x", "");
         b.copy_out("calc", "t", "B", "", Where::all);
       },
       32},
      {"together where one makes the other", kLoop,
       [](KernelBuilder& b) {
         b.load("calc", "A", "x", "");
         b.relayout("calc", "F", "A", "");
         b.mma("calc", "B", "F", "x", "", false);
         b.copy_out("calc", "t", "B", "", Where::all);
       },
       32 + 16},
      {"carried through the loop: alive where it is not touched", kLoop,
       [](KernelBuilder& b) {
         b.mma("calc", "A", "x", "x", "", true);
         b.load("calc", "B", "x", "");
         b.copy_out("calc", "t", "B", "", Where::all);
       },
       32 + 32},
      {"the same in a body that runs once: dead when last used", LoopKind::once,
       [](KernelBuilder& b) {
         b.mma("calc", "A", "x", "x", "", true);
         b.load("calc", "B", "x", "");
         b.copy_out("calc", "t", "B", "", Where::all);
       },
       32},
      {"written anew: dead between its last use and then", kLoop,
       [](KernelBuilder& b) {
         b.load("calc", "A", "x", "");
         b.copy_out("calc", "t", "A", "", Where::all);
         b.load("calc", "B", "x", "");
         b.relayout("calc", "C", "B", "");
         b.copy_out("calc", "t", "C", "", Where::all);
         b.load("calc", "A", "x", "");
         b.copy_out("calc", "t", "A", "", Where::all);
       },
       32 + 32},
      {"a write of half of it leaves the other half alive", kLoop,
       [](KernelBuilder& b) {
         b.load("calc", "A", "x", "");
         b.copy_out("calc", "t", "A", "", Where::all);
         b.load("calc", "B", "x", "");
         b.relayout("calc", "C", "B", "");
         b.copy_out("calc", "t", "C", "", Where::all);
         b.load("calc", View("A").cols(0, 32), View("x").cols(0, 32), "");
         b.copy_out("calc", "t", "A", "", Where::all);
       },
       32 + 32 + 32},
      {"alive at the end for the beginning of the next iteration", kLoop,
       [](KernelBuilder& b) {
         b.copy_out("calc", "t", "A", "", Where::all);
         b.load("calc", "B", "x", "");
         b.copy_out("calc", "t", "B", "", Where::all);
         b.load("calc", "A", "x", "");
         b.load("calc", "C", "x", "");
         b.copy_out("calc", "t", "C", "", Where::all);
       },
       32 + 32},
      {"written and never read: alive at its write", kLoop,
       [](KernelBuilder& b) {
         b.load("calc", "A", "x", "");
         b.load("calc", "B", "x", "");
       },
       32},
      {"no fragments", kLoop, [](KernelBuilder&) {}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    KernelBuilder build = hand_made(row.loop);
    row.ops(build);
    const Kernel kernel = std::move(build).finish();
    CHECK(live_registers(kernel, kernel.roles[0]) == row.expected);
  }
}

TEST_CASE("register allocation: one count for all, one a role, or a reason why not") {
  struct Row {
    std::string name;
    const char* arch;
    std::vector<Wants> roles;
    int blocks_per_sm;
    std::vector<int> expected;  // empty: does not fit
    bool setmaxnreg;
    const char* reason;
  };
  const Row rows[] = {
      {"all get an equal share, in eights", "sm_80", {{4, 64}, {4, 0}}, 1, {248, 248}, false, ""},
      {"never more than a thread can have", "sm_80", {{1, 64}}, 1, {248}, false, ""},
      // 65,536 / 768 = 85, in eights 80.
      // Nine warps take the room of twelve: 65,536 / 384 = 170, in eights 168.
      {"warps fill the quarters of an SM", "sm_80", {{8, 96}, {1, 0}}, 1, {168, 168}, false, ""},
      {"an equal share of 24 warps", "sm_80", {{8, 48}, {16, 0}}, 1, {80, 80}, false, ""},
      {"blocks that share an SM share its registers", "sm_80", {{8, 88}}, 2, {128}, false, ""},
      {"two blocks: 128 a thread are not enough for 129",
       "sm_80",
       {{8, 97}},
       2,
       {},
       false,
       "registers: 129 a thread needed (role0 129 x 256), 256 threads get 128"},
      // 512 threads: 128 each do not suffice. setmaxnreg: 8 warps x 176 + 8 x 24 leave 14,336 of 65,536 registers: 8
      // more for those that hold fragments, 16 for those that copy, the rest again for the first.
      {"roles of their own where the target has setmaxnreg", "sm_90", {{8, 136}, {8, 0}}, 1, {216, 40}, true, ""},
      {"the rest goes on to others when one has all it can take",
       "sm_90",
       {{4, 136}, {4, 0}},
       1,
       {248, 248},
       false,
       ""},
      {"roles that share a warpgroup get the same", "sm_90", {{8, 112}, {6, 40}, {2, 0}}, 1, {168, 88, 88}, true, ""},
      {"the same kernel on a target without it",
       "sm_80",
       {{8, 136}, {8, 0}},
       1,
       {},
       false,
       "registers: 168 a thread needed (role0 168 x 256, role1 24 x 256), 512 threads get 128"},
      {"setmaxnreg moves whole warpgroups only",
       "sm_90",
       {{8, 136}, {6, 0}, {1, 0}},
       1,
       {},
       false,
       "registers: 168 a thread needed (role0 168 x 256, role1 24 x 192, role2 24 x 32), 480 threads get 128"},
      {"what a role gives away is all there is",
       "sm_90",
       {{8, 136}, {8, 80}},
       1,
       {},
       false,
       "registers: role0 168 x 256, role1 112 x 256 make 75776 with 8 more for each that holds fragments, the block "
       "has "
       "65536"},
      {"no thread gets more than 240",
       "sm_90",
       {{4, 216}, {12, 0}},
       1,
       {},
       false,
       "registers: 248 a thread needed (role0 248 x 128, role1 24 x 384), 512 threads get 128"},
      {"too many threads", "sm_90", {{33, 0}}, 1, {}, false, "1056 threads, sm_90 allows 1024 a block"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Kernel kernel = kernel_of(row.roles);
    kernel.blocks_per_sm = row.blocks_per_sm;
    const RegisterAllocation found = allocate_registers(kernel, load_arch(row.arch));
    CHECK(found.fits == !row.expected.empty());
    CHECK(found.registers == row.expected);
    CHECK(found.setmaxnreg == row.setmaxnreg);
    CHECK(found.reason == row.reason);
    if (!found.fits) continue;
    for (std::size_t r = 0; r < row.roles.size(); ++r) {
      const int live = row.roles[r].registers;
      CHECK(found.needed[r] == (live == 0 ? kCopyingRegisters : live + kWorkingRegisters));
      CHECK(found.registers[r] >= found.needed[r]);
    }
  }
}

}  // namespace gdr::test
