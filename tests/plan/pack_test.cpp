// Packing: small cases by hand. Random ones against brute force are in properties_test.cpp.
#include "plan/pack.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace gdr::test {
namespace {

using Conflicts = std::vector<std::vector<bool>>;

Conflicts conflicts_of(std::size_t count, const std::vector<std::pair<int, int>>& pairs) {
  Conflicts conflicts(count, std::vector<bool>(count));
  for (const auto& [x, y] : pairs)
    conflicts[static_cast<std::size_t>(x)][static_cast<std::size_t>(y)] =
        conflicts[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = true;
  return conflicts;
}

}  // namespace

TEST_CASE("packings by hand") {
  struct Row {
    std::string name;
    std::vector<PackItem> items;
    std::vector<std::pair<int, int>> pairs;
    int total, bound;
  };
  const Row rows[] = {
      {"nothing", {}, {}, 0, 0},
      {"one item", {{48, 16}}, {}, 48, 48},
      {"no conflicts: all on the same bytes", {{48, 16}, {32, 16}, {16, 16}}, {}, 48, 48},
      {"all conflict: side by side", {{48, 16}, {32, 16}, {16, 16}}, {{0, 1}, {0, 2}, {1, 2}}, 96, 96},
      {"a chain: the ends share", {{48, 16}, {32, 16}, {48, 16}}, {{0, 1}, {1, 2}}, 80, 80},
      // Five in a ring, each beside two: no three conflict, and yet two levels do not suffice.
      {"a ring of five needs half as much again as its bound",
       {{16, 16}, {16, 16}, {16, 16}, {16, 16}, {16, 16}},
       {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}},
       48,
       32},
      {"alignment: the small one first would cost a gap", {{16, 16}, {128, 128}}, {{0, 1}}, 144, 144},
      {"the gap between two aligned items is used, and the bound does not see it",
       {{64, 128}, {64, 128}, {32, 32}},
       {{0, 1}, {0, 2}, {1, 2}},
       192,
       160},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Packing packing = pack(row.items, conflicts_of(row.items.size(), row.pairs));
    CHECK(packing.total_bytes == row.total);
    CHECK(packing.lower_bound_bytes == row.bound);
    CHECK(packing.is_proven_optimal);
    CHECK(packing.offsets.size() == row.items.size());
  }
}

// More items than can be tried in every order: rings of five that conflict with each other.
TEST_CASE("a packing that is not proved optimal says so") {
  constexpr int kRings = 5;
  std::vector<PackItem> items;
  std::vector<std::pair<int, int>> pairs;
  for (int ring = 0; ring < kRings; ++ring)
    for (int i = 0; i < 5; ++i) {
      items.push_back({16 * (ring + 1), 16});
      pairs.emplace_back(5 * ring + i, 5 * ring + (i + 1) % 5);
      for (int other = 0; other < 5 * ring; ++other) pairs.emplace_back(5 * ring + i, other);
    }
  const Packing packing = pack(items, conflicts_of(items.size(), pairs));
  CHECK(packing.lower_bound_bytes == 2 * 16 * (1 + 2 + 3 + 4 + 5));
  CHECK(packing.total_bytes >= 3 * 16 * (1 + 2 + 3 + 4 + 5));  // each ring takes three levels, whatever the rest does
  CHECK_FALSE(packing.is_proven_optimal);
}

}  // namespace gdr::test
