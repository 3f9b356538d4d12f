// Which operations must keep their order: hazards, distances, and what needs no order at all.
#include "plan/dependences.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"

namespace gdr::test {
namespace {

using Texts = std::vector<std::string>;

const std::vector<TensorSpec> kTensors = {
    {"x", TensorKind::input, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false},
    {"y", TensorKind::output, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};

std::string text(const Kernel& kernel, const Dependence& d) {
  const char* hazard = d.hazard == Hazard::read_after_write   ? "RAW"
                       : d.hazard == Hazard::write_after_read ? "WAR"
                                                              : "WAW";
  const auto tile = [&](int t) { return kernel.tiles[static_cast<std::size_t>(t)].name; };
  const auto id = [&](int op) { return kernel.ops[static_cast<std::size_t>(op)].id; };
  const std::string tiles = d.tile_before == d.tile_after
                                ? tile(d.tile_before)
                                : fmt::format("{} then {}", tile(d.tile_before), tile(d.tile_after));
  return fmt::format("{} {} -> {} +{} ({})", hazard, id(d.before), id(d.after), d.distance, tiles);
}

Texts sorted_texts(const Kernel& kernel, const std::vector<int>& bases) {
  Texts texts;
  for (const Dependence& d : dependences(kernel, footprints(kernel), bases)) texts.push_back(text(kernel, d));
  std::sort(texts.begin(), texts.end());
  return texts;
}

struct Row {
  std::string name;
  LoopKind loop;
  std::function<void(KernelBuilder&)> ops;
  Texts expected;
};

KernelBuilder hand_made(LoopKind loop) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, loop, kTensors);
  build.role("load", 1);
  build.role("calc", 4);
  build.role("one", 1);
  build.acc("calc", "D", 64, 64, {4, 1});
  build.acc("calc", "E", 64, 64, {2, 2});
  build.acc("one", "Q", 64, 64, {1, 1});
  return build;
}

constexpr auto kLoop = LoopKind::chunks_ascending;

}  // namespace

TEST_CASE("dependences by hand") {
  const Row rows[] = {
      {"producer and consumer: data this iteration, the slot again in the next",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.copy_in("load", "x", "x", "", Where::all);
         b.load("calc", "D", "x", "");
       },
       {"RAW x.in -> D.load +0 (x)", "WAR D.load -> x.in +1 (x)"}},
      // The copy overwrites its own of two iterations before, which has been read since: no hazard of its own.
      {"two stages: the slot comes back after two iterations",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16, {.stages = 2});
         b.copy_in("load", "x", "x", "", Where::all);
         b.load("calc", "D", "x", "");
       },
       {"RAW x.in -> D.load +0 (x)", "WAR D.load -> x.in +2 (x)"}},
      {"a body that runs once has no next iteration",
       LoopKind::once,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.copy_in("load", "x", "x", "", Where::all);
         b.load("calc", "D", "x", "");
       },
       {"RAW x.in -> D.load +0 (x)"}},
      {"one warp is ordered with itself: every warp loads what it stored",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.store("calc", "x", "D", "");
         b.load("calc", "D", "x", "");
       },
       {}},
      {"the same elements under another warp grid",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.store("calc", "x", "D", "");
         b.load("calc", "E", "x", "");
       },
       {"RAW x.store -> E.load +0 (x)", "WAR E.load -> x.store +1 (x)"}},
      {"a role of one warp needs nothing",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.store("one", "x", "Q", "");
         b.mma("one", "Q", "x", "x", "", true);
       },
       {}},
      // A copy lands when it likes, also for the warp that issued it: its reader waits, and so does the next copy, for
      // the read between them orders both.
      {"copies, always: one warp that reads what it copies",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.copy_in("one", "x", "x", "", Where::all);
         b.load("one", "Q", "x", "");
       },
       {"RAW x.in -> Q.load +0 (x)"}},
      {"copies, always: two copies of one warp to the same bytes",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.copy_in("one", "x", "x", "", Where::all);
       },
       {"WAW x.in -> x.in +1 (x)"}},
      {"written twice without a read between",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.store("calc", "x", "D", "");
         b.store("calc", "x", "E", "");
       },
       {"WAW x.store -> x.store2 +0 (x)", "WAW x.store2 -> x.store +1 (x)"}},
      {"parts that take turns in one slot",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16, {.parts = 2});
         for (const int part : {0, 1}) {
           b.copy_in("load", View("x").part(part), "x", "", Where::all);
           b.load("one", View("Q").rows(32 * part, 32 * part + 32), View("x").part(part), "");
         }
       },
       {"RAW x.in -> Q.load +0 (x)", "RAW x.in2 -> Q.load2 +0 (x)", "WAR Q.load -> x.in2 +0 (x)",
        "WAR Q.load2 -> x.in +1 (x)"}},
      {"parts with a slot each do not meet",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16, {.parts = 2, .resident = 2});
         for (const int part : {0, 1}) {
           b.copy_in("load", View("x").part(part), "x", "", Where::all);
           b.load("one", View("Q").rows(32 * part, 32 * part + 32), View("x").part(part), "");
         }
       },
       {"RAW x.in -> Q.load +0 (x)", "RAW x.in2 -> Q.load2 +0 (x)", "WAR Q.load -> x.in +1 (x)",
        "WAR Q.load2 -> x.in2 +1 (x)"}},
      {"readers do not depend on each other; a writer waits for all of them",
       kLoop,
       [](KernelBuilder& b) {
         b.smem("x", 64, 64, DType::bf16);
         b.copy_in("load", "x", "x", "", Where::all);
         b.load("calc", "D", "x", "");
         b.load("one", "Q", "x", "");
       },
       {"RAW x.in -> D.load +0 (x)", "RAW x.in -> Q.load +0 (x)", "WAR D.load -> x.in +1 (x)",
        "WAR Q.load -> x.in +1 (x)"}},
      {"accumulating reads and writes: the sums of one iteration follow those before",
       kLoop,
       [](KernelBuilder& b) {
         b.vec("s", 64, 2);
         b.reduce("calc", ReduceAxis::cols, "s[i] = E[i,j]", "E", "");
         b.reduce("calc", ReduceAxis::cols, "s[i] = E[i,j]", "E", "", true);
         b.map("one", "Q[i,j] = s[i]", "");
       },
       // The two sums of one warp are its own.
       {"RAW s.sum2 -> Q.map +0 (s)", "WAR Q.map -> s.sum +1 (s)"}},
      {"only the elements that are read: the last one",
       kLoop,
       [](KernelBuilder& b) {
         b.vec("s", 64);
         b.map("calc", "s[i] = 1", "");
         b.map("one", "Q[i,j] = s[C-1]", "");
       },
       {"RAW s.map -> Q.map +0 (s)", "WAR Q.map -> s.map +1 (s)"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    KernelBuilder build = hand_made(row.loop);
    row.ops(build);
    const Kernel kernel = std::move(build).finish();
    CHECK(fmt::format("{}", fmt::join(sorted_texts(kernel, separate_bases(kernel)), "; ")) ==
          fmt::format("{}", fmt::join(row.expected, "; ")));
  }
}

