// Matrix products of row-major tiles, by Eigen. The same text is compiled for several x86 instruction sets and the
// widest one that the processor has is taken at run time, so a portable build is not a slow one.
// The result of a product depends on its sizes and operands only, never on the thread that computes it.
#pragma once

#include <cstdint>
#include <string_view>

namespace gdr::cpu {

// C[m, n] = op(A) op(B), or += when `accumulate`; lda, ldb, ldc are row lengths in elements. C overlaps neither input.
template <class T>
using Gemm = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
                      std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate);

template <class T>
struct GemmKernels {
  Gemm<T> nn;  // A [m, k], B [k, n]
  Gemm<T> nt;  // A [m, k], B [n, k] transposed
  Gemm<T> tn;  // A [k, m] transposed, B [k, n]
};

template <class T>
const GemmKernels<T>& gemm_kernels();

// The instruction set that gemm_kernels() uses here: "avx512", "avx2" or "baseline".
std::string_view gemm_instruction_set();

}  // namespace gdr::cpu
