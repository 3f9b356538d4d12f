#include "interp/execute.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace gdr::interp {

template <typename Real>
Executor<Real>::Executor(const Context& context, int kernel_index, TensorStore<Real>& tensors)
    : context_(context),
      kernel_index_(kernel_index),
      tensors_(tensors),
      memory_(context.program->num_cells),
      traffic_(context.program->plan->tensors.size()) {}

// ---------------------------------------------------------------------------------------------------- binding

template <typename Real>
const CompiledOp& Executor<Real>::begin_step(const At& at) {
  at_ = at;
  now_ = stamp_of(at.op, at.time());
  const CompiledOp& op = context_.program->ops[static_cast<std::size_t>(at.op)];
  if (bound_.size() < op.views.size()) bound_.resize(op.views.size());
  for (std::size_t k = 0; k < op.views.size(); ++k) bind(bound_[k], op.views[k]);
  return op;
}

template <typename Real>
void Executor<Real>::bind(Bound& bound, const View& view) {
  bound.view = &view;
  bound.tile = view.tile;
  if (view.tile == nullptr) {
    bind_tensor(bound, view);
    return;
  }
  const Tile& tile = *view.tile->tile;
  bound.dtype = tile.dtype;
  bound.stage = tile.space == Space::smem ? static_cast<int>(at_.iteration % tile.stages) * view.tile->stage_cells : 0;
  bound.allowed.clear();
  for (const Writer& writer : view.writers) {
    const std::int64_t time = writer.in_prologue ? 0 : at_.time() - writer.lag;
    if (time >= 0) bound.allowed.push_back(stamp_of(writer.op, time));
  }
  bound.last_allowed = kNobody;
}

template <typename Real>
void Executor<Real>::bind_tensor(Bound& bound, const View& view) {
  const Block& block = *context_.block;
  const Launch& launch = *context_.program->launch;
  const Operand& operand = *view.operand;
  bound.slot = &tensors_.slot(view.tensor);
  const TensorSpec& tensor = *bound.slot->tensor;
  bound.dtype = tensor.dtype;
  bound.valid_rows = std::numeric_limits<int>::max();
  bound.skips_invalid = context_.program->ops[static_cast<std::size_t>(at_.op)].op->where == Where::row_valid;
  std::int64_t head = block.head;
  if (block.head_axis == HeadAxis::v_head && tensor.heads == HeadAxis::k_head) head /= launch.group;
  if (block.head_axis == HeadAxis::k_head && tensor.heads == HeadAxis::v_head)
    head = head * launch.group + operand.head_index;
  std::int64_t tile = block.sequence;
  if (at_.iteration >= 0 && at_.iteration < block.count && block.first_chunk >= 0) {
    const std::int64_t index = block.first_chunk + at_.iteration * block.chunk_step;
    const Chunk& chunk = launch.chunks[static_cast<std::size_t>(index)];
    if (tensor.index == TensorIndex::chunk) tile = index;
    if (tensor.index == TensorIndex::token) tile = chunk.token_begin;
    if (tensor.index == TensorIndex::token || bound.skips_invalid) bound.valid_rows = chunk.valid_rows;
  } else if (tensor.index != TensorIndex::sequence) {
    fault(context_, at_, "GDR-I12", fmt::format("{} has a tile for each chunk, the block has none", tensor.name));
  }
  if (tile < 0)
    fault(context_, at_, "GDR-I12", fmt::format("{} has a tile for each sequence, the block has none", tensor.name));
  bound.begin = tensors_.tile_begin(view.tensor, tile, head);
  if (operand.v_sliced) bound.begin += static_cast<std::int64_t>(block.v_slice) * operand.cols.size();
}

// ------------------------------------------------------------------------------------------------------ cells

