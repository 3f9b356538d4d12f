#define GDR_GEMM_SET baseline
#define GDR_GEMM_CONSTANT kGemmBaseline
#include "cpu/gemm_kernels.inl"
