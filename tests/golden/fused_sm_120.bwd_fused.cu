// ---------------------------------------------------------------------------------------------------- the plan

constexpr int kChunk = 32;
constexpr int kThreads = 640;
constexpr int kSmemBytes = 95960;  // of 101376 that a block may have

using S_q = SharedTile<bf16, 0, 32, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 0 to 16384
static_assert(S_q::kBytes == 16384, "q: the plan's bytes");
using S_k = SharedTile<bf16, 16384, 32, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 16384 to 32768
static_assert(S_k::kBytes == 16384, "k: the plan's bytes");
using S_do = SharedTile<bf16, 32768, 32, 128, 64, 7, 0, false, 1, 1, 2>;  // bytes 32768 to 49152
static_assert(S_do::kBytes == 16384, "do: the plan's bytes");
using S_v = SharedTile<bf16, 49152, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 49152 to 57344
static_assert(S_v::kBytes == 8192, "v: the plan's bytes");
using S_a = SharedTile<bf16, 90112, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 90112 to 91648
static_assert(S_a::kBytes == 1536, "a: the plan's bytes");
using S_h = SharedTile<bf16, 49152, 128, 128, 64, 7, 0, false, 4, 2, 1>;  // bytes 49152 to 65536
static_assert(S_h::kBytes == 16384, "h: the plan's bytes");
using S_ds = SharedTile<bf16, 65536, 128, 128, 64, 7, 0, false, 4, 2, 1>;  // bytes 65536 to 81920
static_assert(S_ds::kBytes == 16384, "ds: the plan's bytes");
using S_pg = SharedTile<bf16, 81920, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 81920 to 83456
static_assert(S_pg::kBytes == 1536, "pg: the plan's bytes");
using S_dp = SharedTile<bf16, 90112, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 90112 to 91648
static_assert(S_dp::kBytes == 1536, "dp: the plan's bytes");
using S_dkk = SharedTile<bf16, 49152, 32, 32, 16, 1, 2, true, 1, 1, 1>;  // bytes 49152 to 50688
static_assert(S_dkk::kBytes == 1536, "dkk: the plan's bytes");
using S_bd = SharedTile<bf16, 81920, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 81920 to 90112
static_assert(S_bd::kBytes == 8192, "bd: the plan's bytes");
using S_dvb = SharedTile<bf16, 81920, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 81920 to 90112
static_assert(S_dvb::kBytes == 8192, "dvb: the plan's bytes");
using S_w = SharedTile<bf16, 49152, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 49152 to 57344
static_assert(S_w::kBytes == 8192, "w: the plan's bytes");
using S_e = SharedTile<bf16, 49152, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 49152 to 57344
static_assert(S_e::kBytes == 8192, "e: the plan's bytes");
using S_eb = SharedTile<bf16, 57344, 32, 128, 64, 7, 0, false, 1, 1, 1>;  // bytes 57344 to 65536
static_assert(S_eb::kBytes == 8192, "eb: the plan's bytes");
using S_gam = SharedTile<float, 93184, 1, 32, 32, 0, 0, false, 1, 1, 2>;  // bytes 93184 to 93440
static_assert(S_gam::kBytes == 256, "gam: the plan's bytes");
using S_be = SharedTile<float, 93440, 1, 32, 32, 0, 0, false, 1, 1, 2>;  // bytes 93440 to 93696
static_assert(S_be::kBytes == 256, "be: the plan's bytes");
using S_qdq = SharedTile<float, 93696, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 93696 to 93952
static_assert(S_qdq::kBytes == 256, "qdq: the plan's bytes");
using S_dvu = SharedTile<float, 91648, 4, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 91648 to 92160
static_assert(S_dvu::kBytes == 512, "dvu: the plan's bytes");
using S_ed = SharedTile<float, 92160, 4, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92160 to 92672
static_assert(S_ed::kBytes == 512, "ed: the plan's bytes");
using S_edv = SharedTile<float, 92672, 4, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 92672 to 93184
static_assert(S_edv::kBytes == 512, "edv: the plan's bytes");
using S_cs = SharedTile<float, 95488, 8, 1, 1, 0, 0, false, 1, 1, 1>;  // bytes 95488 to 95616
static_assert(S_cs::kBytes == 128, "cs: the plan's bytes");
using S_xrow = SharedTile<float, 93952, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 93952 to 94208
static_assert(S_xrow::kBytes == 256, "xrow: the plan's bytes");
using S_yrow = SharedTile<float, 94208, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 94208 to 94464
static_assert(S_yrow::kBytes == 256, "yrow: the plan's bytes");
using S_xcol = SharedTile<float, 94464, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 94464 to 94720
static_assert(S_xcol::kBytes == 256, "xcol: the plan's bytes");
using S_ycol = SharedTile<float, 94720, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 94720 to 94976
static_assert(S_ycol::kBytes == 256, "ycol: the plan's bytes");
using S_ecol = SharedTile<float, 94976, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 94976 to 95232
static_assert(S_ecol::kBytes == 256, "ecol: the plan's bytes");
using S_mcol = SharedTile<float, 95232, 2, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 95232 to 95488
static_assert(S_mcol::kBytes == 256, "mcol: the plan's bytes");
using S_dgv = SharedTile<float, 95616, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 95616 to 95744
static_assert(S_dgv::kBytes == 128, "dgv: the plan's bytes");
using S_dbv = SharedTile<float, 91648, 1, 32, 32, 0, 0, false, 1, 1, 1>;  // bytes 91648 to 91776
static_assert(S_dbv::kBytes == 128, "dbv: the plan's bytes");
using R_dS = Accumulator<128, 128, 8, 1, 128>;
using R_d = Accumulator<32, 128, 2, 4, 32>;
using R_u = Accumulator<32, 128, 2, 4, 32>;
using R_d1 = Accumulator<32, 128, 2, 4, 32>;
using R_dQ = Accumulator<32, 128, 2, 2, 16>;
using R_dK = Accumulator<32, 128, 2, 2, 16>;
using R_P = Accumulator<32, 32, 2, 2, 16>;
using R_M = Accumulator<32, 32, 2, 2, 16>;
using R_F = Accumulator<32, 32, 2, 2, 16>;
using R_Y = Accumulator<32, 32, 2, 2, 16>;

