#include "schedule/layout.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace gdr {
namespace {

constexpr int kUnitBytes = 16;    // what ldmatrix and cp.async move at once
constexpr int kPanelBytes = 128;  // 32 banks of 4 bytes: rows longer than this gain nothing
constexpr int kBlock = 16;        // rows and columns of a triangular block

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

// 16x16 blocks on or below the diagonal in the block rows before block row `row`.
int blocks_before(int row) { return row * (row + 1) / 2; }

int pitch_bytes(const Tile& tile) {
  return round_up(tile.smem.panel_cols * static_cast<int>(size_bytes(tile.dtype)), kUnitBytes);
}

// Byte of (row, col) inside a region of `rows` rows laid out in panels.
int panel_byte(const Tile& tile, int rows, int row, int col) {
  const int elem = static_cast<int>(size_bytes(tile.dtype));
  const int pitch = pitch_bytes(tile);
  const int panel = col / tile.smem.panel_cols;
  const int byte = col % tile.smem.panel_cols * elem;
  const int unit = (byte / kUnitBytes) ^ ((row >> tile.smem.xor_shift) & tile.smem.xor_mask);
  return panel * rows * pitch + row * pitch + unit * kUnitBytes + byte % kUnitBytes;
}

}  // namespace

SmemLayout swizzled_layout(int cols, DType dtype) {
  const int elem = static_cast<int>(size_bytes(dtype));
  SmemLayout layout;
  layout.panel_cols = std::min(cols, kPanelBytes / elem);
  // Eight consecutive rows must fall on eight different 16-byte units of a 128-byte line. With u units a row, 8/u rows
  // share a line, so the row number is shifted until it counts lines.
  const int units = layout.panel_cols * elem / kUnitBytes;
  if (units > 1 && std::has_single_bit(static_cast<unsigned>(units))) {
    layout.xor_mask = units - 1;
    layout.xor_shift = std::countr_zero(static_cast<unsigned>(kPanelBytes / kUnitBytes / units));
  }
  return layout;
}

SmemLayout lower16_layout(DType dtype) {
  SmemLayout layout = swizzled_layout(kBlock, dtype);
  layout.lower16 = true;
  return layout;
}

SmemLayout vector_layout(int cols) {
  SmemLayout layout;
  layout.panel_cols = cols;
  return layout;
}

int part_rows(const Tile& tile) { return tile.rows / tile.parts; }

int part_bytes(const Tile& tile) {
  const int pitch = pitch_bytes(tile);
  if (tile.smem.lower16) return blocks_before(tile.rows / kBlock) * kBlock * pitch;
  return part_rows(tile) * pitch * ((tile.cols + tile.smem.panel_cols - 1) / tile.smem.panel_cols);
}

int stage_bytes(const Tile& tile) { return part_bytes(tile) * tile.resident; }
int tile_bytes(const Tile& tile) { return stage_bytes(tile) * tile.stages; }

int slot_offset(const Tile& tile, int iteration, int part) {
  return tile.offset_bytes + iteration % tile.stages * stage_bytes(tile) + part % tile.resident * part_bytes(tile);
}

bool element_exists(const Tile& tile, int row, int col) {
  if (row < 0 || row >= tile.rows || col < 0 || col >= tile.cols) return false;
  return !tile.smem.lower16 || col / kBlock <= row / kBlock;
}

int element_byte(const Tile& tile, int iteration, int row, int col) {
  if (!element_exists(tile, row, col) || tile.offset_bytes < 0)
    fail(ErrorKind::internal, "GDR-X02", "tile {} [{}, {}]: no element ({}, {}) at offset {}", tile.name, tile.rows,
         tile.cols, row, col, tile.offset_bytes);
  const int rows = part_rows(tile);
  const int base = slot_offset(tile, iteration, row / rows);
  if (!tile.smem.lower16) return base + panel_byte(tile, rows, row % rows, col);
  const int block = blocks_before(row / kBlock) + col / kBlock;
  return base + block * kBlock * pitch_bytes(tile) + panel_byte(tile, kBlock, row % kBlock, col % kBlock);
}

Range owned_rows(const Tile& tile, int warp) {
  const int share = tile.rows / tile.reg.grid_rows;
  const int at = warp / tile.reg.grid_cols;
  return {at * share, (at + 1) * share};
}

std::vector<Range> owned_cols(const Tile& tile, int warp) {
  std::vector<Range> runs;
  const int deal = tile.reg.deal_cols;
  for (int begin = warp % tile.reg.grid_cols * deal; begin < tile.cols; begin += tile.reg.grid_cols * deal)
    runs.push_back({begin, begin + deal});
  return runs;
}

int registers_per_thread(const Tile& tile) {
  const int warps = tile.reg.grid_rows * tile.reg.grid_cols;
  const int bytes = tile.rows * tile.cols * static_cast<int>(size_bytes(tile.dtype));
  return (bytes + warps * 32 * 4 - 1) / (warps * 32 * 4);
}

}  // namespace gdr
