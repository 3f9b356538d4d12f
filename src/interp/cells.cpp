// Tiles to cells, operands to views of them.
#include <algorithm>

#include "core/error.hpp"
#include "interp/program.hpp"
#include "interp/tensors.hpp"
#include "schedule/layout.hpp"

namespace gdr::interp {
namespace {

[[noreturn]] void bad_tile(const Kernel& kernel, const Tile& tile, const char* code, const std::string& what) {
  fail(ErrorKind::check_failed, code, "interp: kernel {}, tile {}: {}.", kernel.name, tile.name, what);
}

void check_smem_tile(const Kernel& kernel, const Tile& tile) {
  if (tile.offset_bytes < 0) bad_tile(kernel, tile, "GDR-I02", "it has no offset; pack the kernel first");
  if (tile.offset_bytes % static_cast<int>(size_bytes(tile.dtype)) != 0)
    bad_tile(kernel, tile, "GDR-I02", "its offset is no multiple of its element size");
  if (tile.parts <= 0 || tile.resident <= 0 || tile.stages <= 0 || tile.rows % tile.parts != 0 ||
      tile.smem.panel_cols <= 0)
    bad_tile(kernel, tile, "GDR-I02", "its parts, stages or layout are impossible");
  if (tile.smem.lower16 && (tile.rows != tile.cols || tile.rows % kBlock != 0 || tile.parts != 1))
    bad_tile(kernel, tile, "GDR-I02", "lower16 needs a square of whole 16-blocks in one part");
}

void check_register_tile(const Kernel& kernel, const Tile& tile) {
  const RegLayout& reg = tile.reg;
  if (reg.grid_rows <= 0 || reg.grid_cols <= 0 || reg.deal_cols <= 0 || tile.rows % reg.grid_rows != 0 ||
      tile.cols % (reg.grid_cols * reg.deal_cols) != 0)
    bad_tile(kernel, tile, "GDR-I02", "its warp grid does not divide it");
  for (const Role& role : kernel.roles)
    if (role.name == tile.role && reg.grid_rows * reg.grid_cols <= role.warps) return;
  bad_tile(kernel, tile, "GDR-I02", fmt::format("its role '{}' is absent or has too few warps", tile.role));
}

int num_barrier_bytes(const Kernel& kernel) {
  constexpr int kMbarrierBytes = 8;
  int bytes = 0;
  for (const Barrier& barrier : kernel.barriers)
    if (barrier.kind == BarrierKind::mbarrier) bytes += kMbarrierBytes * barrier.stages;
  return bytes;
}

// The bytes of an element must lie in shared memory and leave the barriers alone.
void check_bytes(const Kernel& kernel, const Tile& tile, int begin, int end) {
  const int barrier_begin = kernel.barrier_offset_bytes, barrier_end = barrier_begin + num_barrier_bytes(kernel);
  if (end > kernel.smem_bytes)
    bad_tile(kernel, tile, "GDR-I12",
             fmt::format("it ends at byte {}; the block has {} bytes of shared memory", end, kernel.smem_bytes));
  if (barrier_end > barrier_begin && begin < barrier_end && end > barrier_begin)
    bad_tile(kernel, tile, "GDR-I12",
             fmt::format("its bytes {} to {} overlap the barriers at {} to {}", begin, end - 1, barrier_begin,
                         barrier_end - 1));
}

bool inside(const Range& range, int length) {
  return 0 <= range.begin && range.begin < range.end && range.end <= length;
}

std::string rect_text(const Operand& operand) {
  return fmt::format("{} [{}, {}) x [{}, {})", operand.name, operand.rows.begin, operand.rows.end, operand.cols.begin,
                     operand.cols.end);
}

[[noreturn]] void outside(const Kernel& kernel, const Op& op, const Operand& operand, const std::string& of_what) {
  fail(ErrorKind::check_failed, "GDR-I12", "interp: kernel {}, op {}: {} reaches outside {}.", kernel.name, op.id,
       rect_text(operand), of_what);
}

View view_of_tile(const Program& program, const CompiledOp& op, const Operand& operand) {
  const Kernel& kernel = *program.kernel;
  const auto found = program.tiles.find(operand.name);
  if (found == program.tiles.end()) malformed(kernel, *op.op, fmt::format("there is no tile {}", operand.name));
  const Tile& tile = *found->second.tile;
  if (!inside(operand.rows, tile.rows) || !inside(operand.cols, tile.cols))
    outside(kernel, *op.op, operand, fmt::format("the tile's {} x {}", tile.rows, tile.cols));
  if (tile.space == Space::smem && op.section != Section::body)
    malformed(kernel, *op.op, "prologue and epilogue may not touch shared memory");
  if (tile.space == Space::reg && tile.role != kernel.roles[static_cast<std::size_t>(op.role)].name)
    malformed(kernel, *op.op, fmt::format("register tile {} belongs to role {}", tile.name, tile.role));
  if (tile.space == Space::smem && tile.parts > 1) {
    const int rows = part_rows(tile), begin = operand.part * rows;
    if (operand.rows.begin < begin || operand.rows.end > begin + rows)
      outside(kernel, *op.op, operand, fmt::format("part {} (rows {} to {})", operand.part, begin, begin + rows - 1));
  }
  View view;
  view.tile = &found->second;
  return view;
}

View view_of_tensor(const Program& program, const CompiledOp& op, const Operand& operand) {
  const Plan& plan = *program.plan;
  const Kernel& kernel = *program.kernel;
  View view;
  for (std::size_t index = 0; index < plan.tensors.size(); ++index)
    if (plan.tensors[index].name == operand.name) view.tensor = static_cast<int>(index);
  if (view.tensor < 0) malformed(kernel, *op.op, fmt::format("there is no tensor {}", operand.name));
  const TensorSpec& tensor = plan.tensors[static_cast<std::size_t>(view.tensor)];
  const bool has_slices = std::find(kernel.grid.begin(), kernel.grid.end(), GridAxis::v_slice) != kernel.grid.end();
  if (operand.v_sliced && (!has_slices || tensor.order != GlobalOrder::rows))
    malformed(kernel, *op.op, fmt::format("{} is v_sliced, without a v_slice axis or of packed blocks", tensor.name));
  const int slices = operand.v_sliced ? plan.problem.head_dim_v / kernel.v_slice_cols : 1;
  Range last = operand.cols;
  last.end += (slices - 1) * operand.cols.size();
  if (!inside(operand.rows, tensor.rows) || !inside(last, tensor.cols))
    outside(kernel, *op.op, operand, fmt::format("the tensor's {} x {}", tensor.rows, tensor.cols));
  const bool k_grid = std::find(kernel.grid.begin(), kernel.grid.end(), GridAxis::k_head) != kernel.grid.end();
  const int heads = k_grid && tensor.heads == HeadAxis::v_head ? program.launch->group : 1;
  if (operand.head_index < 0 || operand.head_index >= heads)
    outside(kernel, *op.op, operand, fmt::format("the {} heads of the group", heads));
  if (op.section != Section::body && tensor.index != TensorIndex::sequence)
    malformed(kernel, *op.op, fmt::format("prologue and epilogue have no chunk, so they cannot touch {}", tensor.name));
  return view;
}

}  // namespace

void malformed(const Kernel& kernel, const Op& op, const std::string& what) {
  fail(ErrorKind::check_failed, "GDR-I02", "interp: kernel {}, op {}: {}.", kernel.name, op.id, what);
}

TileCells place_tile(const Kernel& kernel, const Tile& tile, int first_register_cell) {
  if (tile.rows <= 0 || tile.cols <= 0) bad_tile(kernel, tile, "GDR-I02", "it is empty");
  if (tile.dtype != DType::bf16 && tile.dtype != DType::fp16 && tile.dtype != DType::fp32)
    bad_tile(kernel, tile, "GDR-I02", "its dtype is none of bf16, fp16, fp32");
  TileCells cells;
  cells.tile = &tile;
  cells.cell.reserve(static_cast<std::size_t>(tile.rows) * static_cast<std::size_t>(tile.cols));
  if (tile.space == Space::reg) {
    check_register_tile(kernel, tile);
    for (int index = 0; index < tile.rows * tile.cols; ++index) cells.cell.push_back(first_register_cell + index);
    return cells;
  }
  check_smem_tile(kernel, tile);
  const int elem_bytes = static_cast<int>(size_bytes(tile.dtype));
  cells.width = elem_bytes / kCellBytes;
  cells.stage_cells = stage_bytes(tile) / kCellBytes;
  for (int row = 0; row < tile.rows; ++row)
    for (int col = 0; col < tile.cols; ++col) {
      if (!element_exists(tile, row, col)) {
        cells.cell.push_back(-1);
        continue;
      }
      const int byte = element_byte(tile, 0, row, col);
      for (int stage = 0; stage < tile.stages; ++stage) {
        const int begin = byte + stage * stage_bytes(tile);
        check_bytes(kernel, tile, begin, begin + elem_bytes);
      }
      cells.cell.push_back(byte / kCellBytes);
    }
  return cells;
}

int warp_of(const Tile& tile, int row, int col) {
  const int grid_row = row / (tile.rows / tile.reg.grid_rows);
  return grid_row * tile.reg.grid_cols + col / tile.reg.deal_cols % tile.reg.grid_cols;
}

void resolve_views(const Program& program, CompiledOp& op) {
  for (const Operand& operand : op.op->operands) {
    View view = operand.is_tensor ? view_of_tensor(program, op, operand) : view_of_tile(program, op, operand);
    view.operand = &operand;
    view.transposed = operand.transposed;
    op.views.push_back(std::move(view));
  }
}

}  // namespace gdr::interp
