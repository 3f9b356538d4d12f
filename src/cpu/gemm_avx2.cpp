#define GDR_GEMM_SET avx2
#include "cpu/gemm_kernels.inl"