template <typename Real>
std::string Executor<Real>::name_cell(const Bound& bound, std::size_t cell) const {
  const TileCells& tile = *bound.tile;
  const auto stage_cell = static_cast<std::int32_t>(cell) - bound.stage;
  // An element of a part that shares its slot has the same cell: look inside the operand's rectangle.
  const Operand& operand = *bound.view->operand;
  for (int row = operand.rows.begin; row < operand.rows.end; ++row)
    for (int col = operand.cols.begin; col < operand.cols.end; ++col) {
      const std::int32_t first = tile.at(row, col);
      if (first < 0 || stage_cell < first || stage_cell >= first + tile.width) continue;
      if (tile.tile->space == Space::reg) return fmt::format("register tile {} ({}, {})", tile.tile->name, row, col);
      const int byte = (first + bound.stage) * kCellBytes;
      const std::string part = tile.tile->parts > 1 ? fmt::format(" part {}", operand.part) : "";
      return fmt::format("{}{} ({}, {}), bytes {} to {}", tile.tile->name, part, row, col, byte,
                         byte + tile.width * kCellBytes - 1);
    }
  return fmt::format("{}, cell {}", tile.tile->name, cell);
}

template <typename Real>
void Executor<Real>::wrong_read(const Bound& bound, std::size_t cell, Stamp found) const {
  const std::string what = name_cell(bound, cell);
  if (found == kNeverWritten) {
    const bool in_register = bound.tile->tile->space == Space::reg;
    fault(context_, at_, in_register ? "GDR-I08" : "GDR-I04", fmt::format("reads {}: never written.", what));
  }
  if (found == kInFlight) fault(context_, at_, "GDR-I05", fmt::format("reads {}: a copy into it is in flight.", what));
  const auto name_writer = [&](Stamp stamp) {
    const CompiledOp& op = context_.program->ops[static_cast<std::size_t>(op_of(stamp))];
    const Operand& target = *op.views[0].operand;
    const std::string when =
        op.section == Section::body ? fmt::format("iteration {}", time_of(stamp) - 1) : std::string("another section");
    return fmt::format("op {} (tile {}, part {}) in {}", op.op->id, target.name, target.part, when);
  };
  std::string wanted;
  for (const Stamp stamp : bound.allowed) {
    if (!wanted.empty()) wanted += " or ";
    wanted += name_writer(stamp);
  }
  fault(context_, at_, "GDR-I06",
        fmt::format("reads {}: last written by {}; the schedule means {}.", what, name_writer(found),
                    wanted.empty() ? "nobody" : wanted));
}

template <typename Real>
void Executor<Real>::check_read(Bound& bound, std::size_t cell) {
  for (std::size_t at = cell; at < cell + static_cast<std::size_t>(bound.tile->width); ++at) {
    const Stamp stamp = memory_.stamps[at];
    if (std::find(bound.allowed.begin(), bound.allowed.end(), stamp) == bound.allowed.end())
      wrong_read(bound, at, stamp);
    bound.last_allowed = stamp;
  }
}

// ---------------------------------------------------------------------------------------------------- tensors

template <typename Real>
void Executor<Real>::invalid_row(const Bound& bound, int row) const {
  fault(context_, at_, "GDR-I12",
        fmt::format("touches row {} of {}; this chunk has {} valid rows. It needs where = row_valid.", row,
                    bound.slot->tensor->name, bound.valid_rows));
}

template <typename Real>
Real Executor<Real>::read_tensor(Bound& bound, int row, int col) {
  if (row >= bound.valid_rows) {
    if (!bound.skips_invalid) invalid_row(bound, row);
    return 0;
  }
  const std::int64_t offset = bound.slot->present ? bound.slot->offset(row, col) : -1;
  if (offset < 0) return 0;
  const auto at = static_cast<std::size_t>(bound.begin + offset);
  if (context_.options->check) {
    const WriterId writer = std::atomic_ref<WriterId>(bound.slot->writers[at]).load(std::memory_order_relaxed);
    if (writer == kUnwritten || writer == kernel_index_ + 1)
      fault(context_, at_, "GDR-I09",
            fmt::format("reads {} ({}, {}): {}", bound.slot->tensor->name, row, col,
                        writer == kUnwritten ? "no kernel has written it yet."
                                             : "this kernel wrote it; blocks of one kernel have no order."));
  }
  traffic_[static_cast<std::size_t>(bound.view->tensor)].read_bytes +=
      static_cast<std::int64_t>(size_bytes(bound.dtype));
  return bound.slot->values[at];
}