constexpr int kBarrier_k_arrived = 95744;  // k of k.in is read by d.mma
constexpr int kBarrier_q_arrived = 95752;  // q of q.in is read by P.mma
constexpr int kBarrier_gam_arrived = 95760;  // gam of gam.in is read by P.map; gam of gam.in is read by d.map
constexpr int kBarrier_do_arrived = 95768;  // do of do.in is read by d.mma5; do of do.in is read by dQ.mma
constexpr int kBarrier_a_arrived = 95776;  // a of a.in is read by d.mma6
constexpr int kBarrier_pg_ready = 95784;  // pg of pg.store is read by d.mma5
constexpr int kBarrier_dvb_ready = 95792;  // dvb of dvb.store is read by dK.mma
constexpr int kBarrier_h2_free = 95800;  // h of cs.sum was read before h.in3; h of dK.mma was read before h.in3
constexpr int kBarrier_h3_free = 95808;  // h of cs.sum2 was read before h.in4; h of dK.mma2 was read before h.in4
constexpr int kBarrier_h2_arrived = 95816;  // h of h.in3 is read by u.mma3; h of h.in3 is read by dQ.mma3
constexpr int kBarrier_v_free = 95824;  // h of cs.sum3 was read before v.in; h of dK.mma3 was read before v.in
constexpr int kBarrier_h3_arrived = 95832;  // h of h.in4 is read by u.mma4; h of h.in4 is read by dQ.mma4
constexpr int kBarrier_eb_free = 95840;  // h of dK.mma4 was read before eb.store
constexpr int kBarrier_qdq_ready = 95848;  // qdq of qdq.sum is read by dgv.scan; ed of ed.sum is read by dgv.scan
constexpr int kBarrier_v_arrived = 95856;  // v of v.in is read by u.map
constexpr int kBarrier_e_ready = 95864;  // e of e.store is read by F.mma
constexpr int kBarrier_edv_ready = 95872;  // edv of edv.sum is read by dbv.map
constexpr int kBarrier_eb_ready = 95880;  // eb of eb.store is read by dK.mma5
constexpr int kBarrier_dp_ready = 95888;  // dp of dp.store is read by dQ.mma5
constexpr int kBarrier_dkk_ready = 95896;  // dkk of dkk.store is read by dK.mma10
constexpr int kBarrier_ds1_free = 95904;  // ds of dK.mma5 was read before ds.store5
constexpr int kBarrier_ds0_free = 95912;  // ds of dK.mma6 was read before ds.store6
constexpr int kBarrier_ds1_ready = 95920;  // ds of ds.store5 is read by dK.mma7
constexpr int kBarrier_ds0_ready = 95928;  // ds of ds.store6 is read by dK.mma8
constexpr int kBarrier_ds0_free_2 = 95936;  // ds of dK.mma8 was read before ds.store
constexpr int kBarrier_h0_free = 95944;  // dkk of dK.mma11 was read before h.in
constexpr int kBarrier_pg_free = 95952;  // dvb of dS.mma2 was read before pg.store
static_assert(95960 <= kSmemBytes, "tiles and barriers");

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

