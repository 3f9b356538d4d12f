// The order that waits and meetings give: chains, distances, copies that have landed or only been issued.
#include "plan/happens_before.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gdr::test {
namespace {

struct Query {
  int before, after, distance;
  bool holds;
};

struct Row {
  std::string name;
  std::vector<BodyOp> ops;
  std::vector<Wait> waits;
  std::vector<Meeting> meetings;
  std::vector<Query> queries;
};

constexpr bool kCopy = true;

}  // namespace

TEST_CASE("happens-before by hand") {
  const Row rows[] = {
      {"nothing is ordered by itself, not even in one role: its warps are apart",
       {{0}, {0}, {1}},
       {},
       {},
       {{0, 1, 0, false}, {0, 2, 0, false}, {0, 0, 1, false}, {1, 0, 1, false}}},
      {"a wait orders what came before its event and what comes after it",
       {{0}, {0}, {1}, {1}},
       {{1, 2, 0}},
       {},
       {{1, 2, 0, true}, {0, 2, 0, true}, {1, 3, 0, true}, {0, 3, 2, true}, {2, 1, 1, false}, {1, 1, 1, false}}},
      {"chains through a third role",
       {{0}, {1}, {1}, {2}},
       {{0, 1, 0}, {2, 3, 0}},
       {},
       {{0, 3, 0, true}, {1, 3, 0, true}, {3, 0, 1, false}}},
      {"an event before the wait of its role says nothing of what the wait gives",
       {{0}, {1}, {1}, {2}},
       {{0, 2, 0}, {1, 3, 0}},
       {},
       {{0, 3, 0, false}, {1, 3, 0, true}, {0, 3, 1, true}}},
      {"distance: the slot is free when its readers of the iteration before are done",
       {{0}, {1}},
       {{0, 1, 0}, {1, 0, 1}},
       {},
       {{1, 0, 1, true}, {1, 0, 0, false}, {1, 0, 2, true}, {0, 0, 1, true}, {1, 1, 1, true}}},
      {"distances add up along a chain",
       {{0}, {1}, {2}},
       {{0, 1, 1}, {1, 2, 1}},
       {},
       {{0, 2, 2, true}, {0, 2, 1, false}, {0, 1, 1, true}, {0, 1, 0, false}}},
      {"a meeting orders the role with itself",
       {{0}, {0}, {0}},
       {},
       {{1}},
       {{0, 1, 0, true}, {0, 2, 0, true}, {1, 2, 0, false}, {2, 1, 1, true}, {1, 0, 1, false}, {0, 0, 1, true}}},
      {"a meeting passes on what one warp waited for",
       {{0}, {1}, {1}},
       {{0, 1, 0}},
       {{2}},
       {{0, 2, 0, true}, {1, 2, 0, true}}},
      {"a meeting does not wait for copies",
       {{0, kCopy}, {0}, {0}},
       {},
       {{1}},
       {{0, 1, 0, false}, {0, 2, 1, false}, {1, 1, 1, true}}},
      {"a copy that was issued has not landed",
       {{0, kCopy}, {0}, {1}},
       {{1, 2, 0}},
       {},
       {{1, 2, 0, true}, {0, 2, 0, false}}},
      {"waiting for a copy: it and those before it have landed, what came before it is done",
       {{0}, {0, kCopy}, {0, kCopy}, {0, kCopy}, {1}},
       {{2, 4, 0}},
       {},
       {{2, 4, 0, true}, {1, 4, 0, true}, {0, 4, 0, true}, {3, 4, 0, false}, {3, 4, 1, true}}},
      {"a role that waits for its own copies", {{0, kCopy}, {0}}, {{0, 1, 0}}, {}, {{0, 1, 0, true}, {1, 0, 1, false}}},
      {"operations outside the loop take no part", {{-1}, {0}, {1}, {-1}}, {{1, 2, 0}}, {}, {{1, 2, 0, true}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const HappensBefore order(row.ops, 3, row.waits, row.meetings, 3);
    for (const Query& query : row.queries) {
      CAPTURE(query.before);
      CAPTURE(query.after);
      CAPTURE(query.distance);
      CHECK(order.holds(query.before, query.after, query.distance) == query.holds);
    }
  }
}

}  // namespace gdr::test
