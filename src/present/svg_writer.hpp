// Elements of an SVG 1.1 file as text: escaped, numbers with at most one decimal, no scripts, no outside references.
#pragma once

#include <string>
#include <string_view>

namespace gdr {

class SvgWriter {
 public:
  // `style` is a list of attributes, for example `fill="#fff" stroke="#000"`; `tip` is shown by viewers on hovering.
  void rect(double x, double y, double width, double height, std::string_view style, std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void circle(double x, double y, double radius, std::string_view style, std::string_view tip = {});
  void path(std::string_view data, std::string_view style, std::string_view tip = {});
  // `x`, `y`: the baseline's point that the style's text-anchor says. `turn`: degrees about it.
  void text(double x, double y, std::string_view content, std::string_view style, double turn = 0);
  void raw(std::string_view element) { body_.append(element).append("\n"); }

  // The finished file on a white ground.
  std::string finish(double width, double height, std::string_view title) const;

 private:
  void element(const std::string& open, std::string_view tip);
  std::string body_;
};

// "12" or "12.5".
std::string svg_number(double value);
std::string svg_escaped(std::string_view text);
// Width in pixels of a text in the sans-serif font of these pictures, a little generous.
double svg_text_width(std::string_view text, double font_px);

}  // namespace gdr
