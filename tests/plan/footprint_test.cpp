// Which bytes each warp touches: every op kind by hand, and all ops of real plans against the verifier's own
// footprints.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <set>

#include "plan/footprint.hpp"
#include "plans.hpp"
#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "verify/footprint.hpp"

namespace gdr::test {
namespace {

using Texts = std::vector<std::string>;

// Roles: load (4 warps), wide (16), one (1), calc (4 in a 2 x 2 grid whose columns are dealt by 16: warp 1 owns rows
// [0, 32) and columns [16, 32) and [48, 64)).
KernelBuilder hand_made(const std::vector<TensorSpec>& tensors) {
  KernelBuilder build("hand_made", {GridAxis::sequence}, LoopKind::chunks_ascending, tensors);
  build.role("load", 4);
  build.role("wide", 16);
  build.role("one", 1);
  build.role("calc", 4);
  build.smem("x", 64, 64, DType::bf16);
  build.smem("y", 64, 64, DType::bf16);
  build.smem("split", 64, 64, DType::bf16, {.parts = 2});
  build.smem("tri", 64, 64, DType::bf16, {.lower16 = true});
  build.smem("inv", 64, 64, DType::fp32, {.lower16 = true});
  build.smem("narrow", 64, 16, DType::bf16);
  build.vec("v", 64);
  build.vec("long", 128);
  build.vec("sums", 64, 2);
  build.vec("one_value", 1, 4);
  build.acc("calc", "D", 64, 64, {2, 2, 16});
  build.acc("calc", "A", 64, 64, {4, 1});
  return build;
}

std::string text(const Kernel& kernel, const RectAccess& access) {
  return fmt::format("{}{} {} [{},{}) x [{},{})", access.read ? "r" : "", access.write ? "w" : "",
                     kernel.tiles[static_cast<std::size_t>(access.tile)].name, access.rows.begin, access.rows.end,
                     access.cols.begin, access.cols.end);
}

Texts touched(const Kernel& kernel, int warp) {
  Texts texts;
  for (const RectAccess& access : rect_accesses(kernel, kernel.ops.back(), kernel.role_of(0), warp))
    texts.push_back(text(kernel, access));
  return texts;
}

// By tile and cell, which warps read and which write: "x 0..7 readers writers" for runs of equal cells, in hexadecimal.
Texts cells(const Kernel& kernel) {
  std::map<std::pair<int, int>, CellUse> by_cell;
  const std::vector<Footprint> all = footprints(kernel);
  for (const CellUse& use : all.back().uses) CHECK(by_cell.emplace(std::pair(use.tile, use.cell), use).second);
  Texts runs;
  const CellUse* first = nullptr;
  for (auto at = by_cell.begin(); at != by_cell.end(); ++at) {
    const CellUse& use = at->second;
    if (first == nullptr) first = &use;
    const auto next = std::next(at);
    if (next != by_cell.end() && next->first == std::pair(use.tile, use.cell + 1) &&
        next->second.readers == use.readers && next->second.writers == use.writers)
      continue;
    runs.push_back(fmt::format("{} {}..{} {:x} {:x}", kernel.tiles[static_cast<std::size_t>(use.tile)].name,
                               first->cell, use.cell, use.readers, use.writers));
    first = nullptr;
  }
  return runs;
}

struct Row {
  std::string name;
  std::function<void(KernelBuilder&)> op;
  int warp;
  Texts expected;
};

}  // namespace

TEST_CASE("footprints by hand") {
  const std::vector<TensorSpec> tensors = {
      {"x", TensorKind::input, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};
  const Row rows[] = {
      {"copy_in: rows of the rectangle in turn",
       [](KernelBuilder& b) { b.copy_in("load", View("x").rows(8, 16), "x", "", Where::all); },
       1,
       {"w x [9,10) x [0,64)", "w x [13,14) x [0,64)"}},
      {"copy_in: of part 1 the first row is warp 0's",
       [](KernelBuilder& b) { b.copy_in("wide", View("split").part(1), "x", "", Where::all); },
       0,
       {"w split [32,33) x [0,64)", "w split [48,49) x [0,64)"}},
      {"copy_out from shared memory: rows in turn",
       [](KernelBuilder& b) { b.copy_out("load", "x", View("y").rows(0, 8), "", Where::all); },
       2,
       {"r y [2,3) x [0,64)", "r y [6,7) x [0,64)"}},
      {"copy_out from registers touches no shared memory",
       [](KernelBuilder& b) { b.copy_out("calc", "x", "D", "", Where::all); },
       0,
       {}},
      {"load: dealt columns",
       [](KernelBuilder& b) { b.load("calc", "D", "x", ""); },
       3,
       {"r x [32,64) x [16,32)", "r x [32,64) x [48,64)"}},
      {"load of a transpose",
       [](KernelBuilder& b) { b.load("calc", "D", View("x").t(), ""); },
       3,
       {"r x [16,32) x [32,64)", "r x [48,64) x [32,64)"}},
      {"store of a rectangle to another place",
       [](KernelBuilder& b) { b.store("calc", View("x").rows(32, 64), View("D").rows(0, 32), ""); },
       0,
       {"w x [32,64) x [0,16)", "w x [32,64) x [32,48)"}},
      {"store: nothing of the rectangle is this warp's",
       [](KernelBuilder& b) { b.store("calc", View("x").rows(32, 64), View("D").rows(0, 32), ""); },
       2,
       {}},
      {"mma: rows of the warp, columns of the warp, all of the contraction",
       [](KernelBuilder& b) { b.mma("calc", "D", "x", "y", "", false); },
       1,
       {"r y [0,64) x [16,32)", "r y [0,64) x [48,64)", "r x [0,32) x [0,64)"}},
      {"mma of transposes",
       [](KernelBuilder& b) { b.mma("calc", "D", View("x").t(), View("y").t(), "", true); },
       1,
       {"r y [16,32) x [0,64)", "r y [48,64) x [0,64)", "r x [0,64) x [0,32)"}},
      {"mma: part of the columns, part of the contraction",
       [](KernelBuilder& b) {
         b.mma("calc", View("D").cols(32, 64), View("x").cols(0, 32), View("y").rows(32, 64).cols(0, 32), "", false);
       },
       1,
       {"r y [32,64) x [16,32)", "r x [0,32) x [0,32)"}},
      {"mma: no column of the rectangle is this warp's",
       [](KernelBuilder& b) { b.mma("calc", View("D").cols(32, 48), "x", View("y").cols(0, 16), "", false); },
       1,
       {}},
      {"mma: a factor along the contraction is read whole",
       [](KernelBuilder& b) { b.mma("calc", View("D").cols(0, 16), "A", View("y").cols(0, 16), "", false, "v[l]"); },
       0,
       {"r y [0,64) x [0,16)", "r v [0,1) x [0,64)"}},
      {"map: vectors by row, by column, last and first element, all partial rows",
       [](KernelBuilder& b) { b.map("calc", "D[i,j] = v[i] + sums[j] + long[C-1] + one_value[0]", ""); },
       2,
       {"r v [0,1) x [32,64)", "r sums [0,2) x [0,16)", "r long [0,1) x [127,128)", "r one_value [0,4) x [0,1)",
        "r v [0,1) x [32,64)", "r sums [0,2) x [32,48)", "r long [0,1) x [127,128)", "r one_value [0,4) x [0,1)"}},
      {"map: an element of a matrix tile",
       [](KernelBuilder& b) { b.map("calc", "A[i,j] = x[i,j] * A[i,j]", ""); },
       3,
       {"r x [48,64) x [0,64)"}},
      {"map of a vector: 32 elements a warp",
       [](KernelBuilder& b) { b.map("calc", "long[i] = long[i] + 1", ""); },
       3,
       {"rw long [0,1) x [96,128)", "r long [0,1) x [96,128)"}},
      {"map of a vector by one warp: runs in turn, all its own",
       [](KernelBuilder& b) { b.map("one", "v[i] = sums[i]", ""); },
       0,
       {"w v [0,1) x [0,32)", "r sums [0,2) x [0,32)", "w v [0,1) x [32,64)", "r sums [0,2) x [32,64)"}},
      {"reduce over columns: a partial row for each grid column",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::cols, "sums[i] = D[i,j]", "D", ""); },
       3,
       {"w sums [1,2) x [32,64)"}},
      {"reduce over rows: a partial row for each grid row",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::rows, "sums[j] = D[i,j]", "D", ""); },
       3,
       {"w sums [1,2) x [16,32)", "w sums [1,2) x [48,64)"}},
      {"reduce over all: a partial row for each warp; accumulated",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::all, "one_value[0] = D[i,j]*x[i,j]", "D", "", true); },
       2,
       {"r x [32,64) x [0,16)", "r x [32,64) x [32,48)", "rw one_value [2,3) x [0,1)"}},
      {"reduce: a warp with no share of the domain writes no partial row",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::all, "one_value[0] = D[i,j]", View("D").rows(0, 32), ""); },
       2,
       {}},
      {"scan: warp 0 alone, whole vectors",
       [](KernelBuilder& b) { b.scan("calc", "v[i] = suffix(sums[i])", ""); },
       0,
       {"w v [0,1) x [0,64)", "r sums [0,2) x [0,64)"}},
      {"scan: no other warp", [](KernelBuilder& b) { b.scan("calc", "v[i] = suffix(sums[i])", ""); }, 1, {}},
      {"tri_inverse: diagonal blocks in turn",
       [](KernelBuilder& b) { b.tri_inverse("calc", "inv", "tri", ""); },
       1,
       {"w inv [16,32) x [16,32)", "r tri [16,32) x [16,32)"}},
      {"relayout", [](KernelBuilder& b) { b.relayout("calc", "D", "D", ""); }, 0, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    KernelBuilder build = hand_made(tensors);
    row.op(build);
    const Kernel kernel = std::move(build).finish();
    const Texts found = touched(kernel, row.warp);
    CHECK(fmt::format("{}", fmt::join(found, "; ")) == fmt::format("{}", fmt::join(row.expected, "; ")));
  }
}

