// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 32;
constexpr int kThreads = 640;
constexpr int kSmemBytes = 93232;  // of 101376 that a block may have

using S_q = SharedTile<bf16, 49152, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 49152 to 57344
static_assert(S_q::kBytes == 8192, "q: the plan's bytes");
using S_k = SharedTile<bf16, 57344, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 57344 to 65536
static_assert(S_k::kBytes == 8192, "k: the plan's bytes");
using S_do = SharedTile<bf16, 65536, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 65536 to 73728
static_assert(S_do::kBytes == 8192, "do: the plan's bytes");
using S_v = SharedTile<bf16, 0, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 0 to 8192
static_assert(S_v::kBytes == 8192, "v: the plan's bytes");
using S_a = SharedTile<bf16, 90112, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 90112 to 91648
static_assert(S_a::kBytes == 1536, "a: the plan's bytes");
using S_h = SharedTile<bf16, 32768, 128, 128, 64, 7, 0, false, 2, 1, 1>;  // bytes 32768 to 49152
static_assert(S_h::kBytes == 16384, "h: the plan's bytes");
using S_ds = SharedTile<bf16, 0, 128, 128, 64, 7, 0, false, 2, 2, 1>;  // bytes 0 to 32768
static_assert(S_ds::kBytes == 32768, "ds: the plan's bytes");
using S_pg = SharedTile<bf16, 73728, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 73728 to 75264
static_assert(S_pg::kBytes == 1536, "pg: the plan's bytes");
using S_dp = SharedTile<bf16, 40960, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 40960 to 42496
static_assert(S_dp::kBytes == 1536, "dp: the plan's bytes");
using S_dkk = SharedTile<bf16, 42496, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 42496 to 44032
static_assert(S_dkk::kBytes == 1536, "dkk: the plan's bytes");
using S_bd = SharedTile<bf16, 73728, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 73728 to 81920
static_assert(S_bd::kBytes == 8192, "bd: the plan's bytes");
using S_dvb = SharedTile<bf16, 73728, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 73728 to 81920
static_assert(S_dvb::kBytes == 8192, "dvb: the plan's bytes");
using S_w = SharedTile<bf16, 0, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 0 to 8192
static_assert(S_w::kBytes == 8192, "w: the plan's bytes");
using S_e = SharedTile<bf16, 81920, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 81920 to 90112
static_assert(S_e::kBytes == 8192, "e: the plan's bytes");
using S_eb = SharedTile<bf16, 32768, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 32768 to 40960
static_assert(S_eb::kBytes == 8192, "eb: the plan's bytes");
using S_gam = SharedTile<float, 92416, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92416 to 92544
static_assert(S_gam::kBytes == 128, "gam: the plan's bytes");
using S_be = SharedTile<float, 92544, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92544 to 92672
static_assert(S_be::kBytes == 128, "be: the plan's bytes");
using S_qdq = SharedTile<float, 92160, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92160 to 92416
static_assert(S_qdq::kBytes == 256, "qdq: the plan's bytes");
using S_dvu = SharedTile<float, 90624, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 90624 to 90880
static_assert(S_dvu::kBytes == 256, "dvu: the plan's bytes");
using S_ed = SharedTile<float, 91648, 4, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 91648 to 92160
static_assert(S_ed::kBytes == 512, "ed: the plan's bytes");
using S_edv = SharedTile<float, 90112, 4, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 90112 to 90624
static_assert(S_edv::kBytes == 512, "edv: the plan's bytes");
using S_cs = SharedTile<float, 92672, 8, 1, 1, 0, 0, false, 1, 1, 1>;  // bytes 92672 to 92800
static_assert(S_cs::kBytes == 128, "cs: the plan's bytes");
using S_xrow = SharedTile<float, 81920, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 81920 to 82176
static_assert(S_xrow::kBytes == 256, "xrow: the plan's bytes");
using S_xcol = SharedTile<float, 82176, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 82176 to 82432
static_assert(S_xcol::kBytes == 256, "xcol: the plan's bytes");
using S_tcol = SharedTile<float, 82432, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 82432 to 82688
static_assert(S_tcol::kBytes == 256, "tcol: the plan's bytes");
using S_dgv = SharedTile<float, 92800, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92800 to 92928
static_assert(S_dgv::kBytes == 128, "dgv: the plan's bytes");
using S_dbv = SharedTile<float, 92928, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92928 to 93056
static_assert(S_dbv::kBytes == 128, "dbv: the plan's bytes");
using R_dS = Accumulator<128, 128, 8, 1, 128>;
using R_d = Accumulator<32, 128, 2, 4, 32>;
using R_u = Accumulator<32, 128, 2, 4, 32>;
using R_dQ = Accumulator<32, 128, 2, 2, 32>;
using R_dK = Accumulator<32, 128, 2, 2, 32>;
using R_P = Accumulator<32, 32, 2, 2, 16>;
using R_M = Accumulator<32, 32, 2, 2, 16>;
using R_F = Accumulator<32, 32, 2, 2, 16>;
using R_Y = Accumulator<32, 32, 2, 2, 16>;

