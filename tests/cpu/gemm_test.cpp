// Products of every instruction set that this processor has, against plain sums.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "cpu/gemm.hpp"

namespace gdr::cpu::test {
namespace {

template <class T>
void check_products(const GemmKernels<T>& kernels, double limit) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> draw(-1, 1);
  const auto fill = [&](std::int64_t count) {
    std::vector<T> result(static_cast<std::size_t>(count));
    for (T& x : result) x = static_cast<T>(draw(generator));
    return result;
  };
  for (const auto& sizes : {std::array<std::int64_t, 3>{1, 1, 1},
                            {1, 128, 32},
                            {32, 1, 128},
                            {7, 5, 3},
                            {32, 128, 128},
                            {64, 32, 128},
                            {128, 128, 64},
                            {33, 65, 257},
                            {5, 4, 0}}) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const std::int64_t lda = std::max(m, k) + 3, ldb = std::max(n, k) + 1, ldc = n + 2;
    const std::vector<T> a = fill(std::max(m, k) * lda), b = fill(std::max(n, k) * ldb), before = fill(m * ldc);
    struct Form {
      Gemm<T> gemm;
      bool a_transposed, b_transposed;
    };
    for (const Form& form :
         {Form{kernels.nn, false, false}, Form{kernels.nt, false, true}, Form{kernels.tn, true, false}})
      for (const bool accumulate : {false, true}) {
        std::vector<T> c = before;
        form.gemm(m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc, accumulate);
        double worst = 0;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < ldc; ++j) {
            const std::size_t at = static_cast<std::size_t>(i * ldc + j);
            if (j >= n) {
              CHECK(c[at] == before[at]);  // beyond the row
              continue;
            }
            double sum = accumulate ? static_cast<double>(before[at]) : 0.0;
            for (std::int64_t l = 0; l < k; ++l) {
              const T left = a[static_cast<std::size_t>(form.a_transposed ? l * lda + i : i * lda + l)];
              const T right = b[static_cast<std::size_t>(form.b_transposed ? j * ldb + l : l * ldb + j)];
              sum += static_cast<double>(left) * static_cast<double>(right);
            }
            worst = std::max(worst, std::abs(static_cast<double>(c[at]) - sum));
          }
        CHECK(worst < limit * std::sqrt(static_cast<double>(k + 1)));
      }
  }
}

}  // namespace

TEST_CASE("gemm: products agree with plain sums") {
  CHECK(gemm_sets().back().name == "baseline");
  for (const GemmSet& set : gemm_sets()) {
    const std::string name(set.name);
    CAPTURE(name);
    MESSAGE("instruction set ", name);
    check_products<float>(set.of_float, 2e-6);
    check_products<double>(set.of_double, 4e-15);
  }
  CHECK(&gemm_kernels<float>() == &gemm_sets().front().of_float);
  CHECK(&gemm_kernels<double>() == &gemm_sets().front().of_double);
}

}  // namespace gdr::cpu::test
