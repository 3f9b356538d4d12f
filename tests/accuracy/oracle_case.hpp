// Problems that tools/oracle.py drew, for the interpreter: the fixture oracle_cases of ctest writes them
// (make_cases.py).
#pragma once

#include <string>

#include "../plan/plans.hpp"

namespace gdr::test {

// Why there are no cases on this machine ("skipped: ..."); empty if there are. Fails the test if the fixture did not
// run.
std::string why_no_oracle_cases();

struct OracleCase {
  Case c;  // lengths, heads and head dims; no padding rows
  Tensors inputs;
  std::map<std::string, Values>
      expected;  // dq, dk, dv, dg, dbeta, dh0 and ht, by the oracle's token recurrence in float64
};
// One row of make_cases.py, drawn with one of its seeds.
OracleCase oracle_case(const std::string& row, int seed);

}  // namespace gdr::test
