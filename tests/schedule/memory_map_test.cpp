#include "schedule/memory_map.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sample_plan.hpp"

using namespace gdr;

namespace {

// "k.in-dS.mma" for each life, with "pN:" before it in a split tile and ">" at its end if it wraps.
std::string lives_text(const Kernel& kernel, const TileFacts& facts) {
  std::string text;
  for (const LiveRange& life : facts.lives) {
    if (!text.empty()) text += ' ';
    if (facts.tile->parts > 1) text += "p" + std::to_string(life.part) + ":";
    text += kernel.ops[static_cast<std::size_t>(life.first_op)].id + "-" +
            kernel.ops[static_cast<std::size_t>(life.last_op)].id + (life.wraps ? ">" : "");
  }
  return text;
}

// A loop or single pass with one 4 x 16 tile and the given accesses, one op each.
struct Access1 {
  Access access;
  Range rows;
};
std::string lives_of(LoopKind loop, const std::vector<Access1>& accesses) {
  Kernel kernel;
  kernel.loop = loop;
  Tile tile;
  tile.name = "t";
  tile.rows = 4;
  tile.cols = 16;
  tile.smem.panel_cols = 16;
  kernel.tiles.push_back(tile);
  for (const Access1& access : accesses) {
    Op op;
    op.id = std::to_string(kernel.ops.size());
    op.operands.push_back({.name = "t", .access = access.access, .rows = access.rows, .cols = {0, 16}});
    kernel.ops.push_back(op);
  }
  return lives_text(kernel, memory_map(kernel)[0]);
}

}  // namespace

TEST_CASE("tiles of the sample live and alias as its steps say") {
  const Plan plan = test::sample_plan();
  const Kernel& kernel = plan.kernels[0];
  struct Row {
    std::string name;
    int bytes;
    const char* lives;
    std::vector<std::string> aliases;
  };
  const Row kRows[] = {
      {"k", 4096, "k.in-dS.mma", {}},
      {"do", 4096, "do.in-d.mma2", {"e"}},
      {"h", 4096, "p0:h.in-u.mma p1:h.in2-u.mma2", {"x"}},
      {"ds", 8192, "ds.store-d.mma>", {}},
      {"p", 1536, "p.store-d.mma2", {}},
      {"x", 4096, "x.store-dv.out", {"h"}},
      {"e", 4096, "e.store-dS.mma", {"do"}},
      {"gam", 256, "gam.in-dS.mma", {}},
  };
  const std::vector<TileFacts> map = memory_map(kernel);
  REQUIRE(map.size() == std::size(kRows));
  for (std::size_t i = 0; i < map.size(); ++i) {
    CAPTURE(kRows[i].name);
    CHECK(map[i].tile->name == kRows[i].name);
    CHECK(map[i].bytes == kRows[i].bytes);
    CHECK(lives_text(kernel, map[i]) == kRows[i].lives);
    CHECK(map[i].aliases == kRows[i].aliases);
  }
  CHECK(map[0].uses.size() == 6);  // k.in, P.mma, d.mma, u.mma, u.mma2, dS.mma
  CHECK(map[0].uses[0].writes);
  CHECK_FALSE(map[0].uses[0].reads);
  CHECK(map[0].uses[1].reads);
}

TEST_CASE("a life goes from a write to the last read of what was written") {
  constexpr Access r = Access::read, w = Access::write, a = Access::accumulate;
  constexpr Range all{0, 4}, top{0, 2}, bottom{2, 4};
  constexpr LoopKind loop = LoopKind::chunks_ascending, once = LoopKind::once;
  struct Row {
    std::string name;
    LoopKind kind;
    std::vector<Access1> accesses;
    const char* lives;
  };
  const Row kRows[] = {
      {"one value", loop, {{w, all}, {r, all}, {r, all}}, "0-2"},
      {"two values", loop, {{w, all}, {r, all}, {w, all}, {r, all}}, "0-1 2-3"},
      {"never read", loop, {{w, all}, {w, all}, {r, all}}, "0-0 1-2"},
      {"accumulated", loop, {{w, all}, {a, all}, {r, all}}, "0-2"},
      {"carried to the next iteration", loop, {{r, all}, {w, all}, {w, top}}, "1-0>"},
      {"always alive", loop, {{a, all}, {r, all}}, "0-1"},
      {"no next iteration", once, {{r, all}, {w, all}}, "0-0 1-1"},
      {"filled in halves", loop, {{w, top}, {w, bottom}, {r, all}}, "0-2"},
      {"one half rewritten while the other is alive", loop, {{w, all}, {r, top}, {w, top}, {r, all}}, "0-3"},
      {"halves one after the other", loop, {{w, top}, {r, top}, {w, bottom}, {r, bottom}}, "0-1 2-3"},
      {"not used", loop, {}, ""},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    CHECK(lives_of(row.kind, row.accesses) == row.lives);
  }
}

TEST_CASE("tiles without a place alias nothing") {
  Plan plan = test::sample_plan();
  for (Tile& tile : plan.kernels[0].tiles) tile.offset_bytes = -1;
  for (const TileFacts& facts : memory_map(plan.kernels[0])) CHECK(facts.aliases.empty());
}
