// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 32;
constexpr int kThreads = 64;
constexpr int kSmemBytes = 0;  // of 101376 that a block may have

using R_sum = Accumulator<32, 128, 2, 1, 128>;
using R_term = Accumulator<32, 128, 2, 1, 128>;

static_assert(0 <= kSmemBytes, "tiles and barriers");

struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
  TensorArg t_dq;
  TensorArg t_dk;
  TensorArg t_dq_head;
  TensorArg t_dk_head;

  i64 tokens;         // of each sequence
  int num_sequences;
  int k_heads;
  int v_heads;        // kGroup of them for one k-head
  float scale;
};
constexpr int kGroup = 2;

// Where this block works.
struct Block {
  int sequence;
  int head;            // v-head or k-head, by the grid
  int v_slice;
  int chunk;           // of the sequence, where the grid runs over chunks
  int first_chunk;     // of the sequence, counted over all sequences
  int num_chunks;      // of the sequence
  i64 tokens;          // of the sequence
};

GDR_FN Block find_block(const Args& args) {
  Block block = {};
  int index = block_index();
  block.tokens = args.tokens;
  block.num_chunks = static_cast<int>((args.tokens + kChunk - 1) / kChunk);
  block.head = index % args.k_heads;
  index /= args.k_heads;
  const int of_all = index;
  block.sequence = of_all / block.num_chunks;
  block.chunk = of_all % block.num_chunks;

  block.first_chunk = block.sequence * block.num_chunks;
  return block;
}

template <typename T, int kStride>
GDR_FN GlobalTile<T, kStride> tile_of(const TensorArg& tensor, i64 item, int head, i64 first_row, int rows) {
  T* data = static_cast<T*>(tensor.data);
  if (data) data += item * tensor.item_stride + head * tensor.head_stride + first_row * tensor.row_stride;
  return {data, tensor.row_stride, rows};
}

// ---------------------------------------------------------------------------------------------------- role adders
// Warps 0 to 1, 248 registers a thread.
// Waits for: nothing. Signals: nothing.
GDR_FN void role_adders(const Args& args, const Block& block, Me me) {
  R_sum r_sum;
  R_term r_term;

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < 1; ++it) {
    const int chunk = block.chunk;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // 12: dq of the k-head [sum.load]
    at_op<0>(it);
    me = renewed(me);
    load<R_sum, Rect<0, 32, 0, 128>, true, false>(me, r_sum, tile_of<float, 0>(args.t_dq_head, block.sequence, block.head * kGroup + 0, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dq of the k-head [term.load]
    at_op<1>(it);
    me = renewed(me);
    load<R_term, Rect<0, 32, 0, 128>, true, false>(me, r_term, tile_of<float, 0>(args.t_dq_head, block.sequence, block.head * kGroup + 1, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dq of the k-head [sum.map]
    at_op<2>(it);
    me = renewed(me);
    for_elements<R_sum::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_sum::set(r_sum, b, n, e, (R_sum::get(r_sum, b, n, e) + R_term::get(r_term, b, n, e)));
    });
    // 12: dq of the k-head [dq.out]
    at_op<3>(it);
    me = renewed(me);
    copy_out<R_sum, Rect<0, 32, 0, 128>, true, false, false>(me, r_sum, tile_of<bf16, 0>(args.t_dq, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dk of the k-head [sum.load2]
    at_op<4>(it);
    me = renewed(me);
    load<R_sum, Rect<0, 32, 0, 128>, true, false>(me, r_sum, tile_of<float, 0>(args.t_dk_head, block.sequence, block.head * kGroup + 0, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dk of the k-head [term.load2]
    at_op<5>(it);
    me = renewed(me);
    load<R_term, Rect<0, 32, 0, 128>, true, false>(me, r_term, tile_of<float, 0>(args.t_dk_head, block.sequence, block.head * kGroup + 1, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dk of the k-head [sum.map2]
    at_op<6>(it);
    me = renewed(me);
    for_elements<R_sum::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_sum::set(r_sum, b, n, e, (R_sum::get(r_sum, b, n, e) + R_term::get(r_term, b, n, e)));
    });
    // 12: dk of the k-head [dk.out]
    at_op<7>(it);
    me = renewed(me);
    copy_out<R_sum, Rect<0, 32, 0, 128>, true, false, false>(me, r_sum, tile_of<bf16, 0>(args.t_dk, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
  }
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_group_sum_bf16_k128v128_c32_s1__sm_120(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;

  const Block block = find_block(args);
  {
    role_adders(args, block, {warp - 0, lane});
  }
}