template <typename Real>
void Executor<Real>::write_tensor(Bound& bound, int row, int col, Real value) {
  if (row >= bound.valid_rows) {
    if (!bound.skips_invalid) invalid_row(bound, row);
    return;
  }
  const std::int64_t offset = bound.slot->present ? bound.slot->offset(row, col) : -1;
  if (offset < 0) return;
  const auto at = static_cast<std::size_t>(bound.begin + offset);
  const auto me = static_cast<WriterId>(kernel_index_ + 1);
  const WriterId before = std::atomic_ref<WriterId>(bound.slot->writers[at]).exchange(me, std::memory_order_relaxed);
  const TensorKind kind = bound.slot->tensor->kind;
  if (context_.options->check && (before == me || (kind != TensorKind::workspace && before != kUnwritten)))
    fault(context_, at_, "GDR-I10",
          fmt::format("writes {} ({}, {}), which {}.", bound.slot->tensor->name, row, col,
                      before == kGiven ? "is an input" : "was written before in this launch"));
  traffic_[static_cast<std::size_t>(bound.view->tensor)].written_bytes +=
      static_cast<std::int64_t>(size_bytes(bound.dtype));
  bound.slot->values[at] = rounded(value, bound.dtype);
}

// --------------------------------------------------------------------------------------------------- elements

template <typename Real>
Real Executor<Real>::read_element(Bound& bound, int i, int j) {
  const int row = bound.view->tile_row(i, j), col = bound.view->tile_col(i, j);
  return bound.tile != nullptr ? read_cell(bound, bound.tile->at(row, col)) : read_tensor(bound, row, col);
}

template <typename Real>
void Executor<Real>::write_element(Bound& bound, int i, int j, Real value) {
  const int row = bound.view->tile_row(i, j), col = bound.view->tile_col(i, j);
  if (bound.tile != nullptr) {
    write_cell(bound, bound.tile->at(row, col), value);
  } else {
    write_tensor(bound, row, col, value);
  }
}

// -------------------------------------------------------------------------------------------------------- ops

template <typename Real>
void Executor<Real>::execute(const At& at) {
  const CompiledOp& op = begin_step(at);
  switch (op.op->kind) {
    case OpKind::copy_out:
    case OpKind::load:
    case OpKind::store:
    case OpKind::relayout:
      move_elements(op);
      break;
    case OpKind::mma:
      multiply(op);
      break;
    case OpKind::map:
      map(op);
      break;
    case OpKind::reduce:
      reduce(op);
      break;
    case OpKind::scan:
      scan(op);
      break;
    case OpKind::tri_inverse:
      invert_blocks(op);
      break;
    default:
      internal_check(false, "interp: an op that is not the executor's");
  }
  end_step();
}

template <typename Real>
void Executor<Real>::issue_copy(const At& at) {
  const CompiledOp& op = begin_step(at);
  Bound& dst = bound_[0];
  for (const Run& run : op.shares[static_cast<std::size_t>(at.warp)].runs)
    for (int j = run.col; j < run.col + run.count; ++j) {
      const std::int32_t cell = dst.tile->at(dst.view->tile_row(run.row, j), dst.view->tile_col(run.row, j));
      if (cell < 0) continue;
      write_cell(dst, cell, std::numeric_limits<Real>::quiet_NaN());
      for (int k = 0; k < dst.tile->width; ++k)
        memory_.stamps[static_cast<std::size_t>(cell + dst.stage + k)] = kInFlight;
    }
}

