// How often shared memory must be passed over for the accesses of a kernel's text, by op: an access of a warp takes one
// pass for every row of its 32 banks of 4 bytes that any bank has to give, 8 bytes a lane in two halves, 16 bytes and
// the rows of ldmatrix in four quarters. The compiler may merge accesses that the text makes one by one.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace gdr::host {

struct BankCount {
  std::int64_t accesses = 0;  // of whole warps
  std::int64_t passes = 0;
  std::int64_t best = 0;  // passes if there were no conflicts
  std::int64_t conflicts() const { return passes - best; }
};

class BankCounter {
 public:
  struct Lane {
    int lane = 0;
    int byte = 0;
  };
  // One access of a warp: `bytes` for each lane that takes part.
  void add(int op, const std::vector<Lane>& lanes, int bytes);
  const std::map<int, BankCount>& by_op() const { return by_op_; }

 private:
  std::map<int, BankCount> by_op_;
};

}  // namespace gdr::host
