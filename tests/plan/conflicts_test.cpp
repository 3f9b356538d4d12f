// Which tiles live when, and which may lie on the same bytes under each level of sharing.
#include "plan/conflicts.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "plan/footprint.hpp"
#include "plan/synchronise.hpp"
#include "schedule/builder.hpp"

namespace gdr::test {
namespace {

const std::vector<TensorSpec> kTensors = {
    {"t", TensorKind::input, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};

// Tiles x and y of 64 x 64, vectors v and w; `load` copies, `calc` (4 warps) and `one` read and write.
Kernel hand_made(const std::function<void(KernelBuilder&)>& ops, KernelBuilder::Smem x = {}) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, LoopKind::chunks_ascending, kTensors);
  build.role("load", 1);
  build.role("calc", 4);
  build.role("one", 1);
  build.smem("x", 64, 64, DType::bf16, x);
  build.smem("y", 64, 64, DType::bf16);
  build.acc("calc", "D", 64, 64, {4, 1});
  build.acc("one", "Q", 64, 64, {1, 1});
  build.vec("v", 64);
  build.vec("w", 64);
  ops(build);
  return std::move(build).finish();
}

std::string lives_text(const std::vector<Life>& lives) {
  std::string text;
  for (const Life& life : lives)
    text +=
        fmt::format("{}{}..{} ({})", text.empty() ? "" : ", ", life.first, life.last, fmt::join(life.accesses, " "));
  return text;
}

struct Conflicts {
  bool none, free, matrices, any;
};

// Do two tiles conflict, at each level?
Conflicts conflicts_of(const Kernel& kernel, std::size_t x, std::size_t y) {
  const std::vector<Footprint> touched = footprints(kernel);
  const std::vector<BodyOp> ops = body_ops(kernel);
  const int roles = static_cast<int>(kernel.roles.size()), distance = max_stages(kernel);
  const Synchronisation own =
      order_dependences(ops, roles, dependences(kernel, touched, separate_bases(kernel)), distance);
  const HappensBefore order(ops, roles, own.waits, own.meetings, distance + 1);
  const auto at = [&](Aliasing aliasing) {
    const ConflictGraph graph = conflict_graph(kernel, tile_lives(kernel, touched), order, aliasing);
    CHECK(graph[x][y] == graph[y][x]);
    for (std::size_t t = 0; t < kernel.tiles.size(); ++t) {
      CHECK_FALSE(graph[t][t]);
      for (const std::size_t reg : {std::size_t{2}, std::size_t{3}}) CHECK_FALSE(graph[t][reg]);
    }
    return static_cast<bool>(graph[x][y]);
  };
  return {at(Aliasing::none), at(Aliasing::free), at(Aliasing::matrices), at(Aliasing::any)};
}

}  // namespace

TEST_CASE("lives of a tile") {
  struct Row {
    std::string name;
    std::function<void(KernelBuilder&)> ops;
    KernelBuilder::Smem x;
    std::string expected;
  };
  const Row rows[] = {
      {"from the write to the last read",
       [](KernelBuilder& b) {
         b.copy_in("load", "x", "t", "", Where::all);
         b.load("calc", "D", "x", "");
         b.store("calc", "y", "D", "");
         b.load("one", "Q", "x", "");
       },
       {},
       "0..3 (0 1 3)"},
      {"written again after its last read: two lives",
       [](KernelBuilder& b) {
         b.copy_in("load", "x", "t", "", Where::all);
         b.load("calc", "D", "x", "");
         b.store("calc", "x", "D", "");
         b.load("one", "Q", "x", "");
       },
       {},
       "0..1 (0 1), 2..3 (2 3)"},
      {"written and never read",
       [](KernelBuilder& b) {
         b.store("calc", "y", "D", "");
         b.store("calc", "x", "D", "");
       },
       {},
       "1..1 (1)"},
      {"read before it is written: its value comes from the iteration before",
       [](KernelBuilder& b) {
         b.load("calc", "D", "x", "");
         b.store("calc", "x", "D", "");
         b.load("one", "Q", "y", "");
       },
       {},
       "0..2 (0 1)"},
      {"several stages live on into the next iterations",
       [](KernelBuilder& b) {
         b.copy_in("load", "x", "t", "", Where::all);
         b.load("calc", "D", "x", "");
         b.load("one", "Q", "y", "");
       },
       {.stages = 2},
       "0..2 (0 1)"},
      {"parts in one slot, one after the other",
       [](KernelBuilder& b) {
         for (const int part : {0, 1}) {
           b.copy_in("load", View("x").part(part), "t", "", Where::all);
           b.load("one", View("Q").rows(32 * part, 32 * part + 32), View("x").part(part), "");
         }
       },
       {.parts = 2},
       "0..1 (0 1), 2..3 (2 3)"},
      {"parts in slots of their own live together",
       [](KernelBuilder& b) {
         for (const int part : {0, 1}) b.copy_in("load", View("x").part(part), "t", "", Where::all);
         for (const int part : {0, 1})
           b.load("one", View("Q").rows(32 * part, 32 * part + 32), View("x").part(part), "");
       },
       {.parts = 2, .resident = 2},
       "0..3 (0 1 2 3)"},
      {"half of it is read late",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("one", View("Q").rows(0, 32), View("x").rows(0, 32), "");
         b.store("calc", "y", "D", "");
         b.load("one", View("Q").rows(32, 64), View("x").rows(32, 64), "");
       },
       {},
       "0..3 (0 1 3)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Kernel kernel = hand_made(row.ops, row.x);
    const std::vector<std::vector<Life>> lives = tile_lives(kernel, footprints(kernel));
    CHECK(lives_text(lives[0]) == row.expected);
    CHECK(lives[2].empty());
  }
}

