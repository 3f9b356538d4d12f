// What a launch consists of: the chunks of all sequences and the blocks of a kernel's grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interp/interp.hpp"

namespace gdr::interp {

struct Chunk {
  int sequence = 0;
  std::int64_t token_begin = 0;
  int valid_rows = 0;  // 1..chunk
};

struct Launch {
  LaunchShape shape;
  int group = 1;                          // v-heads per k-head
  std::vector<Chunk> chunks;              // of all sequences in order
  std::vector<std::int64_t> first_chunk;  // by sequence, and one past the last

  int num_sequences() const { return static_cast<int>(shape.sequences.size()); }
  int num_heads(HeadAxis axis) const { return axis == HeadAxis::k_head ? shape.k_heads : shape.v_heads; }
};

// Throws Error (config, GDR-I01) if the shape is impossible.
Launch make_launch(const Plan& plan, const LaunchShape& shape);

// One block: its place in the grid and what follows from it.
struct Block {
  const Kernel* kernel = nullptr;
  std::vector<std::int64_t> position;  // on each axis of the grid
  int sequence = -1;                   // -1: the grid has neither a sequence nor a chunk
  int head = 0;                        // on `head_axis`
  HeadAxis head_axis = HeadAxis::v_head;
  int v_slice = 0;
  std::int64_t first_chunk = -1;  // global index of the chunk of iteration 0; -1: none
  std::int64_t chunk_step = 0;    // from one iteration to the next: 1, -1, or 0 where the body runs once
  std::int64_t count = 0;         // iterations

  std::string describe() const;  // "sequence 0, v_head 1"
};

// All blocks of the kernel in row-major order of its axes. Throws Error (check_failed, GDR-I02) if the grid and the
// loop do not go together.
std::vector<Block> blocks_of(const Plan& plan, const Kernel& kernel, const Launch& launch);

}  // namespace gdr::interp
