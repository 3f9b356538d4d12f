// A contiguous tensor in memory of its own: what the command line reads from files, runs on and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gdr/gdr.hpp"

namespace gdr {

class OwnedTensor {
 public:
  OwnedTensor() = default;
  OwnedTensor(DType dtype, const Dims& shape);

  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  std::int64_t num_elems() const { return num_elems_; }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t num_bytes() const { return bytes_.size(); }
  Tensor tensor() { return {bytes_.data(), dtype_, shape_, {}, {}}; }

  // The same numbers, each rounded once, in another floating dtype.
  OwnedTensor cast(DType dtype) const;
  // All bits set: NaN in every floating dtype. For outputs, so that what is not written is seen.
  void poison();

 private:
  DType dtype_ = DType::fp32;
  Dims shape_;
  std::int64_t num_elems_ = 0;
  std::vector<std::byte> bytes_;
};

// sqrt of the sum of squares.
double norm(const OwnedTensor& a);

// |a - b| / max(|b|, least_rms * sqrt(elements)); |a - b| where that is 0; infinite if an element of `a` is not finite.
// Both are floating tensors with as many elements.
double relative_l2(const OwnedTensor& a, const OwnedTensor& b, double least_rms);

}  // namespace gdr
