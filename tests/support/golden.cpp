#include "golden.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace gdr::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The longest common subsequence by dynamic programming: length[i][j] is of the tails from line i and line j.
std::vector<std::vector<int>> tails(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<int>> length(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      length[i][j] = a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
  return length;
}

bool is_update() {
  const char* value = std::getenv("GDRJIT_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

std::string line_diff(const std::string& expected, const std::string& actual, int max_lines) {
  const std::vector<std::string> a = lines_of(expected), b = lines_of(actual);
  const std::vector<std::vector<int>> common = tails(a, b);
  std::string text;
  int count = 0;
  const auto add = [&](char sign, std::size_t line, const std::string& content) {
    if (++count <= max_lines) text += fmt::format("{:>5} {} {}\n", line + 1, sign, content);
  };
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      add('-', i, a[i]);
      ++i;
    } else {
      add('+', i, b[j]);
      ++j;
    }
  }
  if (count > max_lines) text += fmt::format("      and {} lines more\n", count - max_lines);
  return text;
}

void check_golden(const std::string& file, const std::string& text, const std::function<std::string()>& cause) {
  const std::filesystem::path path = std::filesystem::path(GDR_SOURCE_DIR) / "tests/golden" / file;
  if (is_update()) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream stream(path, std::ios::binary);
  std::stringstream expected;
  expected << stream.rdbuf();
  CHECK_MESSAGE(stream.is_open(), "there is no tests/golden/" << file);
  if (expected.str() == text) return;
  constexpr int kMaxLines = 60;
  const std::string diff = line_diff(expected.str(), text, kMaxLines);
  FAIL_CHECK("tests/golden/" << file << " differs; GDRJIT_UPDATE_GOLDEN=1 rewrites it:\n"
                             << (diff.empty() ? "(only in line ends)" : diff) << (cause ? cause() : ""));
}

}  // namespace gdr::test
