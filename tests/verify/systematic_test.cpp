// Every single change of the synchronisation of the correct kernels is found, but for the ones listed here, each with
// the reason why the changed kernel is correct as well.
#include <doctest/doctest.h>

#include <set>

#include "mutate.hpp"
#include "rows.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

struct Case {
  const char* name;
  Plan plan;
  std::set<std::string> harmless;
};

// Two slots, and the loader waits until both are free: slower, and right.
const std::set<std::string> kStricter = {"`x_free.wait.loader` with distance 1"};

}  // namespace

TEST_CASE("each mutant of the synchronisation is found") {
  const Case cases[] = {
      {"pipeline, 1 stage", pipeline(1), {}},  {"pipeline, 2 stages", pipeline(2), kStricter},
      {"split tile", split_tile(), {}},        {"alias", alias(), {}},
      {"bulk store", bulk_store(), kStricter}, {"vectors", vectors(), {}},
  };
  int mutants = 0;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    REQUIRE(verify(c.plan).ok());
    std::set<std::string> unnoticed;
    for (const Mutant& mutant : sync_mutants(c.plan.kernels.front())) {
      ++mutants;
      if (verify(c.plan, mutant.kernel).ok()) unnoticed.insert(mutant.what);
    }
    for (const std::string& what : unnoticed) {
      CAPTURE(what);
      CHECK(c.harmless.contains(what));
    }
    for (const std::string& what : c.harmless) {
      CAPTURE(what);
      CHECK(unnoticed.contains(what));
    }
  }
  MESSAGE(mutants << " mutants");
}
