// Cells against single bytes: footprints are unions of cells, and cells are no finer than the footprints ask for.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "draft.hpp"
#include "schedule/layout.hpp"
#include "verify/cells.hpp"

using namespace gdr;
using namespace gdr::testing;
using namespace gdr::verifying;

namespace {

// What an area covers, element by element.
std::set<int> bytes_of(const Tile& tile, int copy, const Area& area) {
  std::set<int> bytes;
  for (const Range& rows : area.rows)
    for (int row = rows.begin; row < rows.end; ++row)
      for (const Range& cols : area.cols)
        for (int col = cols.begin; col < cols.end; ++col) {
          if (area.lower && col / 16 > row / 16) continue;
          const int first = element_byte(tile, copy, row, col);
          for (int k = 0; k < (tile.dtype == DType::fp32 ? 4 : 2); ++k) bytes.insert(first + k);
        }
  return bytes;
}

}  // namespace

TEST_CASE("cells are exactly the classes of bytes that footprints tell apart") {
  Draft d;
  d.smem("a", 32, 64, {.stages = 2});
  d.smem("l", 48, 48, {.offset = 1024, .lower16 = true});
  d.smem("h", 64, 32, {.parts = 2, .resident = 1, .offset = 4096});
  d.smem("f", 16, 24, {.offset = 0}, DType::fp32);
  Plan plan = d.finish();
  const Kernel& kernel = kernel_of(plan);

  constexpr unsigned kSeed = 7;
  MESSAGE("seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto range = [&](int size, int unit) {
    const int begin = static_cast<int>(random() % static_cast<unsigned>(size / unit)) * unit;
    const int length = 1 + static_cast<int>(random() % static_cast<unsigned>((size - begin) / unit));
    return Range{begin, begin + length * unit};
  };
  CellMap cells(kernel);
  std::vector<std::set<int>> expected;
  std::vector<int> numbers;
  for (int i = 0; i < 60; ++i) {
    const int t = static_cast<int>(random() % kernel.tiles.size());
    const Tile& tile = at(kernel.tiles, t);
    const int rows = part_rows(tile);
    Area area{{range(rows, 1)}, {range(tile.cols, 2)}, tile.smem.lower16};
    if (area.rows[0].end + 2 <= rows) area.rows.push_back({area.rows[0].end + 1, area.rows[0].end + 2});
    const int part = static_cast<int>(random() % static_cast<unsigned>(tile.parts));  // an area lies in one part
    for (Range& run : area.rows) run = {run.begin + part * rows, run.end + part * rows};
    const int copy = static_cast<int>(random() % static_cast<unsigned>(tile.stages));
    expected.push_back(bytes_of(tile, copy, area));
    numbers.push_back(cells.add(t, copy, area));
    CHECK(cells.add(t, copy, area) == numbers.back());  // equal ones have one number
  }
  cells.cut();

  // The class of a byte: the footprints that hold it.
  std::map<int, std::vector<bool>> classes;
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (const int byte : expected[i]) classes.try_emplace(byte, expected.size()).first->second[i] = true;
  std::set<std::vector<bool>> distinct;
  std::map<std::vector<bool>, std::pair<int, int>> hull;
  for (const auto& [byte, members] : classes) {
    distinct.insert(members);
    const auto [known, is_new] = hull.try_emplace(members, byte, byte + 1);
    if (!is_new) known->second.second = byte + 1;
  }

  std::map<int, std::vector<bool>> members_of_cell;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    for (const int cell : cells.cells(numbers[i]))
      members_of_cell.try_emplace(cell, expected.size()).first->second[i] = true;
  // One cell for each class, with its bytes between the same ends; footprints consist of the cells of their classes.
  CHECK(members_of_cell.size() == distinct.size());
  for (const auto& [cell, members] : members_of_cell) {
    REQUIRE(distinct.contains(members));
    CHECK(cells.hull(cell) == Range{hull[members].first, hull[members].second});
  }
}
