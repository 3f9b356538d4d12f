#include "api/overlap.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>

#include "core/dtype.hpp"

namespace gdr {
namespace {

using DimSpan = std::span<const ByteFootprint::Dim>;

std::int64_t extent(DimSpan dims, std::int64_t elem_bytes) {
  std::int64_t result = elem_bytes;
  for (const ByteFootprint::Dim& dim : dims) result += (dim.count - 1) * dim.stride_bytes;
  return result;
}

struct Part {
  DimSpan dims;
  std::int64_t elem_bytes;
  std::int64_t extent_bytes() const { return extent(dims, elem_bytes); }
};

// Whether a part at address 0 and one at `distance` may share a byte.
bool may_share(const Part& a, const Part& b, std::int64_t distance) {
  if (distance >= a.extent_bytes() || -distance >= b.extent_bytes()) return false;
  if (a.dims.empty() || b.dims.empty() || a.dims[0].stride_bytes != b.dims[0].stride_bytes) return true;
  const std::int64_t stride = a.dims[0].stride_bytes;
  const Part a_inner{a.dims.subspan(1), a.elem_bytes}, b_inner{b.dims.subspan(1), b.elem_bytes};
  if (a_inner.extent_bytes() > stride || b_inner.extent_bytes() > stride) return true;
  // Row i of a meets row j of b only if their distance, distance + (j - i) stride, is less than a stride: two values of
  // j - i come into question.
  const std::int64_t nearest = -distance / stride;
  for (std::int64_t step = nearest - 1; step <= nearest + 1; ++step) {
    if (step < -(a.dims[0].count - 1) || step > b.dims[0].count - 1) continue;
    if (may_share(a_inner, b_inner, distance + step * stride)) return true;
  }
  return false;
}

}  // namespace

std::int64_t ByteFootprint::extent_bytes() const { return is_empty ? 0 : extent(dims, elem_bytes); }

ByteFootprint footprint_of(const Tensor& tensor) {
  ByteFootprint result;
  result.elem_bytes = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  std::int64_t first = 0;  // byte offset of the lowest element
  std::int64_t contiguous = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    const std::int64_t count = tensor.shape[i];
    const std::int64_t stride = (tensor.strides.empty() ? contiguous : tensor.strides[i]) * result.elem_bytes;
    contiguous *= count;
    if (count == 0) result.is_empty = true;
    if (count < 2) continue;
    if (stride < 0) first += (count - 1) * stride;
    result.dims.push_back({count, std::abs(stride)});
  }
  std::sort(result.dims.begin(), result.dims.end(),
            [](const ByteFootprint::Dim& x, const ByteFootprint::Dim& y) { return x.stride_bytes > y.stride_bytes; });
  result.base = reinterpret_cast<std::uintptr_t>(tensor.data) + static_cast<std::uintptr_t>(first);
  return result;
}

bool is_nested(const ByteFootprint& footprint) {
  if (footprint.is_empty) return true;
  const DimSpan dims(footprint.dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].stride_bytes < extent(dims.subspan(i + 1), footprint.elem_bytes)) return false;
  return true;
}

bool may_share_memory(const ByteFootprint& a, const ByteFootprint& b) {
  if (a.is_empty || b.is_empty) return false;
  return may_share({a.dims, a.elem_bytes}, {b.dims, b.elem_bytes}, static_cast<std::int64_t>(b.base - a.base));
}

}  // namespace gdr