TEST_CASE("footprints in cells of 16 bytes: who shares a cell, and what triangular tiles do not have") {
  const Row rows[] = {
      // 10 blocks of 16 rows x 32 bytes: 320 cells. Rows go to warps in turn, two cells a row.
      {"lower16: only blocks on or below the diagonal",
       [](KernelBuilder& b) { b.copy_in("one", "tri", "x", "", Where::all); },
       0,
       {"tri 0..319 0 1"}},
      // Warp 0 (rows [0, 32)) needs 3 blocks, warp 2 the other 7; columns [0, 16) are not the others'.
      {"lower16 as an operand; both warps read all of the other operand",
       [](KernelBuilder& b) { b.mma("calc", View("D").cols(0, 16), "tri", "narrow", "", false); },
       0,
       {"tri 0..95 1 0", "tri 96..319 4 0", "narrow 0..127 5 0"}},
      {"the last element is one cell, whoever reads it",
       [](KernelBuilder& b) { b.map("calc", "D[i,j] = v[C-1]", ""); },
       0,
       {"v 15..15 f 0"}},
      {"rows of partial sums do not share cells",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::all, "one_value[0] = D[i,j]", "D", ""); },
       0,
       {"one_value 0..0 0 1", "one_value 1..1 0 2", "one_value 2..2 0 4", "one_value 3..3 0 8"}},
      {"one op reads and writes: both are known",
       [](KernelBuilder& b) { b.reduce("calc", ReduceAxis::all, "one_value[0] = D[i,j]", "D", "", true); },
       0,
       {"one_value 0..0 1 1", "one_value 1..1 2 2", "one_value 2..2 4 4", "one_value 3..3 8 8"}},
      {"both parts of a split tile have the same cells",
       [](KernelBuilder& b) { b.load("one", View("Q").rows(32, 64), View("split").part(1), ""); },
       0,
       {"split 0..255 1 0"}},
  };
  const std::vector<TensorSpec> tensors = {
      {"x", TensorKind::input, TensorIndex::token, HeadAxis::v_head, 64, 64, DType::bf16, GlobalOrder::rows, false}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    KernelBuilder build = hand_made(tensors);
    build.acc("one", "Q", 64, 64, {1, 1});
    row.op(build);
    const Kernel kernel = std::move(build).finish();
    CHECK(fmt::format("{}", fmt::join(cells(kernel), "; ")) == fmt::format("{}", fmt::join(row.expected, "; ")));
  }
}

