#include "present/svg_writer.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gdr {

std::string svg_number(double value) {
  const double tenths = std::round(value * 10);
  const auto whole = static_cast<long long>(tenths);
  if (whole % 10 == 0) return std::to_string(whole / 10);
  return fmt::format("{}{}.{}", whole < 0 ? "-" : "", std::abs(whole) / 10, std::abs(whole) % 10);
}

std::string svg_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += "&#10;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

double svg_text_width(std::string_view text, double font_px) {
  constexpr double kEmPerChar = 0.6;
  return static_cast<double>(text.size()) * font_px * kEmPerChar;
}

void SvgWriter::element(const std::string& open, std::string_view tip) {
  body_ += open;
  if (tip.empty()) {
    body_ += "/>\n";
    return;
  }
  body_ += fmt::format("><title>{}</title></{}>\n", svg_escaped(tip), open.substr(1, open.find(' ') - 1));
}

void SvgWriter::rect(double x, double y, double width, double height, std::string_view style, std::string_view tip) {
  element(fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}", svg_number(x), svg_number(y),
                      svg_number(width), svg_number(height), style),
          tip);
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view style) {
  element(fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}", svg_number(x1), svg_number(y1),
                      svg_number(x2), svg_number(y2), style),
          {});
}

void SvgWriter::circle(double x, double y, double radius, std::string_view style, std::string_view tip) {
  element(
      fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}", svg_number(x), svg_number(y), svg_number(radius), style),
      tip);
}

void SvgWriter::path(std::string_view data, std::string_view style, std::string_view tip) {
  element(fmt::format("<path d=\"{}\" {}", data, style), tip);
}

void SvgWriter::text(double x, double y, std::string_view content, std::string_view style, double turn) {
  const std::string rotate =
      turn == 0 ? std::string()
                : fmt::format(" transform=\"rotate({} {} {})\"", svg_number(turn), svg_number(x), svg_number(y));
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" {}{}>{}</text>\n", svg_number(x), svg_number(y), style, rotate,
                       svg_escaped(content));
}

std::string SvgWriter::finish(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Verdana, Helvetica, sans-serif\" font-size=\"11\">\n"
      "<title>{2}</title>\n"
      "<rect x=\"0\" y=\"0\" width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      svg_number(width), svg_number(height), svg_escaped(title), body_);
}

}  // namespace gdr
