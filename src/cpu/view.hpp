// A strided view of a caller's tensor of up to four dimensions, and the only code of the CPU backend that touches
// caller memory. Elements are read and written at their own alignment and converted to and from the computing type;
// conversion to a narrower type rounds once, to nearest even.
#pragma once

#include <array>
#include <cstdint>

#include "core/dtype.hpp"

namespace gdr::cpu {

struct View {
  void* data = nullptr;                   // element [0, 0, 0, 0]; not written through unless the view is an output
  DType dtype = DType::fp32;              // one of the floating types
  std::array<std::int64_t, 4> strides{};  // elements; any sign, any order; 0 for dimensions that are not there
  bool present = false;                   // false: the caller did not give this tensor
};

// Where a run of elements begins and how it goes on: `rows` of `cols` elements from [i0, i1, i2, i3] on, the rows along
// dimension `row_dim`, the columns along dimension 3.
struct Block {
  std::array<std::int64_t, 4> origin{};
  int row_dim = 1;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

// Tokens [begin, begin + rows) of one head of a [B, T, H, D] tensor.
inline Block token_rows(std::int64_t batch, std::int64_t begin, std::int64_t head, std::int64_t rows,
                        std::int64_t cols) {
  return {{batch, begin, head, 0}, 1, rows, cols};
}

// The K x V state of one sequence and head of a [N, Hv, K, V] tensor.
inline Block state_rows(std::int64_t sequence, std::int64_t head, std::int64_t dim_k, std::int64_t dim_v) {
  return {{sequence, head, 0, 0}, 2, dim_k, dim_v};
}

// Copies a block into out[rows, cols] (row-major, contiguous), converted to T (float or double).
template <class T>
void read_block(const View& view, const Block& block, T* out);

// Copies in[rows, cols] into a block of the tensor, converted to its element type.
template <class T>
void write_block(const View& view, const Block& block, const T* in);

// Sets a block to zero.
void zero_block(const View& view, const Block& block);

}  // namespace gdr::cpu
