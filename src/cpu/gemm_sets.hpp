// The product kernels of each instruction set this build contains; only gemm.cpp chooses among them.
#pragma once

#include "cpu/gemm.hpp"

#define GDR_GEMM_DECLARE(set)                 \
  namespace gdr::cpu::gemm_##set {            \
    extern const GemmKernels<float> kFloat;   \
    extern const GemmKernels<double> kDouble; \
  }

GDR_GEMM_DECLARE(baseline)
#if defined(__x86_64__)
GDR_GEMM_DECLARE(avx2)
GDR_GEMM_DECLARE(avx512)
#endif

#undef GDR_GEMM_DECLARE
