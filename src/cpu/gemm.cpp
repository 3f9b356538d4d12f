#include "cpu/gemm.hpp"

#include "cpu/gemm_sets.hpp"

namespace gdr::cpu {

const std::vector<GemmSet>& gemm_sets() {
  static const std::vector<GemmSet> sets = [] {
    std::vector<GemmSet> result;
#if defined(__x86_64__)
    // The builtins also ask the operating system whether it saves the wide registers.
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
      result.push_back(kGemmAvx512);
    if (has_avx2) result.push_back(kGemmAvx2);
#endif
    result.push_back(kGemmBaseline);
    return result;
  }();
  return sets;
}

}  // namespace gdr::cpu
