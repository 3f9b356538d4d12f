// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 32;
constexpr int kThreads = 96;
constexpr int kSmemBytes = 16024;  // of 101376 that a block may have

using S_k = SharedTile<bf16, 0, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 0 to 8192
static_assert(S_k::kBytes == 8192, "k: the plan's bytes");
using S_g = SharedTile<float, 15360, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 15360 to 15488
static_assert(S_g::kBytes == 128, "g: the plan's bytes");
using S_be = SharedTile<float, 15488, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 15488 to 15616
static_assert(S_be::kBytes == 128, "be: the plan's bytes");
using S_gam = SharedTile<float, 15616, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 15616 to 15744
static_assert(S_gam::kBytes == 128, "gam: the plan's bytes");
using S_eg = SharedTile<float, 15744, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 15744 to 15872
static_assert(S_eg::kBytes == 128, "eg: the plan's bytes");
using S_er = SharedTile<float, 15872, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 15872 to 16000
static_assert(S_er::kBytes == 128, "er: the plan's bytes");
using S_l = SharedTile<float, 8192, 32, 32, 16, 3, 1, true, 1, 1, 1>;  // bytes 8192 to 11264
static_assert(S_l::kBytes == 3072, "l: the plan's bytes");
using S_inv = SharedTile<float, 11264, 32, 32, 16, 3, 1, true, 1, 1, 1>;  // bytes 11264 to 14336
static_assert(S_inv::kBytes == 3072, "inv: the plan's bytes");
using R_M = Accumulator<32, 32, 2, 1, 32>;
using S_t = SharedTile<float, 14336, 16, 16, 16, 3, 1, false, 1, 1, 1>;  // bytes 14336 to 15360
static_assert(S_t::kBytes == 1024, "t: the plan's bytes");
using R_T = Accumulator<32, 16, 2, 1, 8>;

constexpr int kBarrier_g_arrived = 16000;  // g of g.in is read by gam.scan
constexpr int kBarrier_be_arrived = 16008;  // be of be.in is read by beta_chunk.out
constexpr int kBarrier_k_arrived = 16016;  // k of k.in is read by M.mma
static_assert(16024 <= kSmemBytes, "tiles and barriers");

struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
  TensorArg t_k;
  TensorArg t_g;
  TensorArg t_beta;
  TensorArg t_gamma_chunk;
  TensorArg t_beta_chunk;
  TensorArg t_eg_chunk;
  TensorArg t_er_chunk;
  TensorArg t_a_chunk;

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
  block.head = index % args.v_heads;
  index /= args.v_heads;
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