template <typename Real>
void Executor<Real>::land_copy(const At& at) {
  const CompiledOp& op = begin_step(at);
  Bound& dst = bound_[0];
  for (const Run& run : op.shares[static_cast<std::size_t>(at.warp)].runs)
    for (int j = run.col; j < run.col + run.count; ++j) {
      const std::int32_t cell = dst.tile->at(dst.view->tile_row(run.row, j), dst.view->tile_col(run.row, j));
      if (cell < 0) continue;
      for (int k = 0; k < dst.tile->width; ++k) memory_.stamps[static_cast<std::size_t>(cell + dst.stage + k)] = now_;
      memory_.values[static_cast<std::size_t>(cell + dst.stage)] =
          rounded(read_element(bound_[1], run.row, j), dst.dtype);
    }
  end_step();
}

template <typename Real>
void Executor<Real>::move_elements(const CompiledOp& op) {
  Bound &dst = bound_[0], &src = bound_[1];
  for (const Run& run : op.shares[static_cast<std::size_t>(at_.warp)].runs)
    for (int j = run.col; j < run.col + run.count; ++j) {
      if (op.sums_rows) {
        write_element(dst, run.row, j, read_vector(src, src.view->operand->cols.begin + j));
      } else {
        write_element(dst, run.row, j, read_element(src, run.row, j));
      }
    }
}

// x = (I + L)^-1 - I by forward substitution: x_ij = -(L_ij + sum over j < k < i of L_ik x_kj).
template <typename Real>
void Executor<Real>::invert_blocks(const CompiledOp& op) {
  Bound &dst = bound_[0], &src = bound_[1];
  for (const Run& block : op.shares[static_cast<std::size_t>(at_.warp)].runs) {
    Real l[kBlock][kBlock] = {}, x[kBlock][kBlock] = {};
    for (int i = 0; i < kBlock; ++i)
      for (int j = 0; j < i; ++j) l[i][j] = read_element(src, block.row + i, block.col + j);
    for (int i = 0; i < kBlock; ++i)
      for (int j = 0; j < i; ++j) {
        Real sum = l[i][j];
        for (int k = j + 1; k < i; ++k) sum += l[i][k] * x[k][j];
        x[i][j] = -sum;
      }
    for (int i = 0; i < kBlock; ++i)
      for (int j = 0; j < kBlock; ++j) write_element(dst, block.row + i, block.col + j, x[i][j]);
  }
}

// --------------------------------------------------------------------------------------------------- observer

template <typename Real>
void Executor<Real>::end_step() {
  if (!context_.options->observer) return;
  StepView view([this](const std::string& tile, int row, int col) { return observe(tile, row, col); });
  view.kernel = kernel_index_;
  view.block = context_.block->position;
  view.iteration = at_.iteration;
  view.op = at_.op;
  view.warp = at_.warp;
  view.slice_begin = at_.slice_begin;
  view.slice_end = at_.slice_end;
  context_.options->observer(view);
}

template <typename Real>
double Executor<Real>::observe(const std::string& tile, int row, int col) const {
  const auto found = context_.program->tiles.find(tile);
  internal_check(found != context_.program->tiles.end() && row >= 0 && col >= 0 && row < found->second.tile->rows &&
                     col < found->second.tile->cols,
                 "interp: an observer asks for an element that does not exist");
  const TileCells& cells = found->second;
  const std::int32_t cell = cells.at(row, col);
  if (cell < 0) return 0;
  const auto stage = at_.iteration < 0 ? 0 : at_.iteration % cells.tile->stages * cells.stage_cells;
  return static_cast<double>(memory_.values[static_cast<std::size_t>(cell + stage)]);
}

template class Executor<float>;
template class Executor<double>;

}  // namespace gdr::interp
