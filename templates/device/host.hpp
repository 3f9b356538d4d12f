// Primitives, for the host: the signatures of gpu.cuh in plain C++. Each is a call into an engine that executes the
// threads of a block one at a time, decides when copies land and who runs next, and looks for faults (tests/host).
#define GDR_FN [[maybe_unused]] static inline
#define GDR_METHOD inline
#define GDR_UNROLL
#define GDR_ROLLED
#define GDR_KERNEL(threads, blocks_per_sm) static void

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// What the engine defines. `bytes` is the size of an access: 2, 4 or 16.
extern "C" {
void gdr_host_at_op(int op, int iteration);
int gdr_host_block_index();
int gdr_host_thread_index();
void gdr_host_shared_load(int byte, void* value, int bytes);
void gdr_host_shared_store(int byte, const void* value, int bytes);
void gdr_host_global_load(const void* at, void* value, int bytes);
void gdr_host_global_store(void* at, const void* value, int bytes);
float gdr_host_float_of_bits(u32 bits);
u32 gdr_host_pack_bf16(float lo, float hi);
u32 gdr_host_pack_fp16(float lo, float hi);
float gdr_host_float_of_fp16(u16 bits);
float gdr_host_exp_of(float x);
float gdr_host_shuffle_xor(float value, int mask);
float gdr_host_shuffle_up(float value, int distance);
float gdr_host_shuffle_down(float value, int distance);
float gdr_host_shuffle_from(float value, int lane);
void gdr_host_warp_sync();
void gdr_host_load_matrices(u32* r, int byte, bool transposed);
u32 gdr_host_transpose_matrix(u32 pair);
void gdr_host_matrix_product_bf16(float* d, const u32* a, u32 b0, u32 b1);
void gdr_host_matrix_product_fp16(float* d, const u32* a, u32 b0, u32 b1);
void gdr_host_copy_16(int byte, const void* source, bool is_there);
void gdr_host_barrier_init(int byte, int arrivals);
void gdr_host_barrier_arrive(int byte);
void gdr_host_barrier_arrive_after_copies(int byte);
void gdr_host_barrier_wait(int byte, int parity);
void gdr_host_block_sync();
void gdr_host_role_sync(int id, int threads);
void gdr_host_set_registers(int registers, bool more);
}

template <int kOp>
GDR_FN void at_op(int iteration) {
  gdr_host_at_op(kOp, iteration);
}

GDR_FN int block_index() { return gdr_host_block_index(); }
GDR_FN int thread_index() { return gdr_host_thread_index(); }
GDR_FN int warp_index() { return gdr_host_thread_index() / 32; }
GDR_FN int forgotten(int value) { return value; }

template <typename T>
GDR_FN T shared_load(int byte) {
  T value;
  gdr_host_shared_load(byte, &value, sizeof(T));
  return value;
}
template <typename T>
GDR_FN void shared_store(int byte, T value) {
  gdr_host_shared_store(byte, &value, sizeof(T));
}
template <typename T>
GDR_FN T global_load(const T* at) {
  T value;
  gdr_host_global_load(at, &value, sizeof(T));
  return value;
}
template <typename T>
GDR_FN void global_store(T* at, T value) {
  gdr_host_global_store(at, &value, sizeof(T));
}

GDR_FN float float_of_bits(u32 bits) { return gdr_host_float_of_bits(bits); }
GDR_FN u32 pack_bf16(float lo, float hi) { return gdr_host_pack_bf16(lo, hi); }
GDR_FN u32 pack_fp16(float lo, float hi) { return gdr_host_pack_fp16(lo, hi); }
GDR_FN float float_of_fp16(u16 bits) { return gdr_host_float_of_fp16(bits); }
GDR_FN float exp_of(float x) { return gdr_host_exp_of(x); }

GDR_FN float shuffle_xor(float value, int mask) { return gdr_host_shuffle_xor(value, mask); }
GDR_FN u32 shuffle_xor(u32 value, int mask) {
  const float other = gdr_host_shuffle_xor(gdr_host_float_of_bits(value), mask);
  u32 bits;
  __builtin_memcpy(&bits, &other, sizeof bits);
  return bits;
}
GDR_FN float shuffle_up(float value, int distance) { return gdr_host_shuffle_up(value, distance); }
GDR_FN float shuffle_down(float value, int distance) { return gdr_host_shuffle_down(value, distance); }
GDR_FN float shuffle_from(float value, int lane) { return gdr_host_shuffle_from(value, lane); }
GDR_FN void warp_sync() { gdr_host_warp_sync(); }

GDR_FN void load_matrices(u32 (&r)[4], int byte) { gdr_host_load_matrices(r, byte, false); }
GDR_FN void load_matrices_transposed(u32 (&r)[4], int byte) { gdr_host_load_matrices(r, byte, true); }

GDR_FN u32 transpose_matrix(u32 pair) { return gdr_host_transpose_matrix(pair); }

struct bf16 {
  u16 bits;
};
struct fp16 {
  u16 bits;
};
GDR_FN void matrix_product(bf16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  gdr_host_matrix_product_bf16(d, a, b0, b1);
}
GDR_FN void matrix_product(fp16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  gdr_host_matrix_product_fp16(d, a, b0, b1);
}

GDR_FN void copy_16(int byte, const void* source, bool is_there) { gdr_host_copy_16(byte, source, is_there); }
GDR_FN void barrier_init(int byte, int arrivals) { gdr_host_barrier_init(byte, arrivals); }
GDR_FN void barrier_arrive(int byte) { gdr_host_barrier_arrive(byte); }
GDR_FN void barrier_arrive_after_copies(int byte) { gdr_host_barrier_arrive_after_copies(byte); }
GDR_FN void barrier_wait(int byte, int parity) { gdr_host_barrier_wait(byte, parity); }

GDR_FN void block_sync() { gdr_host_block_sync(); }
template <int kId, int kThreads>
GDR_FN void role_sync() {
  gdr_host_role_sync(kId, kThreads);
}
template <int kRegisters, bool kMore>
GDR_FN void set_registers() {
  gdr_host_set_registers(kRegisters, kMore);
}
