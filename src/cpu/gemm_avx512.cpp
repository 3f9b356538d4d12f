#define GDR_GEMM_SET avx512
#include "cpu/gemm_kernels.inl"
