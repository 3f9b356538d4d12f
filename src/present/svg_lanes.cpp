#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "present/svg_kernel.hpp"
#include "present/text.hpp"
#include "schedule/names.hpp"

namespace gdr::svg {
namespace {

constexpr double kLaneHeight = 26;
constexpr double kLaneGap = 24;
constexpr double kStepHeader = 20;
constexpr double kIdFont = 8.5;

struct KindColor {
  const char* letters;
  const char* fill;
  const char* name;
};
constexpr std::array<KindColor, 4> kKindColors = {{{"i", "#2b6cb0", "copy in"},
                                                   {"o", "#6b46c1", "copy out"},
                                                   {"M", "#c2410c", "matrix product"},
                                                   {"lsect+", "#6b7280", "other"}}};

const char* kind_fill(OpKind kind) {
  for (const KindColor& color : kKindColors)
    if (std::string_view(color.letters).find(op_letter(kind)) != std::string_view::npos) return color.fill;
  return kKindColors.back().fill;
}

class Lanes {
 public:
  Lanes(SvgWriter& out, const KernelView& view, const Columns& columns, double top)
      : out_(out), view_(view), columns_(columns), top_(top) {}

  double draw() {
    for (int r = 0; r < num_roles(); ++r) draw_lane(r);
    draw_barriers();
    for (std::size_t c = 0; c < view_.columns.size(); ++c) draw_op(static_cast<int>(c));
    return lane_top(num_roles() - 1) + kLaneHeight;
  }

 private:
  int num_roles() const { return static_cast<int>(view_.kernel->roles.size()); }
  double lane_top(int role) const { return top_ + role * (kLaneHeight + kLaneGap); }

  void draw_lane(int role) {
    const Role& r = view_.kernel->roles[static_cast<std::size_t>(role)];
    const double y = lane_top(role);
    out_.rect(columns_.begin(0), y, columns_.right() - columns_.begin(0), kLaneHeight,
              "fill=\"#f1f3f5\" stroke=\"#d0d4d9\" stroke-width=\"0.6\"");
    out_.text(columns_.begin(0) - 8, y + 11, r.name,
              fmt::format("text-anchor=\"end\" font-weight=\"bold\" fill=\"{}\"", kInk));
    out_.text(columns_.begin(0) - 8, y + 22, fmt::format("{}, {} regs", plural(r.warps, "warp"), r.registers),
              fmt::format("text-anchor=\"end\" font-size=\"8.5\" fill=\"{}\"", kFaint));
  }

  void draw_op(int c) {
    const OpColumn& column = view_.columns[static_cast<std::size_t>(c)];
    const Op& op = view_.op(column);
    const double y = lane_top(column.role) + 3;
    out_.rect(columns_.begin(c) + 1, y, Columns::kWidth - 2, kLaneHeight - 6,
              fmt::format("fill=\"{}\" rx=\"2\"", kind_fill(op.kind)),
              fmt::format("{} ({})\n{}{}{}", op.id, to_string(op.kind), op.step, op.expr.empty() ? "" : "\n", op.expr));
    out_.text(columns_.middle(c), y + 14, std::string(1, op_letter(op.kind)),
              "text-anchor=\"middle\" font-size=\"10\" fill=\"#ffffff\"");
  }

  double arrive_x(const BarrierUse& use) const {
    return use.before < 0 ? columns_.body_begin() : columns_.end(use.before);
  }
  double wait_x(const BarrierUse& use) const { return use.after < 0 ? columns_.body_end() : columns_.begin(use.after); }

  void draw_barriers() {
    for (const BarrierView& barrier : view_.barriers) {
      for (const BarrierUse& use : barrier.syncs) {
        const double x = use.before < 0 ? columns_.body_begin() : columns_.end(use.before);
        out_.line(x, lane_top(use.role) - 2, x, lane_top(use.role) + kLaneHeight + 2,
                  fmt::format("stroke=\"{}\" stroke-width=\"1.6\"", kInk));
      }
      for (const BarrierUse& wait : barrier.waits)
        for (const BarrierUse& arrival : barrier.arrivals) draw_arrow(barrier, arrival, wait);
    }
  }