TEST_CASE("tiles that share bytes depend on each other") {
  KernelBuilder build = hand_made(kLoop);
  build.smem("x", 64, 64, DType::bf16);
  build.smem("y", 64, 64, DType::bf16);
  build.copy_in("load", "x", "x", "", Where::all);
  build.load("calc", "D", "x", "");
  build.store("calc", "y", "D", "");
  build.load("one", "Q", "y", "");
  Kernel kernel = std::move(build).finish();

  SUBCASE("apart") {
    CHECK(sorted_texts(kernel, separate_bases(kernel)) ==
          Texts{"RAW x.in -> D.load +0 (x)", "RAW y.store -> Q.load +0 (y)", "WAR D.load -> x.in +1 (x)",
                "WAR Q.load -> y.store +1 (y)"});
  }
  // Each warp reads the rows of x over which it then writes y: nothing to wait for.
  SUBCASE("on the same bytes") {
    for (Tile& tile : kernel.tiles) tile.offset_bytes = tile.space == Space::smem ? 256 : -1;
    CHECK(packed_bases(kernel)[3] == 256 / kCellBytes);
    CHECK(sorted_texts(kernel, packed_bases(kernel)) ==
          Texts{"RAW x.in -> D.load +0 (x)", "RAW y.store -> Q.load +0 (y)", "WAR Q.load -> x.in +1 (y then x)"});
  }
  // Rows 0 to 31 of y lie on rows 32 to 63 of x, which other warps read.
  SUBCASE("half over half") {
    kernel.tiles[3].offset_bytes = 0;
    kernel.tiles[4].offset_bytes = 64 * 128 / 2;
    CHECK(sorted_texts(kernel, packed_bases(kernel)) ==
          Texts{"RAW x.in -> D.load +0 (x)", "RAW y.store -> Q.load +0 (y)", "WAR D.load -> x.in +1 (x)",
                "WAR D.load -> y.store +0 (x then y)", "WAR Q.load -> x.in +1 (y then x)",
                "WAR Q.load -> y.store +1 (y)"});
  }
}

TEST_CASE("address spaces before and after packing") {
  KernelBuilder build = hand_made(kLoop);
  build.smem("x", 64, 64, DType::bf16, {.stages = 3});
  build.vec("v", 64, 1, 2);
  build.smem("y", 16, 64, DType::bf16);
  const Kernel kernel = std::move(build).finish();
  CHECK(max_stages(kernel) == 3);
  const std::vector<int> bases = separate_bases(kernel);
  CHECK(bases[4] - bases[3] == 3 * 64 * 128 / kCellBytes);
  CHECK(bases[5] - bases[4] == 2 * 64 * 4 / kCellBytes);
}

}  // namespace gdr::test
