// The product kernels of each instruction set this build contains; only gemm.cpp chooses among them.
#pragma once

#include "cpu/gemm.hpp"

namespace gdr::cpu {

// The set whose kernels gemm_<name>.cpp defines. Constant data: reading it runs no code of that instruction set.
extern const GemmSet kGemmBaseline;
#if defined(__x86_64__)
extern const GemmSet kGemmAvx2;
extern const GemmSet kGemmAvx512;
#endif

}  // namespace gdr::cpu
