// Matrix products of row-major tiles, by Eigen. The same text is compiled for several x86 instruction sets and the
// widest one that the processor has is taken at run time, so a portable build is not a slow one.
// The result of a product depends on its sizes and operands only, never on the thread that computes it.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

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

// The kernels of one instruction set: "avx512", "avx2" or "baseline".
struct GemmSet {
  std::string_view name;
  GemmKernels<float> of_float;
  GemmKernels<double> of_double;
};

// The sets of this build that this processor can run, the widest first; never empty.
const std::vector<GemmSet>& gemm_sets();

// The kernels that the backend uses for T, float or double: those of the first set.
template <class T>
const GemmKernels<T>& gemm_kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return gemm_sets().front().of_float;
  } else {
    return gemm_sets().front().of_double;
  }
}

}  // namespace gdr::cpu
