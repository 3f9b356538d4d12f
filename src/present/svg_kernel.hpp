// The parts of the picture of one kernel, drawn one under the other into the same columns. Not for other rooms.
#pragma once

#include <string>
#include <vector>

#include "plan/facts.hpp"
#include "present/kernel_view.hpp"
#include "present/svg_writer.hpp"

namespace gdr::svg {

inline constexpr const char* kInk = "#1a1a1a";
inline constexpr const char* kFaint = "#8a8a8a";

// Where the columns of a kernel lie. Prologue and epilogue stand apart from the loop body.
class Columns {
 public:
  Columns(const KernelView& view, double left);
  double begin(int column) const { return x_[static_cast<std::size_t>(column)]; }
  double end(int column) const { return begin(column) + kWidth; }
  double middle(int column) const { return begin(column) + kWidth / 2; }
  double body_begin() const { return body_begin_; }
  double body_end() const { return body_end_; }
  double right() const { return right_; }
  static constexpr double kWidth = 13;

 private:
  std::vector<double> x_;
  double body_begin_ = 0, body_end_ = 0, right_ = 0;
};

// Each draws below `y` and returns the y below itself.
double draw_heading(SvgWriter& out, const Plan& plan, std::size_t index, const KernelFacts& facts, double x, double y,
                    double width);
double draw_lanes(SvgWriter& out, const KernelView& view, const Columns& columns, double y);
double draw_memory(SvgWriter& out, const Plan& plan, const KernelView& view, const Columns& columns, double y);

double draw_legend(SvgWriter& out, double x, double y);

// The pale stripes behind lanes and memory that tell the steps of the specification apart, from `top` to `bottom`.
void draw_step_stripes(SvgWriter& out, const KernelView& view, const Columns& columns, double top, double bottom);

}  // namespace gdr::svg
