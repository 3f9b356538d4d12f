// Primitives, for the GPU. One function for one instruction or hardware facility; what it needs and where PTX describes
// it is said above it. host.hpp has the same signatures in plain C++. Everything else in this folder is written in
// terms of these and runs on both.
#define GDR_FN static __device__ __forceinline__
#define GDR_METHOD __device__ __forceinline__
#define GDR_UNROLL _Pragma("unroll")
#define GDR_ROLLED _Pragma("unroll 1")
#define GDR_KERNEL(threads, blocks_per_sm) extern "C" __global__ void __launch_bounds__(threads, blocks_per_sm)

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

extern __shared__ __align__(1024) u8 gdr_shared[];

// The op (its index in the plan's kernel) and iteration that a thread comes to: for whoever watches. Nothing here.
template <int kOp>
GDR_FN void at_op(int) {}

GDR_FN int block_index() { return static_cast<int>(blockIdx.x); }
GDR_FN int thread_index() { return static_cast<int>(threadIdx.x); }
// The same for all threads of a warp, as the compiler then knows: what depends on it alone takes no register a thread.
GDR_FN int warp_index() { return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0); }

// The same value, of which the compiler knows nothing: what it derives from it is derived here, not kept since an earlier
// place.
GDR_FN int forgotten(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

GDR_FN u32 shared_address(int byte) { return static_cast<u32>(__cvta_generic_to_shared(gdr_shared)) + static_cast<u32>(byte); }

// Elements of shared memory at a byte offset of the block.
template <typename T>
GDR_FN T shared_load(int byte) {
  return *reinterpret_cast<const T*>(gdr_shared + byte);
}
template <typename T>
GDR_FN void shared_store(int byte, T value) {
  *reinterpret_cast<T*>(gdr_shared + byte) = value;
}

// Elements of global memory.
template <typename T>
GDR_FN T global_load(const T* at) {
  return *at;
}
template <typename T>
GDR_FN void global_store(T* at, T value) {
  *at = value;
}

GDR_FN float float_of_bits(u32 bits) { return __uint_as_float(bits); }

// Two floats rounded to nearest even; `lo` in the low half. PTX: cvt.rn.bf16x2.f32.
GDR_FN u32 pack_bf16(float lo, float hi) {
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  return packed;
}
// PTX: cvt.rn.f16x2.f32.
GDR_FN u32 pack_fp16(float lo, float hi) {
  u32 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(hi), "f"(lo));
  return packed;
}
GDR_FN float float_of_fp16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// e^x as 2^(x log2 e), flushing to 0 below the smallest normal number. PTX: ex2.approx.ftz.f32.
GDR_FN float exp_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}

// PTX: shfl.sync, all lanes of a warp.
GDR_FN float shuffle_xor(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
GDR_FN u32 shuffle_xor(u32 value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
GDR_FN float shuffle_up(float value, int distance) { return __shfl_up_sync(0xffffffffu, value, distance); }
GDR_FN float shuffle_down(float value, int distance) { return __shfl_down_sync(0xffffffffu, value, distance); }
GDR_FN float shuffle_from(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
GDR_FN void warp_sync() { __syncwarp(); }

// Four 8x8 matrices of 16-bit elements; lane l gives the first byte of row l % 8 of matrix l / 8. PTX: ldmatrix.x4.
GDR_FN void load_matrices(u32 (&r)[4], int byte) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(byte))
               : "memory");
}
GDR_FN void load_matrices_transposed(u32 (&r)[4], int byte) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(byte))
               : "memory");
}

// The transpose of one 8x8 matrix of 16-bit elements; lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4.
// PTX: movmatrix.
GDR_FN u32 transpose_matrix(u32 pair) {
  u32 transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(pair));
  return transposed;
}

// d += a b for 16x8x16, fp32 accumulation. PTX: mma.sync.m16n8k16.
struct bf16 {
  u16 bits;
};
struct fp16 {
  u16 bits;
};
GDR_FN void matrix_product(bf16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
GDR_FN void matrix_product(fp16, float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 16 bytes from global to shared memory, asynchronous; zeros if not `is_there` (nothing is read then).
// PTX: cp.async.
GDR_FN void copy_16(int byte, const void* source, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(byte)), "l"(source),
               "r"(is_there ? 16 : 0)
               : "memory");
}

// Barriers in shared memory. PTX: mbarrier.
GDR_FN void barrier_init(int byte, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(byte)), "r"(arrivals) : "memory");
}
GDR_FN void barrier_arrive(int byte) {
  asm volatile("{ .reg .b64 ignored; mbarrier.arrive.shared.b64 ignored, [%0]; }" ::"r"(shared_address(byte)) : "memory");
}
// Arrives once this thread's copies so far have landed; counts as one of the arrivals.
GDR_FN void barrier_arrive_after_copies(int byte) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(byte)) : "memory");
}
// Waits for the end of the phase of this parity.
GDR_FN void barrier_wait(int byte, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
#if __CUDA_ARCH__ >= 900
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
#else
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
#endif
      "@!done bra again;\n"
      "}" ::"r"(shared_address(byte)),
      "r"(parity)
      : "memory");
}

// All threads of the block; threads of one role under a hardware barrier. PTX: barrier.sync.
GDR_FN void block_sync() { __syncthreads(); }
template <int kId, int kThreads>
GDR_FN void role_sync() {
  asm volatile("barrier.sync %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
}

// Takes or gives registers, for whole warpgroups. PTX: setmaxnreg.
template <int kRegisters, bool kMore>
GDR_FN void set_registers() {
  if constexpr (kMore)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  else
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
