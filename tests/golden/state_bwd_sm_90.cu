// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 64;
constexpr int kThreads = 192;
constexpr int kSmemBytes = 95840;  // of 232448 that a block may have

using S_k = SharedTile<bf16, 0, 64, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 0 to 32768
static_assert(S_k::kBytes == 32768, "k: the plan's bytes");
using S_q = SharedTile<bf16, 32768, 64, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 32768 to 65536
static_assert(S_q::kBytes == 32768, "q: the plan's bytes");
using S_do = SharedTile<bf16, 86016, 64, 32, 32, 3, 1, false, 1, 1, 2>;  // bytes 86016 to 94208
static_assert(S_do::kBytes == 8192, "do: the plan's bytes");
using S_a = SharedTile<bf16, 65536, 64, 64, 16, 1, 2, true, 1, 1, 2>;  // bytes 65536 to 75776
static_assert(S_a::kBytes == 10240, "a: the plan's bytes");
using S_pg = SharedTile<bf16, 75776, 64, 64, 16, 1, 2, true, 1, 1, 2>;  // bytes 75776 to 86016
static_assert(S_pg::kBytes == 10240, "pg: the plan's bytes");
using S_eg = SharedTile<float, 94208, 1, 64, 64, 0, 0, false, 1, 1, 2>;  // bytes 94208 to 94720
static_assert(S_eg::kBytes == 512, "eg: the plan's bytes");
using S_er = SharedTile<float, 94720, 1, 64, 64, 0, 0, false, 1, 1, 2>;  // bytes 94720 to 95232
static_assert(S_er::kBytes == 512, "er: the plan's bytes");
using S_be = SharedTile<float, 95232, 1, 64, 64, 0, 0, false, 1, 1, 2>;  // bytes 95232 to 95744
static_assert(S_be::kBytes == 512, "be: the plan's bytes");
using R_S = Accumulator<32, 128, 2, 1, 128>;
using R_Sb = Fragment<bf16, 32, 128, 2, 1, 128>;
using R_D = Accumulator<32, 64, 2, 1, 64>;
using R_dot = Fragment<bf16, 32, 64, 2, 1, 64>;
using R_bdb = Fragment<bf16, 32, 64, 2, 1, 64>;
using R_dub = Fragment<bf16, 32, 64, 2, 1, 64>;

constexpr int kBarrier_k_arrived = 95744;  // k of k.in is read by D.mma
constexpr int kBarrier_er_arrived = 95760;  // er of er.in is read by D.map
constexpr int kBarrier_do_arrived = 95776;  // do of do.in is read by dot.load
constexpr int kBarrier_a_arrived = 95792;  // a of a.in is read by D.mma3
constexpr int kBarrier_q_arrived = 95808;  // q of q.in is read by S.mma
constexpr int kBarrier_k_free = 95824;  // k of S.mma2 was read before k.in
static_assert(95840 <= kSmemBytes, "tiles and barriers");

struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
  TensorArg t_q;
  TensorArg t_k;
  TensorArg t_do;
  TensorArg t_dht;
  TensorArg t_dh0;
  TensorArg t_beta_chunk;
  TensorArg t_eg_chunk;
  TensorArg t_er_chunk;
  TensorArg t_a_chunk;
  TensorArg t_pg_chunk;
  TensorArg t_ds_chunk;

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
// Waits for: k_free. Signals: k_arrived, er_arrived, do_arrived, a_arrived, q_arrived.
GDR_FN void role_loader(const Args& args, const Block& block, Me me) {

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
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
    copy_in<S_k, Rect<0, 64, 0, 128>, 4, true>(me, S_k::base(it, 0), tile_of<bf16, 0>(args.t_k, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [k_arrived.arrive.loader]
    at_op<3>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_k_arrived + it % 2 * 8); 
    // eg [eg.in]
    at_op<4>(it);
    me = renewed(me);
    copy_in<S_eg, Rect<0, 1, 0, 64>, 4, false>(me, S_eg::base(it, 0), tile_of<float, 64>(args.t_eg_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // er [er.in]
    at_op<5>(it);
    me = renewed(me);
    copy_in<S_er, Rect<0, 1, 0, 64>, 4, false>(me, S_er::base(it, 0), tile_of<float, 64>(args.t_er_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // order [er_arrived.arrive.loader]
    at_op<6>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_er_arrived + it % 2 * 8); 
    // be [be.in]
    at_op<7>(it);
    me = renewed(me);
    copy_in<S_be, Rect<0, 1, 0, 64>, 4, false>(me, S_be::base(it, 0), tile_of<float, 64>(args.t_beta_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // pg [pg.in]
    at_op<8>(it);
    me = renewed(me);
    copy_in_lower<S_pg, 4>(me, S_pg::base(it, 0), tile_of<bf16, 64>(args.t_pg_chunk, block.first_chunk + chunk, block.head, 0, 64));
    // do [do.in]
    at_op<9>(it);
    me = renewed(me);
    copy_in<S_do, Rect<0, 64, 0, 32>, 4, true>(me, S_do::base(it, 0), tile_of<bf16, 0>(args.t_do, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, block.v_slice * 32 + 0);
    // order [do_arrived.arrive.loader]
    at_op<10>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_do_arrived + it % 2 * 8); 
    // a [a.in]
    at_op<11>(it);
    me = renewed(me);
    copy_in_lower<S_a, 4>(me, S_a::base(it, 0), tile_of<bf16, 64>(args.t_a_chunk, block.first_chunk + chunk, block.head, 0, 64));
    // order [a_arrived.arrive.loader]
    at_op<12>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_a_arrived + it % 2 * 8); 
    // q [q.in]
    at_op<13>(it);
    me = renewed(me);
    copy_in<S_q, Rect<0, 64, 0, 128>, 4, true>(me, S_q::base(it, 0), tile_of<bf16, 0>(args.t_q, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [q_arrived.arrive.loader]
    at_op<14>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_q_arrived + it % 2 * 8); 
  }
}

// ---------------------------------------------------------------------------------------------------- role cols
// Warps 4 to 5, 248 registers a thread.
// Waits for: k_arrived, er_arrived, do_arrived, a_arrived, q_arrived. Signals: k_free.
GDR_FN void role_cols(const Args& args, const Block& block, Me me) {
  R_S r_S;
  R_Sb r_Sb;
  R_D r_D;
  R_dot r_dot;
  R_bdb r_bdb;
  R_dub r_dub;
  // dS of the last chunk is dht [S.load]
  at_op<0>(-1);
  me = renewed(me);
  load<R_S, Rect<0, 32, 0, 128>, false, true>(me, r_S, tile_of<float, 128>(args.t_dht, block.sequence, block.head, 0, 128), 0, block.v_slice * 32 + 0);

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // 14: bf16(dS) [Sb.cast]
    at_op<15>(it);
    me = renewed(me);
    relayout(r_Sb, r_S);
    // 14: bf16(dS) [ds_chunk.out]
    at_op<16>(it);
    me = renewed(me);
    copy_out<R_Sb, Rect<0, 32, 0, 128>, false, true, false>(me, r_Sb, tile_of<bf16, 128>(args.t_ds_chunk, block.first_chunk + chunk, block.head, 0, 128), 0, block.v_slice * 32 + 0);
    // order [k_arrived.wait]
    at_op<17>(it);
    me = renewed(me);
    wait_for<kBarrier_k_arrived, 2>(it - 0);
    // 3: (K dS)^T [D.mma]
    at_op<18>(it);
    me = renewed(me);
    mma<R_D, Rect<0, 32, 0, 64>, false, false, 0, 1, 1>(me, r_D, r_Sb, RegisterA<R_Sb, Rect<0, 32, 0, 128>>{}, SharedB<S_k, Rect<0, 64, 0, 128>, true>{S_k::base(it, 0)}, Unscaled{});
    // order [er_arrived.wait]
    at_op<19>(it);
    me = renewed(me);
    wait_for<kBarrier_er_arrived, 2>(it - 0);
    // 3: D1 = er (K dS) [D.map]
    at_op<20>(it);
    me = renewed(me);
    for_elements<R_D::S, Rect<0, 32, 0, 64>>(me, [&](int b, int n, int e, At i, At j) {
      R_D::set(r_D, b, n, e, (S_er::at(S_er::base(it, 0), j) * R_D::get(r_D, b, n, e)));
    });
    // order [do_arrived.wait]
    at_op<21>(it);
    me = renewed(me);
    wait_for<kBarrier_do_arrived, 2>(it - 0);
    // 3: dO^T [dot.load]
    at_op<22>(it);
    me = renewed(me);
    load<R_dot, Rect<0, 32, 0, 64>, S_do, true>(me, r_dot, S_do::base(it, 0), 0, 0);
    // 3: D = D1 + Pg^T dO [D.mma2]
    at_op<23>(it);
    me = renewed(me);
    mma<R_D, Rect<0, 32, 0, 64>, false, true, 0, 1, 1>(me, r_D, r_dot, RegisterA<R_dot, Rect<0, 32, 0, 64>>{}, SharedB<S_pg, Rect<0, 64, 0, 64>, false>{S_pg::base(it, 0)}, Unscaled{});
    // 3: beta D [D.map2]
    at_op<24>(it);
    me = renewed(me);
    for_elements<R_D::S, Rect<0, 32, 0, 64>>(me, [&](int b, int n, int e, At i, At j) {
      R_D::set(r_D, b, n, e, (S_be::at(S_be::base(it, 0), j) * R_D::get(r_D, b, n, e)));
    });
    // 3: bf16(beta D) [bdb.cast]
    at_op<25>(it);
    me = renewed(me);
    relayout(r_bdb, r_D);
    // order [a_arrived.wait]
    at_op<26>(it);
    me = renewed(me);
    wait_for<kBarrier_a_arrived, 2>(it - 0);
    // 4: dV = beta D + (A'-I)^T (beta D) [D.mma3]
    at_op<27>(it);
    me = renewed(me);
    mma<R_D, Rect<0, 32, 0, 64>, false, true, 0, 1, 1>(me, r_D, r_bdb, RegisterA<R_bdb, Rect<0, 32, 0, 64>>{}, SharedB<S_a, Rect<0, 64, 0, 64>, false>{S_a::base(it, 0)}, Unscaled{});
    // 13: -eg dV [D.map3]
    at_op<28>(it);
    me = renewed(me);
    for_elements<R_D::S, Rect<0, 32, 0, 64>>(me, [&](int b, int n, int e, At i, At j) {
      R_D::set(r_D, b, n, e, (-S_eg::at(S_eg::base(it, 0), j) * R_D::get(r_D, b, n, e)));
    });
    // 13: bf16(-eg dV) [dub.cast]
    at_op<29>(it);
    me = renewed(me);
    relayout(r_dub, r_D);
    // 13: eL dS [S.map]
    at_op<30>(it);
    me = renewed(me);
    for_elements<R_S::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_S::set(r_S, b, n, e, (S_eg::at(S_eg::base(it, 0), 63) * R_S::get(r_S, b, n, e)));
    });
    // order [q_arrived.wait]
    at_op<31>(it);
    me = renewed(me);
    wait_for<kBarrier_q_arrived, 2>(it - 0);
    // 13: dS += Q^T (s eg dO) [S.mma]
    at_op<32>(it);
    me = renewed(me);
    mma<R_S, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_S, r_dot, RegisterA<R_dot, Rect<0, 32, 0, 64>>{}, SharedB<S_q, Rect<0, 64, 0, 128>, false>{S_q::base(it, 0)}, scaled_by([&](At l) { return (args.scale * S_eg::at(S_eg::base(it, 0), l)); }));
    // 13: dS += K^T (-eg dV) [S.mma2]
    at_op<33>(it);
    me = renewed(me);
    mma<R_S, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_S, r_dub, RegisterA<R_dub, Rect<0, 32, 0, 64>>{}, SharedB<S_k, Rect<0, 64, 0, 128>, false>{S_k::base(it, 0)}, Unscaled{});
    // order [k_free.arrive.cols]
    at_op<34>(it);
    me = renewed(me);
    arrive(me, kBarrier_k_free + it % 2 * 8);
  }
  // dS before the first chunk is dh0 [dh0.out]
  at_op<35>(-1);
  me = renewed(me);
  if (args.t_dh0.data) copy_out<R_S, Rect<0, 32, 0, 128>, false, true, false>(me, r_S, tile_of<float, 128>(args.t_dh0, block.sequence, block.head, 0, 128), 0, block.v_slice * 32 + 0);
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_state_bwd_bf16_k128v128_c64_s1__sm_90(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;
  if (thread_index() == 0) {
    barrier_init(kBarrier_k_arrived + 0, 128);
    barrier_init(kBarrier_k_arrived + 8, 128);
    barrier_init(kBarrier_er_arrived + 0, 128);
    barrier_init(kBarrier_er_arrived + 8, 128);
    barrier_init(kBarrier_do_arrived + 0, 128);
    barrier_init(kBarrier_do_arrived + 8, 128);
    barrier_init(kBarrier_a_arrived + 0, 128);
    barrier_init(kBarrier_a_arrived + 8, 128);
    barrier_init(kBarrier_q_arrived + 0, 128);
    barrier_init(kBarrier_q_arrived + 8, 128);
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