constexpr int kBarrier_k_arrived = 93056;  // k of k.in is read by u.mma
constexpr int kBarrier_q_arrived = 93064;  // q of q.in is read by P.mma
constexpr int kBarrier_gam_arrived = 93072;  // gam of gam.in is read by P.map
constexpr int kBarrier_do_arrived = 93080;  // do of do.in is read by dQ.mma
constexpr int kBarrier_pg_ready = 93088;  // pg of pg.store is read by d.mma3
constexpr int kBarrier_h1_free = 93096;  // h of cs.sum was read before h.in2; h of dQ.mma was read before h.in2
constexpr int kBarrier_h1_arrived = 93104;  // h of h.in2 is read by u.mma2; h of h.in2 is read by dQ.mma2
constexpr int kBarrier_v_arrived = 93112;  // v of v.in is read by u.map
constexpr int kBarrier_e_ready = 93120;  // e of e.store is read by F.mma
constexpr int kBarrier_dvb_ready = 93128;  // dvb of dvb.store is read by dK.mma
constexpr int kBarrier_h0_free = 93136;  // h of dK.mma was read before h.in3
constexpr int kBarrier_h0_arrived = 93144;  // h of h.in3 is read by dK.mma2
constexpr int kBarrier_eb_free = 93152;  // h of dK.mma2 was read before eb.store; h of dK.mma2 was read before dp.store
constexpr int kBarrier_dvu_ready = 93160;  // dvu of dvu.sum is read by dgv.scan
constexpr int kBarrier_edv_ready = 93168;  // edv of edv.sum is read by dbv.map
constexpr int kBarrier_eb_ready = 93176;  // eb of eb.store is read by dK.mma3
constexpr int kBarrier_dp_ready = 93184;  // dp of dp.store is read by dQ.mma3
constexpr int kBarrier_dkk_ready = 93192;  // dkk of dkk.store is read by dK.mma6
constexpr int kBarrier_h0_free_2 = 93200;  // dkk of dK.mma7 was read before h.in
constexpr int kBarrier_gam_free = 93208;  // gam of dgv.scan was read before gam.in; cs of dgv.scan was read before cs.sum
constexpr int kBarrier_be_free = 93216;  // be of dbv.map was read before be.in
constexpr int kBarrier_k_free = 93224;  // k of dS.mma2 was read before k.in
static_assert(93232 <= kSmemBytes, "tiles and barriers");

