// Where an element of a shared-memory tile lies and who owns an element of a register tile: the one address function
// that packing, the interpreter, the emitter and the bank-conflict counter share.
#pragma once

#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// A layout for a matrix tile of `cols` columns: panels of at most 128 bytes a row, 16-byte units xor-ed with the row so
// that ldmatrix and ldmatrix.trans both read it without bank conflicts.
SmemLayout swizzled_layout(int cols, DType dtype);
// Only the 16x16 blocks on or below the diagonal of a square tile.
SmemLayout lower16_layout(DType dtype);
// Plain rows (vectors and partial sums).
SmemLayout vector_layout(int cols);

// Bytes of one part of a tile, of one stage (all resident parts), and of the whole tile in shared memory.
int part_bytes(const Tile& tile);
int stage_bytes(const Tile& tile);
int tile_bytes(const Tile& tile);
int part_rows(const Tile& tile);  // rows of one part
// First byte of the slot that holds part `part` in iteration `iteration`.
int slot_offset(const Tile& tile, int iteration, int part);

// Byte offset, from the start of the block's shared memory, of element (row, col) of logical tile
// coordinates in iteration `iteration`. The tile must be placed (offset_bytes >= 0). For lower16 tiles the element must
// lie in a block on or below the diagonal.
int element_byte(const Tile& tile, int iteration, int row, int col);
bool element_exists(const Tile& tile, int row, int col);

// The rows and the runs of columns of a register tile that warp `warp` of its role owns.
Range owned_rows(const Tile& tile, int warp);
std::vector<Range> owned_cols(const Tile& tile, int warp);
// Registers per thread that the tile occupies.
int registers_per_thread(const Tile& tile);

}  // namespace gdr
