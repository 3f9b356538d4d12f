#include <fmt/format.h>

#include <array>

#include "verify/verify.hpp"

namespace gdr {
namespace {

struct Title {
  std::string_view code;
  std::string_view title;
};

constexpr std::array<Title, 18> kTitles = {{
    {"GDR-V01", "name"},
    {"GDR-V02", "operands"},
    {"GDR-V03", "shape"},
    {"GDR-V04", "register tile"},
    {"GDR-V05", "steps"},
    {"GDR-V06", "expression"},
    {"GDR-V07", "mask"},
    {"GDR-V08", "barrier"},
    {"GDR-V09", "registers"},
    {"GDR-V10", "race"},
    {"GDR-V11", "deadlock"},
    {"GDR-V12", "phase"},
    {"GDR-V13", "wrong value"},
    {"GDR-V14", "wrong register value"},
    {"GDR-V15", "missing fence"},
    {"GDR-V16", "bounds"},
    {"GDR-V17", "placement"},
    {"GDR-V18", "tensor"},
}};

}  // namespace

std::string_view finding_title(std::string_view code) {
  for (const Title& row : kTitles)
    if (row.code == code) return row.title;
  return "finding";
}

std::string Finding::text() const {
  std::string out = fmt::format("{} {}", code, finding_title(code));
  if (!kernel.empty()) out += " in " + kernel;
  out += ": " + what;
  if (out.back() == '.') out.pop_back();
  if (!remedy.empty()) out += "; " + remedy;
  return out + ".";
}

std::string VerifyReport::text() const {
  std::string out;
  for (const Finding& finding : findings) out += finding.text() + "\n";
  if (findings_left_out > 0) out += fmt::format("and {} more\n", findings_left_out);
  return out;
}

}  // namespace gdr
