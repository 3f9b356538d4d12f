// How the builders of this folder write a kernel down: tiles, then operations in an order in which running them one by
// one gives the right result. Dataflow only: no offset, no barrier. Operand rectangles, access modes and the operands
// of an expression are derived here, so that a builder states each fact once.
#pragma once

#include <string>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// The warp grid of a register tile; deal_cols 0 deals the columns in equal contiguous runs.
struct WarpGrid {
  int rows = 1;
  int cols = 1;
  int deal_cols = 0;
};

// A rectangle of a tile or tensor in an operation. Starts as the whole thing; the functions narrow it.
class View {
 public:
  View(std::string name) : name_(std::move(name)) {}  // NOLINT: a name is a view of everything
  View(const char* name) : name_(name) {}             // NOLINT

  View t() const;          // the operation sees its transpose
  View part(int p) const;  // rows of part p of a split tile (of `count` equal runs for tensors)
  View part_of(int p, int count) const;
  View rows(int begin, int end) const;
  View cols(int begin, int end) const;
  View head(int index) const;  // tensors: v-head k_head * group + index
  View sliced() const;         // tensors: columns of this block's v-slice
  View global() const;         // the tensor of this name, not the tile (implied in copy_in and copy_out)

 private:
  friend class KernelBuilder;
  std::string name_;
  Operand given_;
  int part_count_ = 0;
  bool has_rows_ = false, has_cols_ = false;
};

class KernelBuilder {
 public:
  enum class Section { prologue, body, epilogue };

  // `tensors` is the plan's table and must outlive the builder.
  KernelBuilder(std::string function, std::vector<GridAxis> grid, LoopKind loop,
                const std::vector<TensorSpec>& tensors);

  void role(const std::string& name, int warps);
  // The width of a block's slice of V, where v_slice is a grid axis. Comes before views that are `sliced`.
  void v_slice(int cols) { kernel_.v_slice_cols = cols; }

  // Shared memory. Matrix tiles are swizzled; `lower16` keeps only the blocks on or below the diagonal.
  struct Smem {
    int parts = 1;
    int resident = 1;
    int stages = 1;
    bool lower16 = false;
  };
  void smem(const std::string& name, int rows, int cols, DType dtype, Smem options);
  void smem(const std::string& name, int rows, int cols, DType dtype) { smem(name, rows, cols, dtype, Smem{}); }
  // A vector of `length` fp32, kept as `partial_rows` partial sums.
  void vec(const std::string& name, int length, int partial_rows = 1, int stages = 1);

  // Registers of a role: fp32 accumulators, and A-operand fragments.
  void acc(const std::string& role, const std::string& name, int rows, int cols, WarpGrid grid);
  void frag(const std::string& role, const std::string& name, int rows, int cols, DType dtype, WarpGrid grid);

  // Operations go to the end of the role's list of the current section; `step` names the formula of the specification.
  void section(Section section) { section_ = section; }
  Op& copy_in(const std::string& role, const View& dst, const View& src, const std::string& step, Where where);
  Op& copy_out(const std::string& role, const View& dst, const View& src, const std::string& step, Where where);
  Op& load(const std::string& role, const View& dst, const View& src, const std::string& step,
           Where where = Where::all);
  Op& store(const std::string& role, const View& dst, const View& src, const std::string& step);
  Op& relayout(const std::string& role, const View& dst, const View& src, const std::string& step);
  // d = a b, or d += a b. Operands kept as `lower16` are masked; mask_d is the caller's to set on the result.
  Op& mma(const std::string& role, const View& d, const View& a, const View& b, const std::string& step,
          bool accumulate, const std::string& scale_expr = "");
  // "x[i,j] = ..." over the rectangle of `domain` (default: all of the target).
  Op& map(const std::string& role, const std::string& expr, const std::string& step);
  Op& map(const std::string& role, const std::string& expr, const std::string& step, const View& domain);
  // "x[i] = ..." (cols), "x[j] = ..." (rows), "x[0] = ..." (all): sums over the rectangle `domain` of a register tile;
  // `accumulate` adds them to what the vector holds.
  Op& reduce(const std::string& role, ReduceAxis axis, const std::string& expr, const View& domain,
             const std::string& step, bool accumulate = false);
  Op& scan(const std::string& role, const std::string& expr, const std::string& step);
  Op& tri_inverse(const std::string& role, const View& dst, const View& src, const std::string& step);

  Kernel finish() &&;

 private:
  Operand resolve(const View& view, Access access) const;
  Op& add(const std::string& role, Op op, const std::string& what);
  void add_expr_operands(Op& op, const std::string& target, const Range& rows, const Range& cols);

  Kernel kernel_;
  const std::vector<TensorSpec>& tensors_;
  Section section_ = Section::body;
};

// Registers: an equal split of `rows` x `cols` over `warps` warps, rows first, in whole 16-row blocks. Columns are
// dealt so that each of `col_parts` equal runs of columns is shared by all warp columns.
WarpGrid grid_for(int rows, int cols, int warps, int col_parts = 1);

}  // namespace gdr