TEST_CASE("sharing: none, free, matrices, any") {
  struct Row {
    std::string name;
    std::function<void(KernelBuilder&)> ops;
    KernelBuilder::Smem x;
    Conflicts expected;
  };
  const Row rows[] = {
      {"alive together",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.store("calc", "y", "D", "");
         b.mma("one", "Q", "x", "y", "", false);
       },
       {},
       {true, true, true, true}},
      // y is stored by the role that read x, and x by the role that waited for y: ordered by the data alone.
      {"handed from role to role and back",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("one", "Q", "x", "");
         b.store("one", "y", "Q", "");
         b.load("calc", "D", "y", "");
       },
       {},
       {true, false, false, false}},
      // The copy into y could be issued while x is still read: sharing costs a wait.
      {"one after the other, but nothing says so",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.mma("calc", "D", "x", "x", "", true);
         b.copy_in("load", "y", "t", "", Where::all);
         b.load("one", "Q", "y", "");
       },
       {},
       {true, true, false, false}},
      {"a stage for the next iteration is never free",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("calc", "D", "x", "");
         b.store("calc", "y", "D", "");
         b.load("calc", "D", "y", "");
       },
       {.stages = 2},
       {true, true, true, true}},
      {"inside one role a meeting is enough",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("calc", "D", "x", "");
         b.store("calc", "y", "D", "");
         b.load("calc", "D", "y", "");
       },
       {},
       {true, false, false, false}},
      {"two lives of x around the one of y",
       [](KernelBuilder& b) {
         b.store("calc", "x", "D", "");
         b.load("calc", "D", "x", "");
         b.store("calc", "y", "D", "");
         b.load("calc", "D", "y", "");
         b.store("calc", "x", "D", "");
         b.load("calc", "D", "x", "");
       },
       {},
       {true, false, false, false}},
      {"carried to the next iteration",
       [](KernelBuilder& b) {
         b.load("calc", "D", "x", "");
         b.store("calc", "x", "D", "");
         b.store("calc", "y", "D", "");
         b.load("calc", "D", "y", "");
       },
       {},
       {true, true, true, true}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Conflicts found = conflicts_of(hand_made(row.ops, row.x), 0, 1);
    CHECK(found.none == row.expected.none);
    CHECK(found.free == row.expected.free);
    CHECK(found.matrices == row.expected.matrices);
    CHECK(found.any == row.expected.any);
  }
}

TEST_CASE("sharing: vectors do not wait for each other's bytes unless they must") {
  const Kernel kernel = hand_made([](KernelBuilder& b) {
    b.map("calc", "v[i] = 1", "");
    b.map("calc", "D[i,j] = v[i]", "");
    b.map("one", "w[i] = 2", "");
    b.map("one", "Q[i,j] = w[i]", "");
    b.store("calc", "x", "D", "");
    b.load("calc", "D", "x", "");
  });
  constexpr std::size_t kX = 0, kV = 4, kW = 5;
  for (const auto& [a, b] : {std::pair{kV, kW}, {kX, kW}}) {
    const Conflicts found = conflicts_of(kernel, a, b);
    CHECK(found.none);
    CHECK(found.free);
    CHECK(found.matrices);
    CHECK_FALSE(found.any);
  }
  CHECK_FALSE(conflicts_of(kernel, kX, kV).free);  // both of `calc`: it is free
}

}  // namespace gdr::test
