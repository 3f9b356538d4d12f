// What the interpreter and a host execution publish to shared memory, op by op and warp by warp, side by side.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine.hpp"
#include "interp/interp.hpp"

namespace gdr::host {

struct OpDifference {
  std::int64_t elements = 0;
  std::int64_t different = 0;
  double largest = 0;    // |difference|
  double magnitude = 0;  // largest |value|
};

class PublishedLog {
 public:
  PublishedLog(const Plan& plan, const LaunchShape& shape) : plan_(plan), shape_(shape) {}

  // Observers of the two runs; the interpreter's comes first.
  void expect(const StepView& step);
  void compare(const Kernel& kernel, const Published& published);

  // By op id. Stores of what the interpreter did not write count as different, with an infinite difference.
  const std::map<std::string, OpDifference>& by_op() const { return by_op_; }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, int, int>;  // function, block, iteration, op, warp

  std::int64_t index_of(const Kernel& kernel, const std::vector<std::int64_t>& position) const;

  const Plan& plan_;
  const LaunchShape& shape_;
  std::map<Key, std::vector<double>> expected_;  // the rectangle of the op's result
  std::map<std::string, OpDifference> by_op_;
};

}  // namespace gdr::host
