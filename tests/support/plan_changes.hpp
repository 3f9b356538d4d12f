// What changed between two plan files, by field: the cause of a changed golden source.
#pragma once

#include <string>

namespace gdr::test {

// One line for each field that differs: "kernels[bwd_fused].roles[state].registers: 144 -> 152"; at most `max_lines`.
// Elements of lists are named by their `name` or `id` where they have one, else by their number. Both texts are JSON.
std::string plan_changes(const std::string& before, const std::string& after, int max_lines);

// Of tests/golden/<file>; what a golden plan says today.
std::string golden_text(const std::string& file);

}  // namespace gdr::test
