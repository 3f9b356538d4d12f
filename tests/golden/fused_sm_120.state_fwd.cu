// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 32;
constexpr int kThreads = 192;
constexpr int kSmemBytes = 24368;  // of 101376 that a block may have

using S_k = SharedTile<bf16, 0, 32, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 0 to 16384
static_assert(S_k::kBytes == 16384, "k: the plan's bytes");
using S_v = SharedTile<bf16, 16384, 32, 32, 32, 3, 1, false, 1, 1, 2>;  // bytes 16384 to 20480
static_assert(S_v::kBytes == 4096, "v: the plan's bytes");
using S_a = SharedTile<bf16, 20480, 32, 32, 16, 1, 2, true, 1, 1, 2>;  // bytes 20480 to 23552
static_assert(S_a::kBytes == 3072, "a: the plan's bytes");
using S_eg = SharedTile<float, 23552, 1, 32, 32, 0, 0, false, 1, 1, 2>;  // bytes 23552 to 23808
static_assert(S_eg::kBytes == 256, "eg: the plan's bytes");
using S_er = SharedTile<float, 23808, 1, 32, 32, 0, 0, false, 1, 1, 2>;  // bytes 23808 to 24064
static_assert(S_er::kBytes == 256, "er: the plan's bytes");
using S_be = SharedTile<float, 24064, 1, 32, 32, 0, 0, false, 1, 1, 2>;  // bytes 24064 to 24320
static_assert(S_be::kBytes == 256, "be: the plan's bytes");
using R_S = Accumulator<32, 128, 2, 1, 128>;
using R_Sb = Fragment<bf16, 32, 128, 2, 1, 128>;
using R_D = Accumulator<32, 32, 2, 1, 32>;
using R_vt = Fragment<bf16, 32, 32, 2, 1, 32>;
using R_wb = Fragment<bf16, 32, 32, 2, 1, 32>;
using R_eb = Fragment<bf16, 32, 32, 2, 1, 32>;

constexpr int kBarrier_k_arrived = 24320;  // k of k.in is read by D.mma
constexpr int kBarrier_v_arrived = 24336;  // v of v.in is read by vt.load
constexpr int kBarrier_k_free = 24352;  // k of S.mma was read before k.in
static_assert(24368 <= kSmemBytes, "tiles and barriers");

struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
  TensorArg t_k;
  TensorArg t_v;
  TensorArg t_h0;
  TensorArg t_beta_chunk;
  TensorArg t_eg_chunk;
  TensorArg t_er_chunk;
  TensorArg t_a_chunk;
  TensorArg t_h_chunk;

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
  block.v_slice = index % 4;
  index /= 4;
  block.head = index % args.v_heads;
  index /= args.v_heads;
  block.sequence = index;

  block.first_chunk = block.sequence * block.num_chunks;
  return block;
}

template <typename T, int kStride>
GDR_FN GlobalTile<T, kStride> tile_of(const TensorArg& tensor, i64 item, int head, i64 first_row, int rows) {
  T* data = static_cast<T*>(tensor.data);
  if (data) data += item * tensor.item_stride + head * tensor.head_stride + first_row * tensor.row_stride;
  return {data, tensor.row_stride, rows};
}

