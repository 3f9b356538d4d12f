#define GDR_GEMM_SET avx2
#define GDR_GEMM_CONSTANT kGemmAvx2
#include "cpu/gemm_kernels.inl"
