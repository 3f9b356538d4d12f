// The vertical axis of the memory map: bytes to pixels, upwards. To scale, except that every stretch between two
// borders of tiles has at least a few pixels, so that a 128-byte vector beside a 16 KiB tile can be seen and named.
#pragma once

#include <vector>

namespace gdr {

class ByteAxis {
 public:
  struct Scale {
    double height_px;    // of 0..limit, if all of it were to scale
    double min_px;       // of a stretch between two borders
    double max_free_px;  // of used..limit
  };
  // `borders`: every byte where something begins or ends, in any order; 0, `used` and `limit` are added.
  ByteAxis(std::vector<int> borders, int used, int limit, const Scale& scale);

  double height() const { return top_.back(); }
  // Pixels above byte 0.
  double up(int byte) const;
  bool is_stretched() const { return is_stretched_; }
  bool is_cut() const { return is_cut_; }  // the free bytes are not to scale

 private:
  std::vector<int> bytes_;
  std::vector<double> top_;  // of each border
  bool is_stretched_ = false;
  bool is_cut_ = false;
};

}  // namespace gdr
