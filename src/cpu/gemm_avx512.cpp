#define GDR_GEMM_SET avx512
#define GDR_GEMM_CONSTANT kGemmAvx512
#include "cpu/gemm_kernels.inl"