// ---------------------------------------------------------------------------------------------------- role loader
// Warps 0 to 3, 248 registers a thread.
// Waits for: k_free. Signals: k_arrived, v_arrived.
GDR_FN void role_loader(const Args& args, const Block& block, Me me) {

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [k_free.wait]
    at_op<1>(it);
    me = renewed(me);
    wait_for<kBarrier_k_free, 2>(it - 2);
    // k [k.in]
    at_op<2>(it);
    me = renewed(me);
    copy_in<S_k, Rect<0, 32, 0, 128>, 4, true>(me, S_k::base(it, 0), tile_of<bf16, 0>(args.t_k, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [k_arrived.arrive.loader]
    at_op<3>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_k_arrived + it % 2 * 8); 
    // eg [eg.in]
    at_op<4>(it);
    me = renewed(me);
    copy_in<S_eg, Rect<0, 1, 0, 32>, 4, false>(me, S_eg::base(it, 0), tile_of<float, 32>(args.t_eg_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // er [er.in]
    at_op<5>(it);
    me = renewed(me);
    copy_in<S_er, Rect<0, 1, 0, 32>, 4, false>(me, S_er::base(it, 0), tile_of<float, 32>(args.t_er_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // be [be.in]
    at_op<6>(it);
    me = renewed(me);
    copy_in<S_be, Rect<0, 1, 0, 32>, 4, false>(me, S_be::base(it, 0), tile_of<float, 32>(args.t_beta_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // a [a.in]
    at_op<7>(it);
    me = renewed(me);
    copy_in_lower<S_a, 4>(me, S_a::base(it, 0), tile_of<bf16, 32>(args.t_a_chunk, block.first_chunk + chunk, block.head, 0, 32));
    // v [v.in]
    at_op<8>(it);
    me = renewed(me);
    copy_in<S_v, Rect<0, 32, 0, 32>, 4, true>(me, S_v::base(it, 0), tile_of<bf16, 0>(args.t_v, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, block.v_slice * 32 + 0);
    // order [v_arrived.arrive.loader]
    at_op<9>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_v_arrived + it % 2 * 8); 
  }
}

// ---------------------------------------------------------------------------------------------------- role cols
// Warps 4 to 5, 248 registers a thread.
// Waits for: k_arrived, v_arrived. Signals: k_free.
GDR_FN void role_cols(const Args& args, const Block& block, Me me) {
  R_S r_S;
  R_Sb r_Sb;
  R_D r_D;
  R_vt r_vt;
  R_wb r_wb;
  R_eb r_eb;
  // S0 of the first chunk is h0 [S.load]
  at_op<0>(-1);
  me = renewed(me);
  load<R_S, Rect<0, 32, 0, 128>, false, true>(me, r_S, tile_of<float, 128>(args.t_h0, block.sequence, block.head, 0, 128), 0, block.v_slice * 32 + 0);

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // F9: bf16(S0) [Sb.cast]
    at_op<10>(it);
    me = renewed(me);
    relayout(r_Sb, r_S);
    // F9: bf16(S0) [h_chunk.out]
    at_op<11>(it);
    me = renewed(me);
    copy_out<R_Sb, Rect<0, 32, 0, 128>, false, true, false>(me, r_Sb, tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 0, block.v_slice * 32 + 0);
    // order [k_arrived.wait]
    at_op<12>(it);
    me = renewed(me);
    wait_for<kBarrier_k_arrived, 2>(it - 0);
    // F4: U^T = S0^T K^T [D.mma]
    at_op<13>(it);
    me = renewed(me);
    mma<R_D, Rect<0, 32, 0, 32>, false, false, 0, 1, 1>(me, r_D, r_Sb, RegisterA<R_Sb, Rect<0, 32, 0, 128>>{}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::base(it, 0)}, Unscaled{});
    // order [v_arrived.wait]
    at_op<14>(it);
    me = renewed(me);
    wait_for<kBarrier_v_arrived, 2>(it - 0);
    // F5: V^T [vt.load]
    at_op<15>(it);
    me = renewed(me);
    load<R_vt, Rect<0, 32, 0, 32>, S_v, true>(me, r_vt, S_v::base(it, 0), 0, 0);
    // F5: W = V - eg U [D.map]
    at_op<16>(it);
    me = renewed(me);
    for_elements<R_D::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_D::set(r_D, b, n, e, (R_vt::get(r_vt, b, n, e) - (S_eg::at(S_eg::base(it, 0), j) * R_D::get(r_D, b, n, e))));
    });
    // F5: bf16(W) [wb.cast]
    at_op<17>(it);
    me = renewed(me);
    relayout(r_wb, r_D);
    // F6: E = W + (A'-I) W [D.mma2]
    at_op<18>(it);
    me = renewed(me);
    mma<R_D, Rect<0, 32, 0, 32>, false, true, 0, 1, 1>(me, r_D, r_wb, RegisterA<R_wb, Rect<0, 32, 0, 32>>{}, SharedB<S_a, Rect<0, 32, 0, 32>, true>{S_a::base(it, 0)}, Unscaled{});
    // F6: er beta E [D.map2]
    at_op<19>(it);
    me = renewed(me);
    for_elements<R_D::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_D::set(r_D, b, n, e, ((S_er::at(S_er::base(it, 0), j) * S_be::at(S_be::base(it, 0), j)) * R_D::get(r_D, b, n, e)));
    });
    // F6: bf16(er beta E) [eb.cast]
    at_op<20>(it);
    me = renewed(me);
    relayout(r_eb, r_D);
    // F9: eL S0 [S.map]
    at_op<21>(it);
    me = renewed(me);
    for_elements<R_S::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_S::set(r_S, b, n, e, (S_eg::at(S_eg::base(it, 0), 31) * R_S::get(r_S, b, n, e)));
    });
    // F9: S1 = eL S0 + K^T (er V') [S.mma]
    at_op<22>(it);
    me = renewed(me);
    mma<R_S, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_S, r_eb, RegisterA<R_eb, Rect<0, 32, 0, 32>>{}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, Unscaled{});
    // order [k_free.arrive.cols]
    at_op<23>(it);
    me = renewed(me);
    arrive(me, kBarrier_k_free + it % 2 * 8);
  }
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_state_fwd_bf16_k128v128_c32_s1__sm_120(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;
  if (thread_index() == 0) {
    barrier_init(kBarrier_k_arrived + 0, 128);
    barrier_init(kBarrier_k_arrived + 8, 128);
    barrier_init(kBarrier_v_arrived + 0, 128);
    barrier_init(kBarrier_v_arrived + 8, 128);
    barrier_init(kBarrier_k_free + 0, 2);
    barrier_init(kBarrier_k_free + 8, 2);
  }
  block_sync();
  const Block block = find_block(args);
  if (warp < 4) {
    role_loader(args, block, {warp - 0, lane});
  } else {
    role_cols(args, block, {warp - 4, lane});
  }
}
