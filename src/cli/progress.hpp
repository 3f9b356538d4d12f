// A progress bar on standard error, for what lasts more than a second, where that is a terminal.
#pragma once

#include <chrono>
#include <string>

namespace gdr {

class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws, if it is time. Calls must not overlap.
  void update(int done, int total, const std::string& label);

  // The line for a state, at most `width` characters wide: what a terminal shows.
  static std::string line(const std::string& what, int done, int total, const std::string& label, int width);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point begin_;
  bool is_terminal_;
  bool is_drawn_ = false;
};

}  // namespace gdr
