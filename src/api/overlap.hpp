// Whether strided tensors share memory.
#pragma once

#include <cstdint>
#include <vector>

#include "gdr/gdr.hpp"

namespace gdr {

// The bytes that a tensor touches: element blocks of `elem_bytes` at base + sum of i_d * stride_d, 0 <= i_d < count_d.
struct ByteFootprint {
  struct Dim {
    std::int64_t count = 0;         // at least 2
    std::int64_t stride_bytes = 0;  // at least 0, descending from one dimension to the next
  };
  std::uintptr_t base = 0;
  std::int64_t elem_bytes = 0;
  std::vector<Dim> dims;
  bool is_empty = false;

  // From the first byte to behind the last one.
  std::int64_t extent_bytes() const;
};

// Requires strides that fit (check_tensor has looked).
ByteFootprint footprint_of(const Tensor& tensor);

// True if no two elements share a byte because every stride steps over all that the smaller ones span. Other tensors
// without shared bytes exist, but nobody has them.
bool is_nested(const ByteFootprint& footprint);

// False only if no byte belongs to both. Exact where the two have the same outer strides, as parts of one tensor do;
// otherwise their ranges decide.
bool may_share_memory(const ByteFootprint& a, const ByteFootprint& b);

}  // namespace gdr