struct TensorArg {
  void* data;       // null: the tensor is absent
  i64 item_stride;  // in elements: of a sequence (or batch entry), or of a chunk
  i64 head_stride;
  i64 row_stride;
};
struct Args {
  TensorArg t_q;
  TensorArg t_k;
  TensorArg t_v;
  TensorArg t_do;
  TensorArg t_dht;
  TensorArg t_dv;
  TensorArg t_dg;
  TensorArg t_dbeta;
  TensorArg t_dh0;
  TensorArg t_gamma_chunk;
  TensorArg t_beta_chunk;
  TensorArg t_a_chunk;
  TensorArg t_h_chunk;
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

// ---------------------------------------------------------------------------------------------------- role state
// Warps 0 to 7, 144 registers a thread.
// Waits for: k_arrived, gam_free, h1_arrived, v_arrived, pg_ready, eb_free. Signals: h1_free, e_ready, dvb_ready, edv_ready, eb_ready, k_free.
GDR_FN void role_state(const Args& args, const Block& block, Me me) {
  set_registers<144, true>();
  R_dS r_dS;
  R_d r_d;
  R_u r_u;
  // dS of the last chunk is dht [dS.load]
  at_op<0>(-1);
  me = renewed(me);
  load<R_dS, Rect<0, 128, 0, 128>, false, false>(me, r_dS, tile_of<float, 128>(args.t_dht, block.sequence, block.head, 0, 128), 0, 0);

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [k_arrived.wait]
    at_op<24>(it);
    me = renewed(me);
    wait_for<kBarrier_k_arrived, 1>(it - 0);
    // 5: U = K S0 [u.mma]
    at_op<25>(it);
    me = renewed(me);
    mma<R_u, Rect<0, 32, 0, 128>, false, false, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 0, 64>, false>{S_k::base(it, 0)}, SharedB<S_h, Rect<0, 64, 0, 128>, false>{S_h::base(it, 0)}, Unscaled{});
    // order [gam_free.wait2]
    at_op<26>(it);
    me = renewed(me);
    wait_for<kBarrier_gam_free, 1>(it - 1);
    // 6: <dS, S0> [cs.sum]
    at_op<27>(it);
    me = renewed(me);
    warp_sync();
    sum_all<R_dS::S, Rect<0, 64, 0, 128>, S_cs, false>(me, S_cs::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load_of_pair(S_h::base(it, 0), i, j));
    });
    warp_sync();
    // order [h1_free.arrive.state]
    at_op<28>(it);
    me = renewed(me);
    arrive(me, kBarrier_h1_free);
    // order [h1_arrived.wait]
    at_op<35>(it);
    me = renewed(me);
    wait_for<kBarrier_h1_arrived, 1>(it - 0);
    // 5: U = K S0 [u.mma2]
    at_op<36>(it);
    me = renewed(me);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 64, 128>, false>{S_k::base(it, 0)}, SharedB<S_h, Rect<64, 128, 0, 128>, false>{S_h::base(it, 1)}, Unscaled{});
    // 6: <dS, S0> [cs.sum2]
    at_op<37>(it);
    me = renewed(me);
    warp_sync();
    sum_all<R_dS::S, Rect<64, 128, 0, 128>, S_cs, false>(me, S_cs::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load_of_pair(S_h::base(it, 1), i, j));
    });
    warp_sync();
    // order [v_arrived.wait]
    at_op<44>(it);
    me = renewed(me);
    wait_for<kBarrier_v_arrived, 1>(it - 0);
    // 7: W = V - eg U [u.map]
    at_op<45>(it);
    me = renewed(me);
    for_elements<R_u::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_u::set(r_u, b, n, e, (S_v::load_of_pair(S_v::base(it, 0), i, j) - (exp_of(S_gam::at(S_gam::base(it, 0), i)) * R_u::get(r_u, b, n, e))));
    });
    // 7: bf16(W) [w.store]
    at_op<46>(it);
    me = renewed(me);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_w>(me, r_u, S_w::base(it, 0), 0, 0);
    warp_sync();
    // order [state_meet.before.u.mma3]
    at_op<47>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 8: E = W + (A'-I) W [u.mma3]
    at_op<48>(it);
    me = renewed(me);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_a, Rect<0, 32, 0, 32>, false>{S_a::base(it, 0)}, SharedB<S_w, Rect<0, 32, 0, 128>, false>{S_w::base(it, 0)}, Unscaled{});
    // 8: bf16(E) [e.store]
    at_op<49>(it);
    me = renewed(me);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_e>(me, r_u, S_e::base(it, 0), 0, 0);
    warp_sync();
    // order [e_ready.arrive.state]
    at_op<50>(it);
    me = renewed(me);
    arrive(me, kBarrier_e_ready);
    // order [state_meet.before.ds.store]
    at_op<51>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 14: dSb = bf16(dS) [ds.store]
    at_op<52>(it);
    me = renewed(me);
    warp_sync();
    store<R_dS, Rect<0, 64, 0, 128>, S_ds>(me, r_dS, S_ds::base(it, 0), 0, 0);
    warp_sync();
    // 14: dSb = bf16(dS) [ds.store2]
    at_op<53>(it);
    me = renewed(me);
    warp_sync();
    store<R_dS, Rect<64, 128, 0, 128>, S_ds>(me, r_dS, S_ds::base(it, 1), 64, 0);
    warp_sync();
    // order [state_meet.before.d.mma]
    at_op<54>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 3: K dS [d.mma]
    at_op<55>(it);
    me = renewed(me);
    mma<R_d, Rect<0, 32, 0, 128>, false, false, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 0, 64>, false>{S_k::base(it, 0)}, SharedB<S_ds, Rect<0, 64, 0, 128>, false>{S_ds::base(it, 0)}, Unscaled{});
    // 3: K dS [d.mma2]
    at_op<56>(it);
    me = renewed(me);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 64, 128>, false>{S_k::base(it, 0)}, SharedB<S_ds, Rect<64, 128, 0, 128>, false>{S_ds::base(it, 1)}, Unscaled{});
    // 3: D1 = er (K dS) [d.map]
    at_op<57>(it);
    me = renewed(me);
    for_elements<R_d::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_d::set(r_d, b, n, e, (exp_of((S_gam::at(S_gam::base(it, 0), 31) - S_gam::at(S_gam::base(it, 0), i))) * R_d::get(r_d, b, n, e)));
    });
    // 8: E.D1 [ed.sum]
    at_op<58>(it);
    me = renewed(me);
    warp_sync();
    sum_cols<R_u::S, Rect<0, 32, 0, 128>, S_ed, false>(me, S_ed::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (R_u::get(r_u, b, n, e) * R_d::get(r_d, b, n, e));
    });
    warp_sync();
    // order [pg_ready.wait]
    at_op<59>(it);
    me = renewed(me);
    wait_for<kBarrier_pg_ready, 1>(it - 0);
    // 3: D = D1 + Pg^T dO [d.mma3]
    at_op<60>(it);
    me = renewed(me);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_pg, Rect<0, 32, 0, 32>, true>{S_pg::base(it, 0)}, SharedB<S_do, Rect<0, 32, 0, 128>, false>{S_do::base(it, 0)}, Unscaled{});
    // 3: beta D [d.map2]
    at_op<61>(it);
    me = renewed(me);
    for_elements<R_d::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_d::set(r_d, b, n, e, (S_be::at(S_be::base(it, 0), i) * R_d::get(r_d, b, n, e)));
    });
    // order [state_meet.before.bd.store]
    at_op<62>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 3: bf16(beta D) [bd.store]
    at_op<63>(it);
    me = renewed(me);
    warp_sync();
    store<R_d, Rect<0, 32, 0, 128>, S_bd>(me, r_d, S_bd::base(it, 0), 0, 0);
    warp_sync();
    // order [state_meet.before.d.mma4]
    at_op<64>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 4: dV = beta D + (A'-I)^T (beta D) [d.mma4]
    at_op<65>(it);
    me = renewed(me);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_a, Rect<0, 32, 0, 32>, true>{S_a::base(it, 0)}, SharedB<S_bd, Rect<0, 32, 0, 128>, false>{S_bd::base(it, 0)}, Unscaled{});
    // order [state_meet.before.dvb.store]
    at_op<66>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 4: bf16(dV) [dvb.store]
    at_op<67>(it);
    me = renewed(me);
    warp_sync();
    store<R_d, Rect<0, 32, 0, 128>, S_dvb>(me, r_d, S_dvb::base(it, 0), 0, 0);
    warp_sync();
    // order [dvb_ready.arrive.state]
    at_op<68>(it);
    me = renewed(me);
    arrive(me, kBarrier_dvb_ready);
    // order [state_meet.before.dv.out]
    at_op<69>(it);
    me = renewed(me);
    role_sync<1, 256>();
    // 4: dv [dv.out]
    at_op<70>(it);
    me = renewed(me);
    copy_out<S_dvb, Rect<0, 32, 0, 128>, 8, true, false>(me, S_dvb::base(it, 0), tile_of<bf16, 0>(args.t_dv, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 8: dV.E [edv.sum]
    at_op<83>(it);
    me = renewed(me);
    warp_sync();
    sum_cols<R_u::S, Rect<0, 32, 0, 128>, S_edv, false>(me, S_edv::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (R_u::get(r_u, b, n, e) * R_d::get(r_d, b, n, e));
    });
    warp_sync();
    // order [edv_ready.arrive.state]
    at_op<84>(it);
    me = renewed(me);
    arrive(me, kBarrier_edv_ready);
    // 11: er beta E [u.map2]
    at_op<85>(it);
    me = renewed(me);
    for_elements<R_u::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_u::set(r_u, b, n, e, ((exp_of((S_gam::at(S_gam::base(it, 0), 31) - S_gam::at(S_gam::base(it, 0), i))) * S_be::at(S_be::base(it, 0), i)) * R_u::get(r_u, b, n, e)));
    });
    // order [eb_free.wait]
    at_op<86>(it);
    me = renewed(me);
    wait_for<kBarrier_eb_free, 1>(it - 0);
    // 11: bf16(er beta E) [eb.store]
    at_op<87>(it);
    me = renewed(me);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_eb>(me, r_u, S_eb::base(it, 0), 0, 0);
    warp_sync();
    // order [eb_ready.arrive.state]
    at_op<88>(it);
    me = renewed(me);
    arrive(me, kBarrier_eb_ready);
    // 13: eL dS [dS.map]
    at_op<126>(it);
    me = renewed(me);
    for_elements<R_dS::S, Rect<0, 128, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_dS::set(r_dS, b, n, e, (exp_of(S_gam::at(S_gam::base(it, 0), 31)) * R_dS::get(r_dS, b, n, e)));
    });
    // 13: dS += (s eg Q)^T dO [dS.mma]
    at_op<127>(it);
    me = renewed(me);
    mma<R_dS, Rect<0, 128, 0, 128>, false, true, 0, 1, 1>(me, r_dS, SharedA<S_q, Rect<0, 32, 0, 128>, true>{S_q::base(it, 0)}, SharedB<S_do, Rect<0, 32, 0, 128>, false>{S_do::base(it, 0)}, scaled_by([&](At l) { return (args.scale * exp_of(S_gam::at(S_gam::base(it, 0), l))); }));
    // 13: dS += (-eg K)^T dV [dS.mma2]
    at_op<128>(it);
    me = renewed(me);
    mma<R_dS, Rect<0, 128, 0, 128>, false, true, 0, 1, 1>(me, r_dS, SharedA<S_k, Rect<0, 32, 0, 128>, true>{S_k::base(it, 0)}, SharedB<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::base(it, 0)}, scaled_by([&](At l) { return -exp_of(S_gam::at(S_gam::base(it, 0), l)); }));
    // order [k_free.arrive.state]
    at_op<129>(it);
    me = renewed(me);
    arrive(me, kBarrier_k_free);
  }
  // dS before the first chunk is dh0 [dh0.out]
  at_op<130>(-1);
  me = renewed(me);
  if (args.t_dh0.data) copy_out<R_dS, Rect<0, 128, 0, 128>, false, false, false>(me, r_dS, tile_of<float, 128>(args.t_dh0, block.sequence, block.head, 0, 128), 0, 0);
}