TEST_CASE("operations outside the loop body have no footprint") {
  KernelBuilder build = hand_made({});
  build.section(KernelBuilder::Section::prologue);
  build.map("calc", "D[i,j] = 0", "");
  build.section(KernelBuilder::Section::body);
  build.store("calc", "x", "D", "");
  const std::vector<Footprint> found = footprints(std::move(build).finish());
  REQUIRE(found.size() == 2);
  CHECK(found[0].role == -1);
  CHECK(found[0].uses.empty());
  CHECK(found[1].role == 3);
  CHECK(found[1].uses.size() == 64 * 64 * 2 / kCellBytes);
}

namespace {

using Elements = std::set<std::tuple<int, int, int>>;  // tile, row, column

void add(Elements& elements, const Kernel& kernel, int tile, const Range& rows, const Range& cols, bool lower) {
  for (int i = rows.begin; i < rows.end; ++i)
    for (int j = cols.begin; j < cols.end; ++j)
      if (element_exists(kernel.tiles[static_cast<std::size_t>(tile)], i, j) && (!lower || j / 16 <= i / 16))
        elements.emplace(tile, i, j);
}

}  // namespace

TEST_CASE("footprints agree with the verifier's, op by op and warp by warp") {
  std::int64_t elements_compared = 0;
  for (const auto& [arch, strategy] : {std::pair{"sm_120", "fused"}, {"sm_80", "fused"}, {"sm_90", "chunk_parallel"}}) {
    const Plan plan = planned({.arch = arch, .strategy = strategy}).plan;
    for (const Kernel& kernel : plan.kernels) {
      verifying::Findings findings(kernel.name, 20);
      const verifying::KernelIndex index = verifying::index_kernel(plan, kernel, findings);
      for (const Role& role : kernel.roles)
        for (const Step& step : role.body) {
          const Op& op = kernel.ops[static_cast<std::size_t>(step.op)];
          CAPTURE(kernel.name);
          CAPTURE(op.id);
          for (int warp = 0; warp < role.warps; ++warp) {
            Elements ours, theirs;
            for (const RectAccess& access : rect_accesses(kernel, op, role, warp))
              add(ours, kernel, access.tile, access.rows, access.cols, false);
            for (const verifying::Touch& touch : verifying::smem_touches(index, step, warp)) {
              const int tile = verifying::at(verifying::at(index.ops, step.op).operands, touch.operand).tile;
              for (const Range& rows : touch.area.rows)
                for (const Range& cols : touch.area.cols) add(theirs, kernel, tile, rows, cols, touch.area.lower);
            }
            elements_compared += static_cast<std::int64_t>(theirs.size());
            CHECK(ours == theirs);
          }
        }
    }
  }
  CHECK(elements_compared > 1'000'000);
}

}  // namespace gdr::test
