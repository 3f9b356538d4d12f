// The expressions of a schedule as CUDA text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/expr.hpp"

namespace gdr {

// How an element that an expression reads is written: "Gam::at(Gam::stage(it), i)".
using ElementText = std::function<std::string(const std::string& name, IndexKind index)>;

// A sum along a vector inside a scan expression, pulled out in front of it.
struct RunningSum {
  std::string function;  // prefix, suffix, before
  std::string value;     // text of the summed expression of i
};

// The text of `expr`. Running sums are appended to `sums` and written as "sum<n>"; null where there are none.
std::string expression_text(const Expr& expr, const ElementText& element, std::vector<RunningSum>* sums = nullptr);

}  // namespace gdr