// ---------------------------------------------------------------------------------------------------- role keys
// Warps 8 to 11, 104 registers a thread.
// Waits for: do_arrived, h1_arrived, dvb_ready, h0_arrived, eb_ready, dp_ready, dkk_ready. Signals: h1_free, h0_free, eb_free, dvu_ready, h0_free_2.
GDR_FN void role_keys(const Args& args, const Block& block, Me me) {
  set_registers<104, true>();
  R_dQ r_dQ;
  R_dK r_dK;

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [do_arrived.wait]
    at_op<29>(it);
    me = renewed(me);
    wait_for<kBarrier_do_arrived, 1>(it - 0);
    // 6: dO S0^T [dQ.mma]
    at_op<30>(it);
    me = renewed(me);
    mma<R_dQ, Rect<0, 32, 0, 64>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::base(it, 0)}, SharedB<S_h, Rect<0, 64, 0, 128>, true>{S_h::base(it, 0)}, Unscaled{});
    // order [h1_free.arrive.keys]
    at_op<31>(it);
    me = renewed(me);
    arrive(me, kBarrier_h1_free);
    // order [h1_arrived.wait2]
    at_op<38>(it);
    me = renewed(me);
    wait_for<kBarrier_h1_arrived, 1>(it - 0);
    // 6: dO S0^T [dQ.mma2]
    at_op<39>(it);
    me = renewed(me);
    mma<R_dQ, Rect<0, 32, 64, 128>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::base(it, 0)}, SharedB<S_h, Rect<64, 128, 0, 128>, true>{S_h::base(it, 1)}, Unscaled{});
    // 6: dQ1 = s eg (dO S0^T) [dQ.map]
    at_op<40>(it);
    me = renewed(me);
    for_elements<R_dQ::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_dQ::set(r_dQ, b, n, e, ((args.scale * exp_of(S_gam::at(S_gam::base(it, 0), i))) * R_dQ::get(r_dQ, b, n, e)));
    });
    // 6: q.dQ1 [qdq.sum]
    at_op<41>(it);
    me = renewed(me);
    warp_sync();
    sum_cols<R_dQ::S, Rect<0, 32, 0, 128>, S_qdq, false>(me, S_qdq::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (S_q::load_of_pair(S_q::base(it, 0), i, j) * R_dQ::get(r_dQ, b, n, e));
    });
    warp_sync();
    // order [dvb_ready.wait]
    at_op<71>(it);
    me = renewed(me);
    wait_for<kBarrier_dvb_ready, 1>(it - 0);
    // 6: dV S0^T [dK.mma]
    at_op<72>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 64, 128>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::base(it, 0)}, SharedB<S_h, Rect<64, 128, 0, 128>, true>{S_h::base(it, 1)}, Unscaled{});
    // order [h0_free.arrive.keys]
    at_op<73>(it);
    me = renewed(me);
    arrive(me, kBarrier_h0_free);
    // order [h0_arrived.wait]
    at_op<77>(it);
    me = renewed(me);
    wait_for<kBarrier_h0_arrived, 1>(it - 0);
    // 6: dV S0^T [dK.mma2]
    at_op<78>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 0, 64>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::base(it, 0)}, SharedB<S_h, Rect<0, 64, 0, 128>, true>{S_h::base(it, 0)}, Unscaled{});
    // order [eb_free.arrive.keys]
    at_op<79>(it);
    me = renewed(me);
    arrive(me, kBarrier_eb_free);
    // 6: dK2 = -eg (dV S0^T) [dK.map]
    at_op<80>(it);
    me = renewed(me);
    for_elements<R_dK::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, At i, At j) {
      R_dK::set(r_dK, b, n, e, (-exp_of(S_gam::at(S_gam::base(it, 0), i)) * R_dK::get(r_dK, b, n, e)));
    });
    // 7: -eg dV.U = k.dK2 [dvu.sum]
    at_op<81>(it);
    me = renewed(me);
    warp_sync();
    sum_cols<R_dK::S, Rect<0, 32, 0, 128>, S_dvu, false>(me, S_dvu::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return (S_k::load_of_pair(S_k::base(it, 0), i, j) * R_dK::get(r_dK, b, n, e));
    });
    warp_sync();
    // order [dvu_ready.arrive.keys]
    at_op<82>(it);
    me = renewed(me);
    arrive(me, kBarrier_dvu_ready);
    // order [eb_ready.wait]
    at_op<105>(it);
    me = renewed(me);
    wait_for<kBarrier_eb_ready, 1>(it - 0);
    // 11: dK1 = (er beta E) dS^T [dK.mma3]
    at_op<106>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 64, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::base(it, 0)}, SharedB<S_ds, Rect<64, 128, 0, 128>, true>{S_ds::base(it, 1)}, Unscaled{});
    // 11: dK1 = (er beta E) dS^T [dK.mma4]
    at_op<107>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 0, 64>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::base(it, 0)}, SharedB<S_ds, Rect<0, 64, 0, 128>, true>{S_ds::base(it, 0)}, Unscaled{});
    // order [dp_ready.wait]
    at_op<108>(it);
    me = renewed(me);
    wait_for<kBarrier_dp_ready, 1>(it - 0);
    // 12: dQ += dP K [dQ.mma3]
    at_op<109>(it);
    me = renewed(me);
    mma<R_dQ, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dQ, SharedA<S_dp, Rect<0, 32, 0, 32>, false>{S_dp::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, Unscaled{});
    // 12: dK += dP^T Q [dK.mma5]
    at_op<110>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dp, Rect<0, 32, 0, 32>, true>{S_dp::base(it, 0)}, SharedB<S_q, Rect<0, 32, 0, 128>, false>{S_q::base(it, 0)}, Unscaled{});
    // order [dkk_ready.wait]
    at_op<111>(it);
    me = renewed(me);
    wait_for<kBarrier_dkk_ready, 1>(it - 0);
    // 12: dK += dKK K [dK.mma6]
    at_op<112>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dkk, Rect<0, 32, 0, 32>, false>{S_dkk::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, Unscaled{});
    // 12: dK += dKK^T K [dK.mma7]
    at_op<113>(it);
    me = renewed(me);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dkk, Rect<0, 32, 0, 32>, true>{S_dkk::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, Unscaled{});
    // order [h0_free_2.arrive.keys]
    at_op<114>(it);
    me = renewed(me);
    arrive(me, kBarrier_h0_free_2);
    // 12: dq [dq_head.out]
    at_op<115>(it);
    me = renewed(me);
    copy_out<R_dQ, Rect<0, 32, 0, 128>, true, false, false>(me, r_dQ, tile_of<float, 0>(args.t_dq_head, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dk [dk_head.out]
    at_op<116>(it);
    me = renewed(me);
    copy_out<R_dK, Rect<0, 32, 0, 128>, true, false, false>(me, r_dK, tile_of<float, 0>(args.t_dk_head, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
  }
}

// ---------------------------------------------------------------------------------------------------- role pairs
// Warps 12 to 15, 64 registers a thread.
// Waits for: q_arrived, gam_arrived, e_ready, eb_free, dvu_ready, edv_ready. Signals: pg_ready, dp_ready, dkk_ready, gam_free, be_free.
GDR_FN void role_pairs(const Args& args, const Block& block, Me me) {
  set_registers<64, false>();
  R_P r_P;
  R_M r_M;
  R_F r_F;
  R_Y r_Y;

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [q_arrived.wait]
    at_op<16>(it);
    me = renewed(me);
    wait_for<kBarrier_q_arrived, 1>(it - 0);
    // 1: P = Q K^T [P.mma]
    at_op<17>(it);
    me = renewed(me);
    mma<R_P, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_P, SharedA<S_q, Rect<0, 32, 0, 128>, false>{S_q::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::base(it, 0)}, Unscaled{});
    // order [gam_arrived.wait]
    at_op<18>(it);
    me = renewed(me);
    wait_for<kBarrier_gam_arrived, 1>(it - 0);
    // 1: Pg = s P o G [P.map]
    at_op<19>(it);
    me = renewed(me);
    for_elements<R_P::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_P::set(r_P, b, n, e, choose(i >= j, ((args.scale * exp_of((S_gam::at(S_gam::base(it, 0), i) - S_gam::at(S_gam::base(it, 0), j)))) * R_P::get(r_P, b, n, e)), 0.0f));
    });
    // 1: Pg [pg.store]
    at_op<20>(it);
    me = renewed(me);
    warp_sync();
    store<R_P, Rect<0, 32, 0, 32>, S_pg>(me, r_P, S_pg::base(it, 0), 0, 0);
    warp_sync();
    // order [pg_ready.arrive.pairs]
    at_op<21>(it);
    me = renewed(me);
    arrive(me, kBarrier_pg_ready);
    // 2: KK = K K^T [M.mma]
    at_op<22>(it);
    me = renewed(me);
    mma<R_M, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_M, SharedA<S_k, Rect<0, 32, 0, 128>, false>{S_k::base(it, 0)}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::base(it, 0)}, Unscaled{});
    // 2: M = strictLower(KK o G) [M.map]
    at_op<23>(it);
    me = renewed(me);
    for_elements<R_M::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_M::set(r_M, b, n, e, choose(i > j, (exp_of((S_gam::at(S_gam::base(it, 0), i) - S_gam::at(S_gam::base(it, 0), j))) * R_M::get(r_M, b, n, e)), 0.0f));
    });
    // order [e_ready.wait]
    at_op<89>(it);
    me = renewed(me);
    wait_for<kBarrier_e_ready, 1>(it - 0);
    // 9: dO E^T [F.mma]
    at_op<90>(it);
    me = renewed(me);
    mma<R_F, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_F, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::base(it, 0)}, SharedB<S_e, Rect<0, 32, 0, 128>, true>{S_e::base(it, 0)}, Unscaled{});
    // 9: X = dPg o Pg, without beta [P.map2]
    at_op<91>(it);
    me = renewed(me);
    for_elements<R_P::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_P::set(r_P, b, n, e, (R_F::get(r_F, b, n, e) * R_P::get(r_P, b, n, e)));
    });
    // 9: dP = s G o dPg [F.map]
    at_op<92>(it);
    me = renewed(me);
    for_elements<R_F::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_F::set(r_F, b, n, e, choose(i >= j, (((args.scale * exp_of((S_gam::at(S_gam::base(it, 0), i) - S_gam::at(S_gam::base(it, 0), j)))) * S_be::at(S_be::base(it, 0), j)) * R_F::get(r_F, b, n, e)), 0.0f));
    });
    // order [eb_free.wait2]
    at_op<93>(it);
    me = renewed(me);
    wait_for<kBarrier_eb_free, 1>(it - 0);
    // 9: bf16(dP) [dp.store]
    at_op<94>(it);
    me = renewed(me);
    warp_sync();
    store<R_F, Rect<0, 32, 0, 32>, S_dp>(me, r_F, S_dp::base(it, 0), 0, 0);
    warp_sync();
    // order [dp_ready.arrive.pairs]
    at_op<95>(it);
    me = renewed(me);
    arrive(me, kBarrier_dp_ready);
    // 10: Y = dV E^T [Y.mma]
    at_op<96>(it);
    me = renewed(me);
    mma<R_Y, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_Y, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::base(it, 0)}, SharedB<S_e, Rect<0, 32, 0, 128>, true>{S_e::base(it, 0)}, Unscaled{});
    // 10: X -= M o Y, without beta [P.map3]
    at_op<97>(it);
    me = renewed(me);
    for_elements<R_P::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_P::set(r_P, b, n, e, (R_P::get(r_P, b, n, e) - (R_M::get(r_M, b, n, e) * R_Y::get(r_Y, b, n, e))));
    });
    // 10: dKK = -G o Y diag(beta) [Y.map]
    at_op<98>(it);
    me = renewed(me);
    for_elements<R_Y::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, At i, At j) {
      R_Y::set(r_Y, b, n, e, choose(i > j, ((-exp_of((S_gam::at(S_gam::base(it, 0), i) - S_gam::at(S_gam::base(it, 0), j))) * S_be::at(S_be::base(it, 0), j)) * R_Y::get(r_Y, b, n, e)), 0.0f));
    });
    // 10: bf16(dKK) [dkk.store]
    at_op<99>(it);
    me = renewed(me);
    warp_sync();
    store<R_Y, Rect<0, 32, 0, 32>, S_dkk>(me, r_Y, S_dkk::base(it, 0), 0, 0);
    warp_sync();
    // order [dkk_ready.arrive.pairs]
    at_op<100>(it);
    me = renewed(me);
    arrive(me, kBarrier_dkk_ready);
    // order [pairs_meet.before.xrow.sum]
    at_op<101>(it);
    me = renewed(me);
    role_sync<2, 128>();
    // 10: rows of X [xrow.sum]
    at_op<102>(it);
    me = renewed(me);
    warp_sync();
    sum_cols<R_P::S, Rect<0, 32, 0, 32>, S_xrow, false>(me, S_xrow::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return choose(i > j, (S_be::at(S_be::base(it, 0), j) * R_P::get(r_P, b, n, e)), 0.0f);
    });
    warp_sync();
    // 10: columns of X, without beta [xcol.sum]
    at_op<103>(it);
    me = renewed(me);
    warp_sync();
    sum_rows<R_P::S, Rect<0, 32, 0, 32>, S_xcol, false>(me, S_xcol::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return choose(i > j, R_P::get(r_P, b, n, e), 0.0f);
    });
    warp_sync();
    // dbeta where beta is 0: E.(Pg^T dO) - columns of M o Y [tcol.sum]
    at_op<104>(it);
    me = renewed(me);
    warp_sync();
    sum_rows<R_P::S, Rect<0, 32, 0, 32>, S_tcol, false>(me, S_tcol::base(it, 0), [&](int b, int n, int e, At i, At j) {
      return R_P::get(r_P, b, n, e);
    });
    warp_sync();
    // order [dvu_ready.wait]
    at_op<117>(it);
    me = renewed(me);
    wait_for<kBarrier_dvu_ready, 1>(it - 0);
    // order [pairs_meet.before.dgv.scan]
    at_op<118>(it);
    me = renewed(me);
    role_sync<2, 128>();
    // dg = c + suffix(a + row(X) - col(X)) + before(b) [dgv.scan]
    at_op<119>(it);
    me = renewed(me);
    if (me.warp == 0) {
      warp_sync();
      const Sums<32> sum0 = suffix_sums<32>(me, [&](int i) { return (((S_qdq::at(S_qdq::base(it, 0), i) + S_dvu::at(S_dvu::base(it, 0), i)) + S_xrow::at(S_xrow::base(it, 0), i)) - (S_be::at(S_be::base(it, 0), i) * S_xcol::at(S_xcol::base(it, 0), i))); });
      const Sums<32> sum1 = before_sums<32>(me, [&](int i) { return (S_be::at(S_be::base(it, 0), i) * S_ed::at(S_ed::base(it, 0), i)); });
      for_vector<0, 32, 1>(me, [&](int i) { S_dgv::store(S_dgv::base(it, 0), 0, i, (((exp_of(S_gam::at(S_gam::base(it, 0), 31)) * S_cs::at(S_cs::base(it, 0), 0)) + sum0.at(sum0, i)) + sum1.at(sum1, i))); });
      warp_sync();
    }
    // order [gam_free.arrive.pairs]
    at_op<120>(it);
    me = renewed(me);
    arrive(me, kBarrier_gam_free);
    // order [edv_ready.wait]
    at_op<121>(it);
    me = renewed(me);
    wait_for<kBarrier_edv_ready, 1>(it - 0);
    // dbeta = dV.E / beta where beta > 2^-60, else D.E - columns of M o Y [dbv.map]
    at_op<122>(it);
    me = renewed(me);
    warp_sync();
    for_vector<0, 32, 4>(me, [&](int i) { S_dbv::store(S_dbv::base(it, 0), 0, i, choose(S_be::at(S_be::base(it, 0), i) > 8.6736174e-19f, (S_edv::at(S_edv::base(it, 0), i) / S_be::at(S_be::base(it, 0), i)), (S_ed::at(S_ed::base(it, 0), i) + S_tcol::at(S_tcol::base(it, 0), i)))); });
    warp_sync();
    // order [be_free.arrive.pairs]
    at_op<123>(it);
    me = renewed(me);
    arrive(me, kBarrier_be_free);
    // dg [dg.out]
    at_op<124>(it);
    me = renewed(me);
    copy_out<S_dgv, Rect<0, 1, 0, 32>, 4, true, true>(me, S_dgv::base(it, 0), tile_of<float, 0>(args.t_dg, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // dbeta [dbeta.out]
    at_op<125>(it);
    me = renewed(me);
    copy_out<S_dbv, Rect<0, 1, 0, 32>, 4, true, true>(me, S_dbv::base(it, 0), tile_of<float, 0>(args.t_dbeta, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
  }
}

// ---------------------------------------------------------------------------------------------------- role loader
// Warps 16 to 19, 24 registers a thread.
// Waits for: h0_free_2, k_free, gam_free, be_free, h1_free, h0_free. Signals: k_arrived, q_arrived, gam_arrived, do_arrived, h1_arrived, v_arrived, h0_arrived.
GDR_FN void role_loader(const Args& args, const Block& block, Me me) {
  set_registers<24, false>();

  const Me first = me;
  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    me = renewed(first, it & (args.num_sequences >> 31));
    // order [h0_free_2.wait]
    at_op<1>(it);
    me = renewed(me);
    wait_for<kBarrier_h0_free_2, 1>(it - 1);
    // S0 [h.in]
    at_op<2>(it);
    me = renewed(me);
    copy_in<S_h, Rect<0, 64, 0, 128>, 4, false>(me, S_h::base(it, 0), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 0, 0);
    // order [k_free.wait]
    at_op<3>(it);
    me = renewed(me);
    wait_for<kBarrier_k_free, 1>(it - 1);
    // k [k.in]
    at_op<4>(it);
    me = renewed(me);
    copy_in<S_k, Rect<0, 32, 0, 128>, 4, true>(me, S_k::base(it, 0), tile_of<bf16, 0>(args.t_k, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [k_arrived.arrive.loader]
    at_op<5>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_k_arrived); 
    // q [q.in]
    at_op<6>(it);
    me = renewed(me);
    copy_in<S_q, Rect<0, 32, 0, 128>, 4, true>(me, S_q::base(it, 0), tile_of<bf16, 0>(args.t_q, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [q_arrived.arrive.loader]
    at_op<7>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_q_arrived); 
    // order [gam_free.wait]
    at_op<8>(it);
    me = renewed(me);
    wait_for<kBarrier_gam_free, 1>(it - 1);
    // F1: gamma [gam.in]
    at_op<9>(it);
    me = renewed(me);
    copy_in<S_gam, Rect<0, 1, 0, 32>, 4, false>(me, S_gam::base(it, 0), tile_of<float, 32>(args.t_gamma_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // order [gam_arrived.arrive.loader]
    at_op<10>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_gam_arrived); 
    // order [be_free.wait]
    at_op<11>(it);
    me = renewed(me);
    wait_for<kBarrier_be_free, 1>(it - 1);
    // beta [be.in]
    at_op<12>(it);
    me = renewed(me);
    copy_in<S_be, Rect<0, 1, 0, 32>, 4, false>(me, S_be::base(it, 0), tile_of<float, 32>(args.t_beta_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // do [do.in]
    at_op<13>(it);
    me = renewed(me);
    copy_in<S_do, Rect<0, 32, 0, 128>, 4, true>(me, S_do::base(it, 0), tile_of<bf16, 0>(args.t_do, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [do_arrived.arrive.loader]
    at_op<14>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_do_arrived); 
    // F3: A' - I [a.in]
    at_op<15>(it);
    me = renewed(me);
    copy_in_lower<S_a, 4>(me, S_a::base(it, 0), tile_of<bf16, 32>(args.t_a_chunk, block.first_chunk + chunk, block.head, 0, 32));
    // order [h1_free.wait]
    at_op<32>(it);
    me = renewed(me);
    wait_for<kBarrier_h1_free, 1>(it - 0);
    // S0 [h.in2]
    at_op<33>(it);
    me = renewed(me);
    copy_in<S_h, Rect<64, 128, 0, 128>, 4, false>(me, S_h::base(it, 1), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 64, 0);
    // order [h1_arrived.arrive.loader]
    at_op<34>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_h1_arrived); 
    // 7: v [v.in]
    at_op<42>(it);
    me = renewed(me);
    copy_in<S_v, Rect<0, 32, 0, 128>, 4, true>(me, S_v::base(it, 0), tile_of<bf16, 0>(args.t_v, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [v_arrived.arrive.loader]
    at_op<43>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_v_arrived); 
    // order [h0_free.wait]
    at_op<74>(it);
    me = renewed(me);
    wait_for<kBarrier_h0_free, 1>(it - 0);
    // S0 [h.in3]
    at_op<75>(it);
    me = renewed(me);
    copy_in<S_h, Rect<0, 64, 0, 128>, 4, false>(me, S_h::base(it, 0), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 0, 0);
    // order [h0_arrived.arrive.loader]
    at_op<76>(it);
    me = renewed(me);
    barrier_arrive_after_copies(kBarrier_h0_arrived); 
  }
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_bwd_fused_bf16_k128v128_c32_s2__sm_120(const Args args) {
  const int warp = warp_index(), lane = thread_index() % 32;
  if (thread_index() == 0) {
    barrier_init(kBarrier_k_arrived + 0, 128);
    barrier_init(kBarrier_q_arrived + 0, 128);
    barrier_init(kBarrier_gam_arrived + 0, 128);
    barrier_init(kBarrier_do_arrived + 0, 128);
    barrier_init(kBarrier_pg_ready + 0, 4);
    barrier_init(kBarrier_h1_free + 0, 12);
    barrier_init(kBarrier_h1_arrived + 0, 128);
    barrier_init(kBarrier_v_arrived + 0, 128);
    barrier_init(kBarrier_e_ready + 0, 8);
    barrier_init(kBarrier_dvb_ready + 0, 8);
    barrier_init(kBarrier_h0_free + 0, 4);
    barrier_init(kBarrier_h0_arrived + 0, 128);
    barrier_init(kBarrier_eb_free + 0, 4);
    barrier_init(kBarrier_dvu_ready + 0, 4);
    barrier_init(kBarrier_edv_ready + 0, 8);
    barrier_init(kBarrier_eb_ready + 0, 8);
    barrier_init(kBarrier_dp_ready + 0, 4);
    barrier_init(kBarrier_dkk_ready + 0, 4);
    barrier_init(kBarrier_h0_free_2 + 0, 4);
    barrier_init(kBarrier_gam_free + 0, 4);
    barrier_init(kBarrier_be_free + 0, 4);
    barrier_init(kBarrier_k_free + 0, 8);
  }
  block_sync();
  const Block block = find_block(args);
  if (warp < 8) {
    role_state(args, block, {warp - 0, lane});
  } else if (warp < 12) {
    role_keys(args, block, {warp - 8, lane});
  } else if (warp < 16) {
    role_pairs(args, block, {warp - 12, lane});
  } else {
    role_loader(args, block, {warp - 16, lane});
  }
}
