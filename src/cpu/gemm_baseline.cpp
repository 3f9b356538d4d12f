#define GDR_GEMM_SET baseline
#include "cpu/gemm_kernels.inl"