// ---------------------------------------------------------------------------------------------------- role loader
// Warps 0 to 3, 24 registers a thread.
// Waits for: h0_free, h2_free, h3_free, v_free. Signals: k_arrived, q_arrived, gam_arrived, do_arrived, a_arrived, h2_arrived, h3_arrived, v_arrived.
GDR_FN void role_loader(const Args& args, const Block& block, Me me) {
  set_registers<24, false>();

  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    // order [h0_free.wait]
    at_op<1>(it);
    wait_for<kBarrier_h0_free, 1>(it - 1);
    // S0 [h.in]
    at_op<2>(it);
    copy_in<S_h, Rect<0, 32, 0, 128>, 4, false>(me, S_h::stage(it), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 0, 0);
    // S0 [h.in2]
    at_op<3>(it);
    copy_in<S_h, Rect<32, 64, 0, 128>, 4, false>(me, S_h::stage(it), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 32, 0);
    // k [k.in]
    at_op<4>(it);
    copy_in<S_k, Rect<0, 32, 0, 128>, 4, true>(me, S_k::stage(it), tile_of<bf16, 0>(args.t_k, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [k_arrived.arrive.loader]
    at_op<5>(it);
    barrier_arrive_after_copies(kBarrier_k_arrived); 
    // q [q.in]
    at_op<6>(it);
    copy_in<S_q, Rect<0, 32, 0, 128>, 4, true>(me, S_q::stage(it), tile_of<bf16, 0>(args.t_q, block.sequence, block.head / kGroup, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [q_arrived.arrive.loader]
    at_op<7>(it);
    barrier_arrive_after_copies(kBarrier_q_arrived); 
    // F1: gamma [gam.in]
    at_op<8>(it);
    copy_in<S_gam, Rect<0, 1, 0, 32>, 4, false>(me, S_gam::stage(it), tile_of<float, 32>(args.t_gamma_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // order [gam_arrived.arrive.loader]
    at_op<9>(it);
    barrier_arrive_after_copies(kBarrier_gam_arrived); 
    // beta [be.in]
    at_op<10>(it);
    copy_in<S_be, Rect<0, 1, 0, 32>, 4, false>(me, S_be::stage(it), tile_of<float, 32>(args.t_beta_chunk, block.first_chunk + chunk, block.head, 0, 1), 0, 0);
    // do [do.in]
    at_op<11>(it);
    copy_in<S_do, Rect<0, 32, 0, 128>, 4, true>(me, S_do::stage(it), tile_of<bf16, 0>(args.t_do, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [do_arrived.arrive.loader]
    at_op<12>(it);
    barrier_arrive_after_copies(kBarrier_do_arrived); 
    // F3: A' - I [a.in]
    at_op<13>(it);
    copy_in_lower<S_a, 4>(me, S_a::stage(it), tile_of<bf16, 32>(args.t_a_chunk, block.first_chunk + chunk, block.head, 0, 32));
    // order [a_arrived.arrive.loader]
    at_op<14>(it);
    barrier_arrive_after_copies(kBarrier_a_arrived); 
    // order [h2_free.wait]
    at_op<69>(it);
    wait_for<kBarrier_h2_free, 1>(it - 0);
    // S0 [h.in3]
    at_op<70>(it);
    copy_in<S_h, Rect<64, 96, 0, 128>, 4, false>(me, S_h::stage(it), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 64, 0);
    // order [h2_arrived.arrive.loader]
    at_op<71>(it);
    barrier_arrive_after_copies(kBarrier_h2_arrived); 
    // order [h3_free.wait]
    at_op<80>(it);
    wait_for<kBarrier_h3_free, 1>(it - 0);
    // S0 [h.in4]
    at_op<81>(it);
    copy_in<S_h, Rect<96, 128, 0, 128>, 4, false>(me, S_h::stage(it), tile_of<bf16, 128>(args.t_h_chunk, block.first_chunk + chunk, block.head, 0, 128), 96, 0);
    // order [h3_arrived.arrive.loader]
    at_op<82>(it);
    barrier_arrive_after_copies(kBarrier_h3_arrived); 
    // order [v_free.wait]
    at_op<95>(it);
    wait_for<kBarrier_v_free, 1>(it - 0);
    // 7: v [v.in]
    at_op<96>(it);
    copy_in<S_v, Rect<0, 32, 0, 128>, 4, true>(me, S_v::stage(it), tile_of<bf16, 0>(args.t_v, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // order [v_arrived.arrive.loader]
    at_op<97>(it);
    barrier_arrive_after_copies(kBarrier_v_arrived); 
  }
}

// ---------------------------------------------------------------------------------------------------- role state
// Warps 4 to 11, 144 registers a thread.
// Waits for: ds0_free_2, k_arrived, gam_arrived, do_arrived, pg_ready, a_arrived, h2_arrived, h3_arrived, v_arrived, eb_free, ds1_free, ds0_free. Signals: dvb_ready, h2_free, h3_free, v_free, e_ready, qdq_ready, edv_ready, eb_ready, ds1_ready, ds0_ready, pg_free.
GDR_FN void role_state(const Args& args, const Block& block, Me me) {
  set_registers<144, true>();
  R_dS r_dS;
  R_d r_d;
  R_u r_u;
  R_d1 r_d1;
  // dS of the last chunk is dht [dS.load]
  at_op<0>(-1);
  load<R_dS, Rect<0, 128, 0, 128>, false, false>(me, r_dS, tile_of<float, 128>(args.t_dht, block.sequence, block.head, 0, 128), 0, 0);

  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    // order [ds0_free_2.wait]
    at_op<24>(it);
    wait_for<kBarrier_ds0_free_2, 1>(it - 1);
    // 14: dSb = bf16(dS) [ds.store]
    at_op<25>(it);
    warp_sync();
    store<R_dS, Rect<0, 32, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 0, 0);
    warp_sync();
    // order [k_arrived.wait]
    at_op<26>(it);
    wait_for<kBarrier_k_arrived, 1>(it - 0);
    // order [state_meet.before.d.mma]
    at_op<27>(it);
    role_sync<1, 256>();
    // 3: K dS [d.mma]
    at_op<28>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, false, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 0, 32>, false>{S_k::stage(it)}, SharedB<S_ds, Rect<0, 32, 0, 128>, false>{S_ds::stage(it)}, Unscaled{});
    // 14: dSb = bf16(dS) [ds.store2]
    at_op<29>(it);
    warp_sync();
    store<R_dS, Rect<32, 64, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 32, 0);
    warp_sync();
    // order [state_meet.before.d.mma2]
    at_op<30>(it);
    role_sync<1, 256>();
    // 3: K dS [d.mma2]
    at_op<31>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 32, 64>, false>{S_k::stage(it)}, SharedB<S_ds, Rect<32, 64, 0, 128>, false>{S_ds::stage(it)}, Unscaled{});
    // 14: dSb = bf16(dS) [ds.store3]
    at_op<32>(it);
    warp_sync();
    store<R_dS, Rect<64, 96, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 64, 0);
    warp_sync();
    // order [state_meet.before.d.mma3]
    at_op<33>(it);
    role_sync<1, 256>();
    // 3: K dS [d.mma3]
    at_op<34>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 64, 96>, false>{S_k::stage(it)}, SharedB<S_ds, Rect<64, 96, 0, 128>, false>{S_ds::stage(it)}, Unscaled{});
    // 14: dSb = bf16(dS) [ds.store4]
    at_op<35>(it);
    warp_sync();
    store<R_dS, Rect<96, 128, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 96, 0);
    warp_sync();
    // order [state_meet.before.d.mma4]
    at_op<36>(it);
    role_sync<1, 256>();
    // 3: K dS [d.mma4]
    at_op<37>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_k, Rect<0, 32, 96, 128>, false>{S_k::stage(it)}, SharedB<S_ds, Rect<96, 128, 0, 128>, false>{S_ds::stage(it)}, Unscaled{});
    // order [gam_arrived.wait2]
    at_op<38>(it);
    wait_for<kBarrier_gam_arrived, 1>(it - 0);
    // 3: D1 = er (K dS) [d.map]
    at_op<39>(it);
    for_elements<R_d::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_d::set(r_d, b, n, e, (exp_of((S_gam::at(S_gam::stage(it), 31) - S_gam::at(S_gam::stage(it), i))) * R_d::get(r_d, b, n, e)));
    });
    // 3: D1 [d1.map]
    at_op<40>(it);
    for_elements<R_d1::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_d1::set(r_d1, b, n, e, R_d::get(r_d, b, n, e));
    });
    // order [do_arrived.wait]
    at_op<41>(it);
    wait_for<kBarrier_do_arrived, 1>(it - 0);
    // order [pg_ready.wait]
    at_op<42>(it);
    wait_for<kBarrier_pg_ready, 1>(it - 0);
    // 3: D = D1 + Pg^T dO [d.mma5]
    at_op<43>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_pg, Rect<0, 32, 0, 32>, true>{S_pg::stage(it)}, SharedB<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, Unscaled{});
    // 3: beta D [d.map2]
    at_op<44>(it);
    for_elements<R_d::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_d::set(r_d, b, n, e, (S_be::at(S_be::stage(it), i) * R_d::get(r_d, b, n, e)));
    });
    // order [state_meet.before.bd.store]
    at_op<45>(it);
    role_sync<1, 256>();
    // 3: bf16(beta D) [bd.store]
    at_op<46>(it);
    warp_sync();
    store<R_d, Rect<0, 32, 0, 128>, S_bd>(me, r_d, S_bd::stage(it), 0, 0);
    warp_sync();
    // order [a_arrived.wait]
    at_op<47>(it);
    wait_for<kBarrier_a_arrived, 1>(it - 0);
    // order [state_meet.before.d.mma6]
    at_op<48>(it);
    role_sync<1, 256>();
    // 4: dV = beta D + (A'-I)^T (beta D) [d.mma6]
    at_op<49>(it);
    mma<R_d, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_d, SharedA<S_a, Rect<0, 32, 0, 32>, true>{S_a::stage(it)}, SharedB<S_bd, Rect<0, 32, 0, 128>, false>{S_bd::stage(it)}, Unscaled{});
    // order [state_meet.before.dvb.store]
    at_op<50>(it);
    role_sync<1, 256>();
    // 4: bf16(dV) [dvb.store]
    at_op<51>(it);
    warp_sync();
    store<R_d, Rect<0, 32, 0, 128>, S_dvb>(me, r_d, S_dvb::stage(it), 0, 0);
    warp_sync();
    // order [dvb_ready.arrive.state]
    at_op<52>(it);
    arrive(me, kBarrier_dvb_ready);
    // order [state_meet.before.dv.out]
    at_op<53>(it);
    role_sync<1, 256>();
    // 4: dv [dv.out]
    at_op<54>(it);
    copy_out<S_dvb, Rect<0, 32, 0, 128>, 8, true, false>(me, S_dvb::stage(it), tile_of<bf16, 0>(args.t_dv, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 5: U = K S0 [u.mma]
    at_op<55>(it);
    mma<R_u, Rect<0, 32, 0, 128>, false, false, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 0, 32>, false>{S_k::stage(it)}, SharedB<S_h, Rect<0, 32, 0, 128>, false>{S_h::stage(it)}, Unscaled{});
    // 6: <dS, S0> [cs.sum]
    at_op<56>(it);
    warp_sync();
    sum_all<R_dS::S, Rect<0, 32, 0, 128>, S_cs, false>(me, S_cs::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load(S_h::stage(it), i, j));
    });
    warp_sync();
    // order [h2_free.arrive.state]
    at_op<57>(it);
    arrive(me, kBarrier_h2_free);
    // 5: U = K S0 [u.mma2]
    at_op<63>(it);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 32, 64>, false>{S_k::stage(it)}, SharedB<S_h, Rect<32, 64, 0, 128>, false>{S_h::stage(it)}, Unscaled{});
    // 6: <dS, S0> [cs.sum2]
    at_op<64>(it);
    warp_sync();
    sum_all<R_dS::S, Rect<32, 64, 0, 128>, S_cs, false>(me, S_cs::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load(S_h::stage(it), i, j));
    });
    warp_sync();
    // order [h3_free.arrive.state]
    at_op<65>(it);
    arrive(me, kBarrier_h3_free);
    // order [h2_arrived.wait]
    at_op<72>(it);
    wait_for<kBarrier_h2_arrived, 1>(it - 0);
    // 5: U = K S0 [u.mma3]
    at_op<73>(it);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 64, 96>, false>{S_k::stage(it)}, SharedB<S_h, Rect<64, 96, 0, 128>, false>{S_h::stage(it)}, Unscaled{});
    // 6: <dS, S0> [cs.sum3]
    at_op<74>(it);
    warp_sync();
    sum_all<R_dS::S, Rect<64, 96, 0, 128>, S_cs, false>(me, S_cs::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load(S_h::stage(it), i, j));
    });
    warp_sync();
    // order [v_free.arrive.state]
    at_op<75>(it);
    arrive(me, kBarrier_v_free);
    // order [h3_arrived.wait]
    at_op<83>(it);
    wait_for<kBarrier_h3_arrived, 1>(it - 0);
    // 5: U = K S0 [u.mma4]
    at_op<84>(it);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_k, Rect<0, 32, 96, 128>, false>{S_k::stage(it)}, SharedB<S_h, Rect<96, 128, 0, 128>, false>{S_h::stage(it)}, Unscaled{});
    // 6: <dS, S0> [cs.sum4]
    at_op<85>(it);
    warp_sync();
    sum_all<R_dS::S, Rect<96, 128, 0, 128>, S_cs, false>(me, S_cs::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_dS::get(r_dS, b, n, e) * S_h::load(S_h::stage(it), i, j));
    });
    warp_sync();
    // 7: -eg dV.U [dvu.sum]
    at_op<94>(it);
    warp_sync();
    sum_cols<R_d::S, Rect<0, 32, 0, 128>, S_dvu, false>(me, S_dvu::stage(it), [&](int b, int n, int e, int i, int j) {
      return ((-exp_of(S_gam::at(S_gam::stage(it), i)) * R_d::get(r_d, b, n, e)) * R_u::get(r_u, b, n, e));
    });
    warp_sync();
    // order [v_arrived.wait]
    at_op<98>(it);
    wait_for<kBarrier_v_arrived, 1>(it - 0);
    // 7: W = V - eg U [u.map]
    at_op<99>(it);
    for_elements<R_u::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_u::set(r_u, b, n, e, (S_v::load(S_v::stage(it), i, j) - (exp_of(S_gam::at(S_gam::stage(it), i)) * R_u::get(r_u, b, n, e))));
    });
    // 7: bf16(W) [w.store]
    at_op<100>(it);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_w>(me, r_u, S_w::stage(it), 0, 0);
    warp_sync();
    // order [state_meet.before.u.mma5]
    at_op<101>(it);
    role_sync<1, 256>();
    // 8: E = W + (A'-I) W [u.mma5]
    at_op<102>(it);
    mma<R_u, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_u, SharedA<S_a, Rect<0, 32, 0, 32>, false>{S_a::stage(it)}, SharedB<S_w, Rect<0, 32, 0, 128>, false>{S_w::stage(it)}, Unscaled{});
    // order [state_meet.before.e.store]
    at_op<103>(it);
    role_sync<1, 256>();
    // 8: bf16(E) [e.store]
    at_op<104>(it);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_e>(me, r_u, S_e::stage(it), 0, 0);
    warp_sync();
    // order [e_ready.arrive.state]
    at_op<105>(it);
    arrive(me, kBarrier_e_ready);
    // 8: E.D1 [ed.sum]
    at_op<106>(it);
    warp_sync();
    sum_cols<R_u::S, Rect<0, 32, 0, 128>, S_ed, false>(me, S_ed::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_u::get(r_u, b, n, e) * R_d1::get(r_d1, b, n, e));
    });
    warp_sync();
    // order [qdq_ready.arrive.state]
    at_op<107>(it);
    arrive(me, kBarrier_qdq_ready);
    // 8: dV.E [edv.sum]
    at_op<108>(it);
    warp_sync();
    sum_cols<R_u::S, Rect<0, 32, 0, 128>, S_edv, false>(me, S_edv::stage(it), [&](int b, int n, int e, int i, int j) {
      return (R_u::get(r_u, b, n, e) * R_d::get(r_d, b, n, e));
    });
    warp_sync();
    // order [edv_ready.arrive.state]
    at_op<109>(it);
    arrive(me, kBarrier_edv_ready);
    // 11: er beta E [u.map2]
    at_op<110>(it);
    for_elements<R_u::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_u::set(r_u, b, n, e, ((exp_of((S_gam::at(S_gam::stage(it), 31) - S_gam::at(S_gam::stage(it), i))) * S_be::at(S_be::stage(it), i)) * R_u::get(r_u, b, n, e)));
    });
    // order [eb_free.wait]
    at_op<111>(it);
    wait_for<kBarrier_eb_free, 1>(it - 0);
    // 11: bf16(er beta E) [eb.store]
    at_op<112>(it);
    warp_sync();
    store<R_u, Rect<0, 32, 0, 128>, S_eb>(me, r_u, S_eb::stage(it), 0, 0);
    warp_sync();
    // order [eb_ready.arrive.state]
    at_op<113>(it);
    arrive(me, kBarrier_eb_ready);
    // order [ds1_free.wait]
    at_op<135>(it);
    wait_for<kBarrier_ds1_free, 1>(it - 0);
    // 11: dSb again [ds.store5]
    at_op<136>(it);
    warp_sync();
    store<R_dS, Rect<32, 64, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 32, 0);
    warp_sync();
    // order [ds1_ready.arrive.state]
    at_op<137>(it);
    arrive(me, kBarrier_ds1_ready);
    // order [ds0_free.wait]
    at_op<140>(it);
    wait_for<kBarrier_ds0_free, 1>(it - 0);
    // 11: dSb again [ds.store6]
    at_op<141>(it);
    warp_sync();
    store<R_dS, Rect<0, 32, 0, 128>, S_ds>(me, r_dS, S_ds::stage(it), 0, 0);
    warp_sync();
    // order [ds0_ready.arrive.state]
    at_op<142>(it);
    arrive(me, kBarrier_ds0_ready);
    // 13: eL dS [dS.map]
    at_op<161>(it);
    for_elements<R_dS::S, Rect<0, 128, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_dS::set(r_dS, b, n, e, (exp_of(S_gam::at(S_gam::stage(it), 31)) * R_dS::get(r_dS, b, n, e)));
    });
    // 13: dS += (s eg Q)^T dO [dS.mma]
    at_op<162>(it);
    mma<R_dS, Rect<0, 128, 0, 128>, false, true, 0, 1, 1>(me, r_dS, SharedA<S_q, Rect<0, 32, 0, 128>, true>{S_q::stage(it)}, SharedB<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, scaled_by([&](int l) { return (args.scale * exp_of(S_gam::at(S_gam::stage(it), l))); }));
    // 13: dS += (-eg K)^T dV [dS.mma2]
    at_op<163>(it);
    mma<R_dS, Rect<0, 128, 0, 128>, false, true, 0, 1, 1>(me, r_dS, SharedA<S_k, Rect<0, 32, 0, 128>, true>{S_k::stage(it)}, SharedB<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, scaled_by([&](int l) { return -exp_of(S_gam::at(S_gam::stage(it), l)); }));
    // order [pg_free.arrive.state]
    at_op<164>(it);
    arrive(me, kBarrier_pg_free);
  }
  // dS before the first chunk is dh0 [dh0.out]
  at_op<165>(-1);
  if (args.t_dh0.data) copy_out<R_dS, Rect<0, 128, 0, 128>, false, false, false>(me, r_dS, tile_of<float, 128>(args.t_dh0, block.sequence, block.head, 0, 128), 0, 0);
}

