// Rows of tests that break one thing in a correct kernel and want it found.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "draft.hpp"
#include "verify/verify.hpp"

namespace gdr::testing {

struct Row {
  const char* name;
  std::function<Plan()> make;
  std::function<void(Plan&)> break_it;
  const char* code;
  std::vector<const char*> words;  // all in one finding of that code
};

inline bool has(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

inline void check_found(const Row& row) {
  CAPTURE(row.name);
  Plan plan = row.make();
  REQUIRE(verify(plan).text() == "");
  row.break_it(plan);
  const VerifyReport report = verify(plan);
  CAPTURE(report.text());
  const bool found = std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    const std::string text = finding.text();
    return finding.code == row.code &&
           std::all_of(row.words.begin(), row.words.end(), [&](const char* word) { return has(text, word); });
  });
  CHECK(found);
}

}  // namespace gdr::testing
