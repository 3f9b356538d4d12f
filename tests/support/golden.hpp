// Texts that must not change unnoticed: files of tests/golden, compared byte for byte. With the environment variable
// GDRJIT_UPDATE_GOLDEN=1 a test writes them anew; their diff is then part of the review.
#pragma once

#include <functional>
#include <string>

namespace gdr::test {

// Checks `text` against tests/golden/<file>; a mismatch prints the lines that differ, and what `cause` says of why.
void check_golden(const std::string& file, const std::string& text, const std::function<std::string()>& cause = {});

// The lines in which two texts differ, "-" before the first text's and "+" before the second's, with the number of the
// line in the first one; at most `max_lines` of them.
std::string line_diff(const std::string& expected, const std::string& actual, int max_lines);

}  // namespace gdr::test
