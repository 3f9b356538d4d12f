#include "cpu/gemm.hpp"

#include "cpu/gemm_sets.hpp"

namespace gdr::cpu {
namespace {

struct Choice {
  std::string_view name;
  const GemmKernels<float>& of_float;
  const GemmKernels<double>& of_double;
};

Choice choose() {
#if defined(__x86_64__)
  // The builtins also ask the operating system whether it saves the wide registers.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma")) {
    return {"avx512", gemm_avx512::kFloat, gemm_avx512::kDouble};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {"avx2", gemm_avx2::kFloat, gemm_avx2::kDouble};
  }
#endif
  return {"baseline", gemm_baseline::kFloat, gemm_baseline::kDouble};
}

const Choice& chosen() {
  static const Choice choice = choose();
  return choice;
}

}  // namespace

template <>
const GemmKernels<float>& gemm_kernels<float>() {
  return chosen().of_float;
}

template <>
const GemmKernels<double>& gemm_kernels<double>() {
  return chosen().of_double;
}

std::string_view gemm_instruction_set() { return chosen().name; }

}  // namespace gdr::cpu