// ---------------------------------------------------------------------------------------------------- role keys
// Warps 12 to 15, 96 registers a thread.
// Waits for: do_arrived, dvb_ready, h2_arrived, h3_arrived, eb_ready, ds1_ready, ds0_ready, dp_ready, dkk_ready. Signals: h2_free, h3_free, v_free, eb_free, qdq_ready, ds1_free, ds0_free, ds0_free_2, h0_free.
GDR_FN void role_keys(const Args& args, const Block& block, Me me) {
  R_dQ r_dQ;
  R_dK r_dK;

  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    // order [do_arrived.wait2]
    at_op<58>(it);
    wait_for<kBarrier_do_arrived, 1>(it - 0);
    // 6: dO S0^T [dQ.mma]
    at_op<59>(it);
    mma<R_dQ, Rect<0, 32, 0, 32>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, SharedB<S_h, Rect<0, 32, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // order [dvb_ready.wait]
    at_op<60>(it);
    wait_for<kBarrier_dvb_ready, 1>(it - 0);
    // 6: dV S0^T [dK.mma]
    at_op<61>(it);
    mma<R_dK, Rect<0, 32, 0, 32>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, SharedB<S_h, Rect<0, 32, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // order [h2_free.arrive.keys]
    at_op<62>(it);
    arrive(me, kBarrier_h2_free);
    // 6: dO S0^T [dQ.mma2]
    at_op<66>(it);
    mma<R_dQ, Rect<0, 32, 32, 64>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, SharedB<S_h, Rect<32, 64, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // 6: dV S0^T [dK.mma2]
    at_op<67>(it);
    mma<R_dK, Rect<0, 32, 32, 64>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, SharedB<S_h, Rect<32, 64, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // order [h3_free.arrive.keys]
    at_op<68>(it);
    arrive(me, kBarrier_h3_free);
    // order [h2_arrived.wait2]
    at_op<76>(it);
    wait_for<kBarrier_h2_arrived, 1>(it - 0);
    // 6: dO S0^T [dQ.mma3]
    at_op<77>(it);
    mma<R_dQ, Rect<0, 32, 64, 96>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, SharedB<S_h, Rect<64, 96, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // 6: dV S0^T [dK.mma3]
    at_op<78>(it);
    mma<R_dK, Rect<0, 32, 64, 96>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, SharedB<S_h, Rect<64, 96, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // order [v_free.arrive.keys]
    at_op<79>(it);
    arrive(me, kBarrier_v_free);
    // order [h3_arrived.wait2]
    at_op<86>(it);
    wait_for<kBarrier_h3_arrived, 1>(it - 0);
    // 6: dO S0^T [dQ.mma4]
    at_op<87>(it);
    mma<R_dQ, Rect<0, 32, 96, 128>, false, false, 0, 1, 1>(me, r_dQ, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, SharedB<S_h, Rect<96, 128, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // 6: dV S0^T [dK.mma4]
    at_op<88>(it);
    mma<R_dK, Rect<0, 32, 96, 128>, false, false, 0, 1, 1>(me, r_dK, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, SharedB<S_h, Rect<96, 128, 0, 128>, true>{S_h::stage(it)}, Unscaled{});
    // order [eb_free.arrive.keys]
    at_op<89>(it);
    arrive(me, kBarrier_eb_free);
    // 6: dQ1 = s eg (dO S0^T) [dQ.map]
    at_op<90>(it);
    for_elements<R_dQ::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_dQ::set(r_dQ, b, n, e, ((args.scale * exp_of(S_gam::at(S_gam::stage(it), i))) * R_dQ::get(r_dQ, b, n, e)));
    });
    // 6: q.dQ1 [qdq.sum]
    at_op<91>(it);
    warp_sync();
    sum_cols<R_dQ::S, Rect<0, 32, 0, 128>, S_qdq, false>(me, S_qdq::stage(it), [&](int b, int n, int e, int i, int j) {
      return (S_q::load(S_q::stage(it), i, j) * R_dQ::get(r_dQ, b, n, e));
    });
    warp_sync();
    // order [qdq_ready.arrive.keys]
    at_op<92>(it);
    arrive(me, kBarrier_qdq_ready);
    // 6: dK2 = -eg (dV S0^T) [dK.map]
    at_op<93>(it);
    for_elements<R_dK::S, Rect<0, 32, 0, 128>>(me, [&](int b, int n, int e, int i, int j) {
      R_dK::set(r_dK, b, n, e, (-exp_of(S_gam::at(S_gam::stage(it), i)) * R_dK::get(r_dK, b, n, e)));
    });
    // order [eb_ready.wait]
    at_op<130>(it);
    wait_for<kBarrier_eb_ready, 1>(it - 0);
    // 11: dK1 = (er beta E) dS^T [dK.mma5]
    at_op<131>(it);
    mma<R_dK, Rect<0, 32, 96, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::stage(it)}, SharedB<S_ds, Rect<96, 128, 0, 128>, true>{S_ds::stage(it)}, Unscaled{});
    // order [ds1_free.arrive.keys]
    at_op<132>(it);
    arrive(me, kBarrier_ds1_free);
    // 11: dK1 = (er beta E) dS^T [dK.mma6]
    at_op<133>(it);
    mma<R_dK, Rect<0, 32, 64, 96>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::stage(it)}, SharedB<S_ds, Rect<64, 96, 0, 128>, true>{S_ds::stage(it)}, Unscaled{});
    // order [ds0_free.arrive.keys]
    at_op<134>(it);
    arrive(me, kBarrier_ds0_free);
    // order [ds1_ready.wait]
    at_op<138>(it);
    wait_for<kBarrier_ds1_ready, 1>(it - 0);
    // 11: dK1 = (er beta E) dS^T [dK.mma7]
    at_op<139>(it);
    mma<R_dK, Rect<0, 32, 32, 64>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::stage(it)}, SharedB<S_ds, Rect<32, 64, 0, 128>, true>{S_ds::stage(it)}, Unscaled{});
    // order [ds0_ready.wait]
    at_op<143>(it);
    wait_for<kBarrier_ds0_ready, 1>(it - 0);
    // 11: dK1 = (er beta E) dS^T [dK.mma8]
    at_op<144>(it);
    mma<R_dK, Rect<0, 32, 0, 32>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_eb, Rect<0, 32, 0, 128>, false>{S_eb::stage(it)}, SharedB<S_ds, Rect<0, 32, 0, 128>, true>{S_ds::stage(it)}, Unscaled{});
    // order [ds0_free_2.arrive.keys]
    at_op<145>(it);
    arrive(me, kBarrier_ds0_free_2);
    // order [dp_ready.wait]
    at_op<146>(it);
    wait_for<kBarrier_dp_ready, 1>(it - 0);
    // 12: dQ += dP K [dQ.mma5]
    at_op<147>(it);
    mma<R_dQ, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dQ, SharedA<S_dp, Rect<0, 32, 0, 32>, false>{S_dp::stage(it)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::stage(it)}, Unscaled{});
    // 12: dK += dP^T Q [dK.mma9]
    at_op<148>(it);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dp, Rect<0, 32, 0, 32>, true>{S_dp::stage(it)}, SharedB<S_q, Rect<0, 32, 0, 128>, false>{S_q::stage(it)}, Unscaled{});
    // order [dkk_ready.wait]
    at_op<149>(it);
    wait_for<kBarrier_dkk_ready, 1>(it - 0);
    // 12: dK += dKK K [dK.mma10]
    at_op<150>(it);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dkk, Rect<0, 32, 0, 32>, false>{S_dkk::stage(it)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::stage(it)}, Unscaled{});
    // 12: dK += dKK^T K [dK.mma11]
    at_op<151>(it);
    mma<R_dK, Rect<0, 32, 0, 128>, false, true, 0, 1, 1>(me, r_dK, SharedA<S_dkk, Rect<0, 32, 0, 32>, true>{S_dkk::stage(it)}, SharedB<S_k, Rect<0, 32, 0, 128>, false>{S_k::stage(it)}, Unscaled{});
    // order [h0_free.arrive.keys]
    at_op<152>(it);
    arrive(me, kBarrier_h0_free);
    // 12: dq [dq_head.out]
    at_op<153>(it);
    copy_out<R_dQ, Rect<0, 32, 0, 128>, true, false, false>(me, r_dQ, tile_of<float, 0>(args.t_dq_head, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // 12: dk [dk_head.out]
    at_op<154>(it);
    copy_out<R_dK, Rect<0, 32, 0, 128>, true, false, false>(me, r_dK, tile_of<float, 0>(args.t_dk_head, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
  }
}

// ---------------------------------------------------------------------------------------------------- role pairs
// Warps 16 to 19, 56 registers a thread.
// Waits for: q_arrived, gam_arrived, pg_free, e_ready, qdq_ready, edv_ready. Signals: pg_ready, dp_ready, dkk_ready.
GDR_FN void role_pairs(const Args& args, const Block& block, Me me) {
  set_registers<56, false>();
  R_P r_P;
  R_M r_M;
  R_F r_F;
  R_Y r_Y;

  GDR_ROLLED
  for (int it = 0; it < block.num_chunks; ++it) {
    const int chunk = block.num_chunks - 1 - it;
    const int rows_left = static_cast<int>(block.tokens - static_cast<i64>(chunk) * kChunk);
    const int rows = rows_left < kChunk ? rows_left : kChunk;
    (void)rows;
    // order [q_arrived.wait]
    at_op<15>(it);
    wait_for<kBarrier_q_arrived, 1>(it - 0);
    // 1: P = Q K^T [P.mma]
    at_op<16>(it);
    mma<R_P, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_P, SharedA<S_q, Rect<0, 32, 0, 128>, false>{S_q::stage(it)}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::stage(it)}, Unscaled{});
    // order [gam_arrived.wait]
    at_op<17>(it);
    wait_for<kBarrier_gam_arrived, 1>(it - 0);
    // 1: Pg = s P o G [P.map]
    at_op<18>(it);
    for_elements<R_P::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, int i, int j) {
      R_P::set(r_P, b, n, e, (i >= j ? ((args.scale * exp_of((S_gam::at(S_gam::stage(it), i) - S_gam::at(S_gam::stage(it), j)))) * R_P::get(r_P, b, n, e)) : 0.0f));
    });
    // order [pg_free.wait]
    at_op<19>(it);
    wait_for<kBarrier_pg_free, 1>(it - 1);
    // 1: Pg [pg.store]
    at_op<20>(it);
    warp_sync();
    store<R_P, Rect<0, 32, 0, 32>, S_pg>(me, r_P, S_pg::stage(it), 0, 0);
    warp_sync();
    // order [pg_ready.arrive.pairs]
    at_op<21>(it);
    arrive(me, kBarrier_pg_ready);
    // 2: KK = K K^T [M.mma]
    at_op<22>(it);
    mma<R_M, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_M, SharedA<S_k, Rect<0, 32, 0, 128>, false>{S_k::stage(it)}, SharedB<S_k, Rect<0, 32, 0, 128>, true>{S_k::stage(it)}, Unscaled{});
    // 2: M = strictLower(KK o G) [M.map]
    at_op<23>(it);
    for_elements<R_M::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, int i, int j) {
      R_M::set(r_M, b, n, e, (i > j ? (exp_of((S_gam::at(S_gam::stage(it), i) - S_gam::at(S_gam::stage(it), j))) * R_M::get(r_M, b, n, e)) : 0.0f));
    });
    // order [e_ready.wait]
    at_op<114>(it);
    wait_for<kBarrier_e_ready, 1>(it - 0);
    // 9: dO E^T [F.mma]
    at_op<115>(it);
    mma<R_F, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_F, SharedA<S_do, Rect<0, 32, 0, 128>, false>{S_do::stage(it)}, SharedB<S_e, Rect<0, 32, 0, 128>, true>{S_e::stage(it)}, Unscaled{});
    // 9: rows of strictLower(dPg o Pg) [xrow.sum]
    at_op<116>(it);
    warp_sync();
    sum_cols<R_F::S, Rect<0, 32, 0, 32>, S_xrow, false>(me, S_xrow::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i > j ? ((S_be::at(S_be::stage(it), j) * R_F::get(r_F, b, n, e)) * R_P::get(r_P, b, n, e)) : 0.0f);
    });
    warp_sync();
    // 9: columns of strictLower(dPg o Pg) [xcol.sum]
    at_op<117>(it);
    warp_sync();
    sum_rows<R_F::S, Rect<0, 32, 0, 32>, S_xcol, false>(me, S_xcol::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i > j ? ((S_be::at(S_be::stage(it), j) * R_F::get(r_F, b, n, e)) * R_P::get(r_P, b, n, e)) : 0.0f);
    });
    warp_sync();
    // dbeta where beta is 0: E.(Pg^T dO) [ecol.sum]
    at_op<118>(it);
    warp_sync();
    sum_rows<R_F::S, Rect<0, 32, 0, 32>, S_ecol, false>(me, S_ecol::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i >= j ? (R_F::get(r_F, b, n, e) * R_P::get(r_P, b, n, e)) : 0.0f);
    });
    warp_sync();
    // 9: dP = s G o dPg [F.map]
    at_op<119>(it);
    for_elements<R_F::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, int i, int j) {
      R_F::set(r_F, b, n, e, (i >= j ? (((args.scale * exp_of((S_gam::at(S_gam::stage(it), i) - S_gam::at(S_gam::stage(it), j)))) * S_be::at(S_be::stage(it), j)) * R_F::get(r_F, b, n, e)) : 0.0f));
    });
    // 9: bf16(dP) [dp.store]
    at_op<120>(it);
    warp_sync();
    store<R_F, Rect<0, 32, 0, 32>, S_dp>(me, r_F, S_dp::stage(it), 0, 0);
    warp_sync();
    // order [dp_ready.arrive.pairs]
    at_op<121>(it);
    arrive(me, kBarrier_dp_ready);
    // 10: Y = dV E^T [Y.mma]
    at_op<122>(it);
    mma<R_Y, Rect<0, 32, 0, 32>, true, false, 0, 1, 1>(me, r_Y, SharedA<S_dvb, Rect<0, 32, 0, 128>, false>{S_dvb::stage(it)}, SharedB<S_e, Rect<0, 32, 0, 128>, true>{S_e::stage(it)}, Unscaled{});
    // 10: rows of (M o Y) diag(beta) [yrow.sum]
    at_op<123>(it);
    warp_sync();
    sum_cols<R_Y::S, Rect<0, 32, 0, 32>, S_yrow, false>(me, S_yrow::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i > j ? ((S_be::at(S_be::stage(it), j) * R_M::get(r_M, b, n, e)) * R_Y::get(r_Y, b, n, e)) : 0.0f);
    });
    warp_sync();
    // 10: columns of (M o Y) diag(beta) [ycol.sum]
    at_op<124>(it);
    warp_sync();
    sum_rows<R_Y::S, Rect<0, 32, 0, 32>, S_ycol, false>(me, S_ycol::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i > j ? ((S_be::at(S_be::stage(it), j) * R_M::get(r_M, b, n, e)) * R_Y::get(r_Y, b, n, e)) : 0.0f);
    });
    warp_sync();
    // dbeta where beta is 0: columns of M o Y [mcol.sum]
    at_op<125>(it);
    warp_sync();
    sum_rows<R_Y::S, Rect<0, 32, 0, 32>, S_mcol, false>(me, S_mcol::stage(it), [&](int b, int n, int e, int i, int j) {
      return (i > j ? (R_M::get(r_M, b, n, e) * R_Y::get(r_Y, b, n, e)) : 0.0f);
    });
    warp_sync();
    // 10: dKK = -G o Y diag(beta) [Y.map]
    at_op<126>(it);
    for_elements<R_Y::S, Rect<0, 32, 0, 32>>(me, [&](int b, int n, int e, int i, int j) {
      R_Y::set(r_Y, b, n, e, (i > j ? ((-exp_of((S_gam::at(S_gam::stage(it), i) - S_gam::at(S_gam::stage(it), j))) * S_be::at(S_be::stage(it), j)) * R_Y::get(r_Y, b, n, e)) : 0.0f));
    });
    // order [pairs_meet.before.dkk.store]
    at_op<127>(it);
    role_sync<2, 128>();
    // 10: bf16(dKK) [dkk.store]
    at_op<128>(it);
    warp_sync();
    store<R_Y, Rect<0, 32, 0, 32>, S_dkk>(me, r_Y, S_dkk::stage(it), 0, 0);
    warp_sync();
    // order [dkk_ready.arrive.pairs]
    at_op<129>(it);
    arrive(me, kBarrier_dkk_ready);
    // order [qdq_ready.wait]
    at_op<155>(it);
    wait_for<kBarrier_qdq_ready, 1>(it - 0);
    // dg = c + suffix(a + row(X) - col(X)) + before(b) [dgv.scan]
    at_op<156>(it);
    if (me.warp == 0) {
      warp_sync();
      const Sums<32> sum0 = suffix_sums<32>(me, [&](int i) { return (((((S_qdq::at(S_qdq::stage(it), i) + S_dvu::at(S_dvu::stage(it), i)) + S_xrow::at(S_xrow::stage(it), i)) - S_xcol::at(S_xcol::stage(it), i)) - S_yrow::at(S_yrow::stage(it), i)) + S_ycol::at(S_ycol::stage(it), i)); });
      const Sums<32> sum1 = before_sums<32>(me, [&](int i) { return (S_be::at(S_be::stage(it), i) * S_ed::at(S_ed::stage(it), i)); });
      for_vector<0, 32, 1>(me, [&](int i) { S_dgv::store(S_dgv::stage(it), 0, i, (((exp_of(S_gam::at(S_gam::stage(it), 31)) * S_cs::at(S_cs::stage(it), 0)) + sum0.at(sum0, i)) + sum1.at(sum1, i))); });
      warp_sync();
    }
    // order [edv_ready.wait]
    at_op<157>(it);
    wait_for<kBarrier_edv_ready, 1>(it - 0);
    // dbeta = dV.E / beta where beta > 2^-60, else D.E - columns of M o Y [dbv.map]
    at_op<158>(it);
    warp_sync();
    for_vector<0, 32, 4>(me, [&](int i) { S_dbv::store(S_dbv::stage(it), 0, i, (S_be::at(S_be::stage(it), i) > 8.6736174e-19f ? (S_edv::at(S_edv::stage(it), i) / S_be::at(S_be::stage(it), i)) : ((S_ed::at(S_ed::stage(it), i) + S_ecol::at(S_ecol::stage(it), i)) - S_mcol::at(S_mcol::stage(it), i)))); });
    warp_sync();
    // dg [dg.out]
    at_op<159>(it);
    copy_out<S_dgv, Rect<0, 1, 0, 32>, 4, true, true>(me, S_dgv::stage(it), tile_of<float, 0>(args.t_dg, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
    // dbeta [dbeta.out]
    at_op<160>(it);
    copy_out<S_dbv, Rect<0, 1, 0, 32>, 4, true, true>(me, S_dbv::stage(it), tile_of<float, 0>(args.t_dbeta, block.sequence, block.head, static_cast<i64>(chunk) * kChunk, rows), 0, 0);
  }
}


