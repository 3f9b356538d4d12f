// The tensors of a launch as scalars, each with the kernel that wrote it. Real is float (values rounded to the
// tensor's dtype when written) or double (nothing rounded).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dtype.hpp"
#include "interp/interp.hpp"
#include "interp/launch.hpp"

namespace gdr::interp {

// Who wrote an element: nobody yet, the caller, or kernel number writer - 1 of the plan.
using WriterId = std::uint8_t;
constexpr WriterId kUnwritten = 0, kGiven = 255;
constexpr int kMaxKernels = 254;

constexpr int kBlock = 16;  // rows and columns of a block of a triangular tile

// The blocks on or below the diagonal of a square of `rows` rows.
inline int lower_blocks(int rows) { return rows / kBlock * (rows / kBlock + 1) / 2; }

template <typename Real>
Real rounded(Real value, DType dtype) {
  if constexpr (std::is_same_v<Real, float>) {
    if (dtype == DType::bf16) return round_to_bf16(value);
    if (dtype == DType::fp16) return round_to_fp16(value);
  }
  return value;
}

template <typename Real>
class TensorStore {
 public:
  struct Slot {
    const TensorSpec* tensor = nullptr;
    bool present = false;
    std::int64_t heads = 0;
    std::int64_t tile_elems = 0;  // chunk and sequence tensors: from one head to the next
    std::int64_t row_stride = 0;
    std::vector<Real> values;
    std::vector<WriterId> writers;

    // Offset of element (row, col) from the first of its tile; -1 where lower16 does not store it.
    std::int64_t offset(int row, int col) const {
      if (tensor->order != GlobalOrder::lower16) return row * row_stride + col;
      if (col / kBlock > row / kBlock) return -1;
      const int block = lower_blocks(row / kBlock * kBlock) + col / kBlock;
      return block * kBlock * kBlock + row % kBlock * kBlock + col % kBlock;
    }
  };

  // Copies the given tensors, poisons the others. Throws Error (config, GDR-I01) if one is missing, unknown or of
  // another shape or dtype than the plan and the launch want.
  TensorStore(const Plan& plan, const Launch& launch, const std::map<std::string, HostTensor>& given);

  Slot& slot(int tensor) { return slots_[static_cast<std::size_t>(tensor)]; }
  const Slot& slot(int tensor) const { return slots_[static_cast<std::size_t>(tensor)]; }

  // Offset of the first element of a tile. Token tensors: the tile begins at token `tile`.
  std::int64_t tile_begin(int tensor, std::int64_t tile, std::int64_t head) const {
    const Slot& s = slot(tensor);
    return s.tensor->index == TensorIndex::token ? (tile * s.heads + head) * s.tensor->cols
                                                 : (tile * s.heads + head) * s.tile_elems;
  }

  // Rows of no sequence become zero. Throws Error (check_failed, GDR-I11) if `check` and an output element was never
  // written.
  void finish(const Launch& launch, bool check);

  // All present tensors but the inputs.
  void give_back(const Launch& launch, std::map<std::string, HostTensor>& tensors) const;

 private:
  std::vector<Slot> slots_;
};

extern template class TensorStore<float>;
extern template class TensorStore<double>;

}  // namespace gdr::interp
