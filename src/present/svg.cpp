#include "present/svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "present/svg_kernel.hpp"
#include "present/table.hpp"
#include "present/text.hpp"

namespace gdr {
namespace svg {

double draw_heading(SvgWriter& out, const Plan& plan, std::size_t index, const KernelFacts& facts, double x, double y,
                    double width) {
  const Kernel& kernel = plan.kernels[index];
  out.text(x, y + 18, kernel.name, fmt::format("font-size=\"16\" font-weight=\"bold\" fill=\"{}\"", kInk));
  out.text(x, y + 36,
           fmt::format("{} threads; {} of {} bytes of shared memory, {} left; expected {}", kernel.threads(),
                       with_commas(kernel.smem_bytes), with_commas(plan.smem_limit_bytes),
                       with_commas(plan.smem_limit_bytes - kernel.smem_bytes), microseconds_text(facts.predicted_us)),
           fmt::format("font-size=\"11\" fill=\"{}\"", kInk));
  if (!facts.direct_port_bytes) return y + 46;

  // What is compared is the length of the bars; the budget is the line through them.
  const double full = static_cast<double>(std::max<std::int64_t>(*facts.direct_port_bytes, plan.smem_limit_bytes));
  const double px = std::min(width - 420, 560.0) / full;
  const double bar_x = x + 110;
  const auto bar = [&](double top, const char* name, std::int64_t bytes, const char* fill) {
    out.text(bar_x - 6, top + 10, name, fmt::format("text-anchor=\"end\" font-size=\"9.5\" fill=\"{}\"", kInk));
    out.rect(bar_x, top, static_cast<double>(bytes) * px, 13, fmt::format("fill=\"{}\"", fill));
  };
  bar(y + 48, "direct port", *facts.direct_port_bytes, "#e5b8b8");
  bar(y + 64, "this plan", kernel.smem_bytes, "#a9d3a4");
  const double limit_x = bar_x + plan.smem_limit_bytes * px;
  out.line(limit_x, y + 44, limit_x, y + 81, "stroke=\"#c53030\" stroke-width=\"2\"");
  const std::int64_t excess = *facts.direct_port_bytes - plan.smem_limit_bytes;
  const double note_x = bar_x + full * px + 8;
  out.text(note_x, y + 58,
           fmt::format("{} bytes: every tile whole, on bytes of its own; {} {}", with_commas(*facts.direct_port_bytes),
                       with_commas(excess < 0 ? -excess : excess), excess < 0 ? "left" : "too many"),
           fmt::format("font-size=\"9.5\" fill=\"{}\"", kInk));
  out.text(note_x, y + 74, fmt::format("{} bytes", with_commas(kernel.smem_bytes)),
           fmt::format("font-size=\"9.5\" fill=\"{}\"", kInk));
  return y + 94;
}

double draw_legend(SvgWriter& out, double x, double y) {
  const auto text = [&](double at, const char* words) {
    out.text(at, y + 11, words, fmt::format("font-size=\"9.5\" fill=\"{}\"", kInk));
  };
  const auto swatch = [&](double at, const char* style) { out.rect(at, y + 2, 14, 11, style); };
  swatch(x, "fill=\"#bcd7f0\" stroke=\"#2b6cb0\"");
  text(x + 19, "copied from global memory");
  swatch(x + 170, "fill=\"#c5e3bf\" stroke=\"#2f855a\"");
  text(x + 189, "stored by a role");
  swatch(x + 290, "fill=\"#f4dfa6\" stroke=\"#b7791f\"");
  text(x + 309, "sums and vectors");
  swatch(x + 415, "fill=\"url(#other)\" stroke=\"#8a8a8a\"");
  text(x + 434, "another chunk's stage");
  out.rect(x + 565, y + 5, 5, 5, "fill=\"#2b6cb0\"");
  text(x + 575, "written");
  out.circle(x + 630, y + 7.5, 2.5, "fill=\"#ffffff\" stroke=\"#2b6cb0\"");
  text(x + 637, "read");
  out.line(x + 680, y + 7.5, x + 700, y + 7.5, "stroke=\"#2f855a\"");
  text(x + 705, "barrier");
  out.line(x + 755, y + 7.5, x + 775, y + 7.5, "stroke=\"#b7791f\" stroke-dasharray=\"3 2\"");
  text(x + 780, "barrier into the next chunk");
  out.line(x + 935, y + 1, x + 935, y + 14, "stroke=\"#1a1a1a\" stroke-width=\"1.6\"");
  text(x + 941, "all warps of the role meet");
  out.text(x, y + 28, fmt::format("Operations: {}", kOpLetters), fmt::format("font-size=\"9.5\" fill=\"{}\"", kInk));
  return y + 38;
}

}  // namespace svg

std::string plan_svg(const Plan& plan, const PlanFacts& facts, const SvgOptions& options) {
  internal_check(facts.kernels.size() == plan.kernels.size(), "facts of another plan");
  check_meant(plan, options.kernel);
  constexpr double kMargin = 16, kLeft = 130;
  SvgWriter out;
  out.raw(
      "<defs>"
      "<pattern id=\"free\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
      "<rect width=\"7\" height=\"7\" fill=\"#eef8ee\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" stroke=\"#b9dfb9\" "
      "stroke-width=\"2\"/></pattern>"
      "<pattern id=\"other\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">"
      "<rect width=\"5\" height=\"5\" fill=\"#ffffff\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\" stroke=\"#b9c4d0\" "
      "stroke-width=\"1.5\"/></pattern>"
      "</defs>");
  double width = 1100;
  for (const Kernel& kernel : plan.kernels)
    if (is_meant(kernel, options.kernel))
      width = std::max(width, svg::Columns(view_kernel(kernel), kLeft).right() + kMargin);
  double y = kMargin;
  out.text(kMargin, y + 12, fmt::format("{}: {}", plan.arch, plan_sentence(plan)),
           fmt::format("font-size=\"13\" fill=\"{}\"", svg::kInk));
  y += 24;
  y = svg::draw_legend(out, kMargin, y);
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const KernelView view = view_kernel(plan.kernels[i]);
    if (view.tiles.empty() || view.columns.empty() || !is_meant(plan.kernels[i], options.kernel)) continue;
    const svg::Columns columns(view, kLeft);
    y = svg::draw_heading(out, plan, i, facts.kernels[i], kMargin, y + 10, width);
    // Stripes lie behind everything, so both parts are drawn once to learn where they end.
    SvgWriter parts;
    const double lanes_end = svg::draw_lanes(parts, view, columns, y);
    const double end = svg::draw_memory(parts, plan, view, columns, lanes_end);
    svg::draw_step_stripes(out, view, columns, y, end);
    svg::draw_lanes(out, view, columns, y);
    y = svg::draw_memory(out, plan, view, columns, lanes_end);
  }
  return out.finish(width, y + kMargin, plan_sentence(plan));
}

}  // namespace gdr
