// What the ops of a block do to its memory and to the tensors. Real is float: arithmetic in float32, values rounded to
// the dtype of the tile or tensor they go to; or double: nothing rounded.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "interp/machine.hpp"
#include "interp/memory.hpp"
#include "interp/tensors.hpp"

namespace gdr::interp {

// A stack of equally long rows of scalars, for the intermediate values of an expression.
template <typename T>
class Scratch {
 public:
  class Row {
   public:
    Row(Scratch& scratch, std::size_t length) : scratch_(scratch) {
      if (scratch_.used_ == scratch_.rows_.size()) scratch_.rows_.emplace_back();
      row_ = &scratch_.rows_[scratch_.used_++];
      row_->resize(length);
    }
    ~Row() { --scratch_.used_; }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;
    T* data() { return row_->data(); }

   private:
    Scratch& scratch_;
    std::vector<T>* row_;
  };

 private:
  std::deque<std::vector<T>> rows_;  // rows in use must not move
  std::size_t used_ = 0;
};

// Each member is defined, and instantiated for float and double, in one of the execute*.cpp.
template <typename Real>
class Executor final : public Actions {
 public:
  // `kernel_index` is the kernel's place in the plan: what its writes to tensors are marked with.
  Executor(const Context& context, int kernel_index, TensorStore<Real>& tensors);

  void execute(const At& at) override;
  void issue_copy(const At& at) override;
  void land_copy(const At& at) override;

  // By index in Plan::tensors.
  const std::vector<Traffic>& traffic() const { return traffic_; }

 private:
  // An operand in the step that runs now.
  struct Bound {
    const View* view = nullptr;
    // Tiles.
    const TileCells* tile = nullptr;
    int stage = 0;  // cells to add
    DType dtype = DType::fp32;
    std::vector<Stamp> allowed;
    Stamp last_allowed = kNobody;  // spares looking through `allowed` for every element
    // Tensors.
    typename TensorStore<Real>::Slot* slot = nullptr;
    std::int64_t begin = 0;
    int valid_rows = 0;
    bool skips_invalid = false;
  };

  const CompiledOp& begin_step(const At& at);
  void bind(Bound& bound, const View& view);
  void bind_tensor(Bound& bound, const View& view);
  void end_step();

  Real read_cell(Bound& bound, std::int32_t cell);
  void write_cell(Bound& bound, std::int32_t cell, Real value);
  void check_read(Bound& bound, std::size_t cell);
  [[noreturn]] void wrong_read(const Bound& bound, std::size_t cell, Stamp found) const;
  std::string name_cell(const Bound& bound, std::size_t cell) const;

  Real read_tensor(Bound& bound, int row, int col);
  void write_tensor(Bound& bound, int row, int col, Real value);
  [[noreturn]] void invalid_row(const Bound& bound, int row) const;

  Real read_element(Bound& bound, int i, int j);  // of the view
  void write_element(Bound& bound, int i, int j, Real value);
  Real read_vector(Bound& bound, int col);  // of the tile; the sum of the operand's rows

  void move_elements(const CompiledOp& op);
  void map(const CompiledOp& op);
  void reduce(const CompiledOp& op);
  void scan(const CompiledOp& op);
  void invert_blocks(const CompiledOp& op);
  void multiply(const CompiledOp& op);
  void decode_a(const CompiledOp& op, const MmaShare& share, const Range& slice);
  void decode_b(const CompiledOp& op, const MmaGroup& group, const Range& slice);

  // Evaluates a node over all elements of `runs` where `active` is set (everywhere if it is nullptr).
  void evaluate(const CompiledOp& op, int node, const std::vector<Run>& runs, std::size_t count, Real* out,
                const char* active);
  void evaluate_element(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs, Real* out,
                        const char* active);
  void evaluate_call(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs, std::size_t count,
                     Real* out, const char* active);
  void evaluate_select(const CompiledOp& op, const ExprNode& node, const std::vector<Run>& runs, std::size_t count,
                       Real* out, const char* active);

  double observe(const std::string& tile, int row, int col) const;

  Context context_;
  int kernel_index_;
  TensorStore<Real>& tensors_;
  Memory<Real> memory_;
  std::vector<Traffic> traffic_;

  At at_;  // the step that runs now
  Stamp now_ = kNeverWritten;
  std::vector<Bound> bound_;
  Scratch<Real> scratch_;
  Scratch<char> conditions_;
  std::vector<Real> a_, b_;  // decoded operands of multiply
};

// The paths that every element takes, inlined into the loops over them.

template <typename Real>
inline Real Executor<Real>::read_cell(Bound& bound, std::int32_t cell) {
  if (cell < 0) return 0;  // lower16 stores no zeros
  const auto at = static_cast<std::size_t>(cell + bound.stage);
  if (context_.options->check &&
      (memory_.stamps[at] != bound.last_allowed ||
       memory_.stamps[at + static_cast<std::size_t>(bound.tile->width) - 1] != bound.last_allowed))
    check_read(bound, at);
  return memory_.values[at];
}

template <typename Real>
inline void Executor<Real>::write_cell(Bound& bound, std::int32_t cell, Real value) {
  if (cell < 0) return;
  const auto first = static_cast<std::size_t>(cell + bound.stage);
  memory_.values[first] = rounded(value, bound.dtype);
  for (std::size_t at = first; at < first + static_cast<std::size_t>(bound.tile->width); ++at) {
    if (context_.options->check && memory_.stamps[at] == kInFlight)
      fault(context_, at_, "GDR-I07", fmt::format("writes {}: a copy into it is in flight.", name_cell(bound, at)));
    memory_.stamps[at] = now_;
  }
}

template <typename Real>
inline Real Executor<Real>::read_vector(Bound& bound, int col) {
  const Range& rows = bound.view->operand->rows;
  Real sum = read_cell(bound, bound.tile->at(rows.begin, col));
  for (int row = rows.begin + 1; row < rows.end; ++row) sum += read_cell(bound, bound.tile->at(row, col));
  return sum;
}

}  // namespace gdr::interp
