#include "present/byte_axis.hpp"

#include <algorithm>

namespace gdr {

ByteAxis::ByteAxis(std::vector<int> borders, int used, int limit, const Scale& scale) {
  for (const int byte : {0, used, std::max(limit, 1)}) borders.push_back(byte);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  const double px_per_byte = scale.height_px / std::max(limit, 1);
  bytes_ = std::move(borders);
  top_.push_back(0);
  for (std::size_t i = 1; i < bytes_.size(); ++i) {
    const double to_scale = (bytes_[i] - bytes_[i - 1]) * px_per_byte;
    const bool is_free = bytes_[i - 1] >= used && bytes_[i] <= limit;
    is_stretched_ |= !is_free && to_scale < scale.min_px;
    is_cut_ |= is_free && to_scale > scale.max_free_px;
    top_.push_back(top_.back() + std::clamp(to_scale, scale.min_px, is_free ? scale.max_free_px : scale.height_px));
  }
}

double ByteAxis::up(int byte) const {
  const auto above = std::upper_bound(bytes_.begin(), bytes_.end(), byte);
  if (above == bytes_.begin()) return 0;
  if (above == bytes_.end()) return top_.back();
  const auto i = static_cast<std::size_t>(above - bytes_.begin());
  const double share = static_cast<double>(byte - bytes_[i - 1]) / (bytes_[i] - bytes_[i - 1]);
  return top_[i - 1] + share * (top_[i] - top_[i - 1]);
}

}  // namespace gdr