  // From the end of the op after which a role arrives to the beginning of the op before which another waits.
  void draw_arrow(const BarrierView& view, const BarrierUse& arrival, const BarrierUse& wait) {
    const int distance = view_.kernel->ops[static_cast<std::size_t>(wait.op)].distance;
    const bool down = wait.role > arrival.role;
    const double x1 = arrive_x(arrival), x2 = wait_x(wait);
    const double y1 = lane_top(arrival.role) + (down ? kLaneHeight : 0),
                 y2 = lane_top(wait.role) + (down ? 0 : kLaneHeight);
    const std::string tip = fmt::format("{}: {} of {}", view.barrier->name, "arrivals", view.barrier->arrivals);
    if (distance == 0) {
      const char* color = view_.kernel->roles[static_cast<std::size_t>(arrival.role)].body.empty() ? kInk : "#2f855a";
      arrow(x1, y1, x2, y2, fmt::format("stroke=\"{}\" stroke-width=\"1\"", color), color, tip);
      return;
    }
    // To the right edge, and on from the left edge in the next chunk.
    constexpr const char* kNext = "#b7791f";
    const double stub = down ? kLaneGap / 2 : -kLaneGap / 2;
    const std::string dashed =
        fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1\" stroke-dasharray=\"3 2\"", kNext);
    out_.path(fmt::format("M{} {}V{}H{}", svg_number(x1), svg_number(y1), svg_number(y1 + stub),
                          svg_number(columns_.body_end())),
              dashed, tip);
    out_.path(fmt::format("M{} {}H{}", svg_number(columns_.body_begin()), svg_number(y2 - stub), svg_number(x2)),
              dashed, tip);
    arrow(x2, y2 - stub, x2, y2, fmt::format("stroke=\"{}\" stroke-width=\"1\"", kNext), kNext, tip);
  }

  void arrow(double x1, double y1, double x2, double y2, const std::string& stroke, const char* color,
             const std::string& tip) {
    const double direction = y2 > y1 ? 1 : -1;
    const double middle = (y1 + y2) / 2;
    const double tip_y = y2 - direction;
    out_.path(fmt::format("M{} {}C{} {} {} {} {} {}", svg_number(x1), svg_number(y1), svg_number(x1),
                          svg_number(middle), svg_number(x2), svg_number(middle), svg_number(x2), svg_number(tip_y)),
              "fill=\"none\" " + stroke, tip);
    out_.path(fmt::format("M{} {}l-2.6 {}h5.2z", svg_number(x2), svg_number(y2), svg_number(-5 * direction)),
              fmt::format("fill=\"{}\"", color));
  }

  SvgWriter& out_;
  const KernelView& view_;
  const Columns& columns_;
  double top_;
};

// Runs of columns of the body whose formulas belong to one step.
struct StepRun {
  int first = 0;
  int last = 0;
  std::string label;
};
std::vector<StepRun> step_runs(const KernelView& view) {
  std::vector<StepRun> runs;
  const Range body = view.body();
  for (int c = body.begin; c < body.end; ++c) {
    const std::string& step = view.columns[static_cast<std::size_t>(c)].step;
    if (runs.empty() || runs.back().label != step) runs.push_back({c, c, step});
    runs.back().last = c;
  }
  return runs;
}

}  // namespace

Columns::Columns(const KernelView& view, double left) {
  constexpr double kGap = 14;
  double x = left;
  const Range body = view.body();
  for (int c = 0; c < static_cast<int>(view.columns.size()); ++c) {
    if (c == body.begin && c > 0) x += kGap;
    if (c == body.begin) body_begin_ = x;
    if (c == body.end) x += kGap;
    x_.push_back(x);
    x += kWidth;
    if (c + 1 == body.end) body_end_ = x;
  }
  right_ = x;
}

void draw_step_stripes(SvgWriter& out, const KernelView& view, const Columns& columns, double top, double bottom) {
  bool is_odd = false;
  for (const StepRun& run : step_runs(view)) {
    is_odd = !is_odd;
    if (is_odd)
      out.rect(columns.begin(run.first), top, columns.end(run.last) - columns.begin(run.first), bottom - top,
               "fill=\"#f6f2e9\"");
  }
}

double draw_lanes(SvgWriter& out, const KernelView& view, const Columns& columns, double y) {
  for (const StepRun& run : step_runs(view))
    if (!run.label.empty())
      out.text((columns.begin(run.first) + columns.end(run.last)) / 2, y + 13, run.label,
               fmt::format("text-anchor=\"middle\" font-size=\"9\" font-weight=\"bold\" fill=\"{}\"", kInk));
  out.text(columns.begin(0) - 14, y + 13, "step of the algorithm",
           fmt::format("text-anchor=\"end\" font-size=\"8.5\" fill=\"{}\"", kFaint));
  const double bottom = Lanes(out, view, columns, y + kStepHeader).draw();

  double id_height = 0;
  for (int c = 0; c < static_cast<int>(view.columns.size()); ++c) {
    const OpColumn& column = view.columns[static_cast<std::size_t>(c)];
    const std::string& id = view.op(column).id;
    if (column.section != Section::body)
      out.text(columns.middle(c), y + 13, column.section == Section::prologue ? "before" : "after",
               fmt::format("text-anchor=\"middle\" font-size=\"8.5\" fill=\"{}\"", kFaint));
    id_height = std::max(id_height, svg_text_width(id, kIdFont));
    out.text(columns.middle(c) - 3, bottom + 10, id, fmt::format("font-size=\"{}\" fill=\"{}\"", kIdFont, kInk), 90);
  }
  return bottom + id_height + 16;
}

}  // namespace gdr::svg