// ---------------------------------------------------------------------------------------------------- the kernel

GDR_KERNEL(kThreads, 1) gdr_bwd_fused_bf16_k128v128_c32_s4__sm_120(const Args args) {
  const int warp = thread_index() / 32, lane = thread_index() % 32;
  if (thread_index() == 0) {
    barrier_init(kBarrier_k_arrived + 0, 128);
    barrier_init(kBarrier_q_arrived + 0, 128);
    barrier_init(kBarrier_gam_arrived + 0, 128);
    barrier_init(kBarrier_do_arrived + 0, 128);
    barrier_init(kBarrier_a_arrived + 0, 128);
    barrier_init(kBarrier_pg_ready + 0, 4);
    barrier_init(kBarrier_dvb_ready + 0, 8);
    barrier_init(kBarrier_h2_free + 0, 12);
    barrier_init(kBarrier_h3_free + 0, 12);
    barrier_init(kBarrier_h2_arrived + 0, 128);
    barrier_init(kBarrier_v_free + 0, 12);
    barrier_init(kBarrier_h3_arrived + 0, 128);
    barrier_init(kBarrier_eb_free + 0, 4);
    barrier_init(kBarrier_qdq_ready + 0, 12);
    barrier_init(kBarrier_v_arrived + 0, 128);
    barrier_init(kBarrier_e_ready + 0, 8);
    barrier_init(kBarrier_edv_ready + 0, 8);
    barrier_init(kBarrier_eb_ready + 0, 8);
    barrier_init(kBarrier_dp_ready + 0, 4);
    barrier_init(kBarrier_dkk_ready + 0, 4);
    barrier_init(kBarrier_ds1_free + 0, 4);
    barrier_init(kBarrier_ds0_free + 0, 4);
    barrier_init(kBarrier_ds1_ready + 0, 8);
    barrier_init(kBarrier_ds0_ready + 0, 8);
    barrier_init(kBarrier_ds0_free_2 + 0, 4);
    barrier_init(kBarrier_h0_free + 0, 4);
    barrier_init(kBarrier_pg_free + 0, 8);
  }
  block_sync();
  const Block block = find_block(args);
  if (warp < 4) {
    role_loader(args, block, {warp - 0, lane});
  } else if (warp < 12) {
    role_state(args, block, {warp - 4, lane});
  } else if (warp < 16) {
    role_keys(args, block, {warp - 12, lane});
  } else {
    role_pairs(args, block, {warp - 16, lane});
  }
}