// ---------------------------------------------------------------------------------------------------- role loader
// Warps 0 to 0, 248 registers a thread.
// Waits for: nothing. Signals: g_arrived, be_arrived, k_arrived.
GDR_FN void role_loader(const Args& args, const Block& block, Me me) {

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < 1; ++it) {
    const int chunk = block.chunk;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // g [g.in]
    at_op<0>(it);
    me = renewed(me);
    warp_sync();
    copy_in_plain<S_g, Rect<0, 1, 0, 32>, 1, true, true>(me, S_g::base(it, 0), tile_of<float, 0>(args.t_g, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    warp_sync();
    // order [g_arrived.arrive.loader]
    at_op<1>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_g_arrived); arrive(me, kBarrier_g_arrived);
    // beta [be.in]
    at_op<2>(it);
    me = renewed(me);
    warp_sync();
    copy_in_plain<S_be, Rect<0, 1, 0, 32>, 1, true, true>(me, S_be::base(it, 0), tile_of<float, 0>(args.t_beta, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    warp_sync();
    // order [be_arrived.arrive.loader]
    at_op<3>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_be_arrived); arrive(me, kBarrier_be_arrived);
    // k [k.in]
    at_op<4>(it);
    me = renewed(me);
    copy_in<S_k, Rect<0, 32, 0, 128>, 1, true>(me, S_k::base(it, 0), tile_of<bf16, 0>(args.t_k, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [k_arrived.arrive.loader]
    at_op<5>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_k_arrived); arrive(me, kBarrier_k_arrived);
  }
}

// ---------------------------------------------------------------------------------------------------- role solver
// Warps 1 to 2, 248 registers a thread.
// Waits for: g_arrived, be_arrived, k_arrived. Signals: nothing.
GDR_FN void role_solver(const Args& args, const Block& block, Me me) {
  R_M r_M;
  R_T r_T;

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < 1; ++it) {
    const int chunk = block.chunk;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [g_arrived.wait]
    at_op<6>(it);
    me = renewed(me);
    wait_for<kBarrier_g_arrived, 1>(it - 0);
    // F1: gamma, g clamped at -120 [gam.scan]
    at_op<7>(it);
    me = renewed(me);
    if (me.warp == 0) {
      warp_sync();
      const Sums<32> sum0 = prefix_sums<32>(me, [&](int i) { return choose(-120.0f > S_g::at(S_g::base(it, 0), i), -120.0f, S_g::at(S_g::base(it, 0), i)); });
      for_vector<0, 32, 1>(me, [&](int i) { S_gam::store(S_gam::base(it, 0), 0, i, sum0.at(sum0, i)); });
      warp_sync();
    }
    // F1: gamma [gamma_chunk.out]
    at_op<8>(it);
    me = renewed(me);
    copy_out<S_gam, Rect<0, 1, 0, 32>, 2, false, false>(me, S_gam::base(it, 0), tile_of<float, 32>(args.t_gamma_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // order [be_arrived.wait]
    at_op<9>(it);
    me = renewed(me);
    wait_for<kBarrier_be_arrived, 1>(it - 0);
    // beta [beta_chunk.out]
    at_op<10>(it);
    me = renewed(me);
    copy_out<S_be, Rect<0, 1, 0, 32>, 2, false, false>(me, S_be::base(it, 0), tile_of<float, 32>(args.t_beta_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // F1: eg [eg.map]
    at_op<11>(it);
    me = renewed(me);
    warp_sync();
    for_vector<0, 32, 2>(me, [&](int i) { S_eg::store(S_eg::base(it, 0), 0, i, exp_of(S_gam::at(S_gam::base(it, 0), i))); });
    warp_sync();
    // F1: er [er.map]
    at_op<12>(it);
    me = renewed(me);
    warp_sync();
    for_vector<0, 32, 2>(me, [&](int i) { S_er::store(S_er::base(it, 0), 0, i, exp_of((S_gam::at(S_gam::base(it, 0), 31) - S_gam::at(S_gam::base(it, 0), i)))); });
    warp_sync();
    // F1: eg [eg_chunk.out]
    at_op<13>(it);
    me = renewed(me);
    copy_out<S_eg, Rect<0, 1, 0, 32>, 2, false, false>(me, S_eg::base(it, 0), tile_of<float, 32>(args.t_eg_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // F1: er [er_chunk.out]
    at_op<14>(it);
    me = renewed(me);
    copy_out<S_er, Rect<0, 1, 0, 32>, 2, false, false>(me, S_er::base(it, 0), tile_of<float, 32>(args.t_er_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // order [k_arrived.wait]
    at_op<15>(it);
    me = renewed(me);
    wait_for<kBarrier_k_arrived, 1>(it - 0);
    // F2: KK = K K^T [M.mma]
    at_op<16>(it);
    me = renewed(me);
    mma<R_M, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_M, SharedA<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::base(it, 0)}, Unscaled{});
    // order [solver_meet.before.M.map]
    at_op<17>(it);
    me = renewed(me);
    role_sync<1, 64>();
    // F3: L = strictLower(KK o G) diag(beta) [M.map]
    at_op<18>(it);
    me = renewed(me);
    for_elements<R_M::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_M::set(r_M, b, n, e, choose(i > j, ((exp_of((S_gam::at(S_gam::base(it, 0), i) - S_gam::at(S_gam::base(it, 0), j))) * S_be::at(S_be::base(it, 0), j)) * R_M::get(r_M, b, n, e)), 0.0f));
    });
    // F3: L [l.store]
    at_op<19>(it);
    me = renewed(me);
    warp_sync();
    store<R_M, Rect<0, 32, 0, 32>, S_l>(me, r_M, S_l::base(it, 0), 0, 0);
    warp_sync();
    // F3: (I + L)^-1 in blocks of 16 [inv.inverse]
    at_op<20>(it);
    me = renewed(me);
    warp_sync();
    invert_blocks<S_inv, S_l, Rect<0, 32, 0, 32>, 2>(me, S_inv::base(it, 0), S_l::base(it, 0));
    warp_sync();
    // F3: merge, L21 [T.load]
    at_op<21>(it);
    me = renewed(me);
    load<R_T, Rect<16, 32, 0, 16>, S_l, false>(me, r_T, S_l::base(it, 0), 16, 0);
    // order [solver_meet.before.T.mma]
    at_op<22>(it);
    me = renewed(me);
    role_sync<1, 64>();
    // F3: merge, T = L21 + L21 X11 [T.mma]
    at_op<23>(it);
    me = renewed(me);
    mma_fp32<R_T, Rect<16, 32, 0, 16>, false, true>(me, r_T, SharedA<S_l, Rect<16, 32, 0, 16>, false>{S_l::base(it, 0)}, SharedB<S_inv, Rect<0, 16, 0, 16>, false>{S_inv::base(it, 0)});
    // F3: merge, T [t.store]
    at_op<24>(it);
    me = renewed(me);
    warp_sync();
    store<R_T, Rect<16, 32, 0, 16>, S_t>(me, r_T, S_t::base(it, 0), 0, 0);
    warp_sync();
    // F3: merge, T + X22 T [T.mma2]
    at_op<25>(it);
    me = renewed(me);
    mma_fp32<R_T, Rect<16, 32, 0, 16>, false, true>(me, r_T, SharedA<S_inv, Rect<16, 32, 16, 32>, false>{S_inv::base(it, 0)}, SharedB<S_t, Rect<0, 16, 0, 16>, false>{S_t::base(it, 0)});
    // F3: merge, A21 = -(T + X22 T) [T.map]
    at_op<26>(it);
    me = renewed(me);
    for_elements<R_T::S, Rect<16, 32, 0, 16>>(me, [&](int b, int n, int e, At i, At j) {
      R_T::set(r_T, b, n, e, -R_T::get(r_T, b, n, e));
    });
    // F3: merge, A21 [inv.store]
    at_op<27>(it);
    me = renewed(me);
    warp_sync();
    store<R_T, Rect<16, 32, 0, 16>, S_inv>(me, r_T, S_inv::base(it, 0), 16, 0);
    warp_sync();
    // order [solver_meet.before.a_chunk.out]
    at_op<28>(it);
    me = renewed(me);
    role_sync<1, 64>();
    // F3: bf16(A' - I) [a_chunk.out]
    at_op<29>(it);
    me = renewed(me);
    copy_out_lower<S_inv, 2>(me, S_inv::base(it, 0), tile_of<bf16, 32>(args.t_a_chunk, block.first_chunk + chunk, block.head, 0, 32));
  }
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_prepare_bf16_k128v128_c32_s1__sm_120(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;
  if (thread_index() == 0) {
    barrier_init(kBarrier_g_arrived + 0, 33);
    barrier_init(kBarrier_be_arrived + 0, 33);
    barrier_init(kBarrier_k_arrived + 0, 33);
  }
  block_sync();
  const Block block = find_block(args);
  if (warp < 1) {
    role_loader(args, block, {warp - 0, lane});
  } else {
    role_solver(args, block, {warp - 1, lane});
  }
}
