// Where the checks of this room put what they find: keeps the first `max` findings of a kernel and counts the rest.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "verify/verify.hpp"

namespace gdr::verifying {

class Findings {
 public:
  Findings(std::string kernel, int max) : kernel_(std::move(kernel)), max_(max) {}

  // The new finding, for its trace; it may be one that is not kept.
  template <typename... Args>
  Finding& add(const char* code, fmt::format_string<Args...> format, Args&&... args) {
    return insert(code, fmt::format(format, std::forward<Args>(args)...));
  }

  int count() const { return count_; }
  int left_out() const { return count_ - static_cast<int>(kept_.size()); }
  std::vector<Finding> take() && { return std::move(kept_); }

 private:
  Finding& insert(const char* code, std::string what) {
    Finding finding;
    finding.code = code;
    finding.kernel = kernel_;
    finding.what = std::move(what);
    if (count_++ == 0) kept_.reserve(static_cast<std::size_t>(max_));  // references to findings stay valid
    Finding& place = count_ <= max_ ? kept_.emplace_back() : spare_;
    place = std::move(finding);
    return place;
  }

  std::string kernel_;
  int max_;
  int count_ = 0;
  std::vector<Finding> kept_;
  Finding spare_;
};

}  // namespace gdr::verifying
