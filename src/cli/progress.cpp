#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gdr {
namespace {

constexpr const char* kWipe = "\r\033[K";

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar(std::string what)
    : what_(std::move(what)), begin_(std::chrono::steady_clock::now()), is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (is_drawn_) std::fputs(kWipe, stderr);
}

void ProgressBar::update(int done, int total, const std::string& label) {
  if (!is_terminal_ || std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  std::fputs((kWipe + line(what_, done, total, label, terminal_width() - 1)).c_str(), stderr);
  std::fflush(stderr);
  is_drawn_ = true;
}

std::string ProgressBar::line(const std::string& what, int done, int total, const std::string& label, int width) {
  constexpr int kCells = 20;
  const int filled = total > 0 ? std::clamp(kCells * done / total, 0, kCells) : 0;
  std::string text =
      fmt::format("{} [{:#<{}}{:.<{}}] {} of {}, {}", what, "", filled, "", kCells - filled, done, total, label);
  text.resize(std::min(text.size(), static_cast<std::size_t>(std::max(0, width))));
  return text;
}

}  // namespace gdr
