// Text of the product kernels, included once per instruction set by gemm_<set>.cpp, which defines GDR_GEMM_SET
// (the name of the set) and GDR_GEMM_CONSTANT (the constant that holds its kernels).
//
// Eigen is a library of inline templates. Compiled with two sets of flags under one name they would be two
// definitions of one function, and the linker would keep either: AVX code on a processor without AVX. Renaming its
// namespace gives every set its own functions; a test looks at the object files for names that escaped.
#define GDR_GEMM_JOIN2(a, b) a##b
#define GDR_GEMM_JOIN(a, b) GDR_GEMM_JOIN2(a, b)
#define GDR_GEMM_TEXT2(a) #a
#define GDR_GEMM_TEXT(a) GDR_GEMM_TEXT2(a)
#define Eigen GDR_GEMM_JOIN(gdr_eigen_, GDR_GEMM_SET)
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#define EIGEN_MPL2_ONLY

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#endif
#include <Eigen/Core>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include "cpu/gemm.hpp"
#include "cpu/gemm_sets.hpp"

namespace gdr::cpu {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using In = Eigen::Map<const Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Out = Eigen::Map<Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class C, class A, class B>
void multiply(C&& c, const A& a, const B& b, bool accumulate) {
  if (accumulate) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

template <class T>
void nn(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b, std::int64_t ldb,
        T* c, std::int64_t ldc, bool accumulate) {
  multiply(Out<T>(c, m, n, Eigen::OuterStride<>(ldc)), In<T>(a, m, k, Eigen::OuterStride<>(lda)),
           In<T>(b, k, n, Eigen::OuterStride<>(ldb)), accumulate);
}

template <class T>
void nt(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b, std::int64_t ldb,
        T* c, std::int64_t ldc, bool accumulate) {
  multiply(Out<T>(c, m, n, Eigen::OuterStride<>(ldc)), In<T>(a, m, k, Eigen::OuterStride<>(lda)),
           In<T>(b, n, k, Eigen::OuterStride<>(ldb)).transpose(), accumulate);
}

template <class T>
void tn(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b, std::int64_t ldb,
        T* c, std::int64_t ldc, bool accumulate) {
  multiply(Out<T>(c, m, n, Eigen::OuterStride<>(ldc)), In<T>(a, k, m, Eigen::OuterStride<>(lda)).transpose(),
           In<T>(b, k, n, Eigen::OuterStride<>(ldb)), accumulate);
}

}  // namespace

const GemmSet GDR_GEMM_CONSTANT = {
    GDR_GEMM_TEXT(GDR_GEMM_SET), {nn<float>, nt<float>, tn<float>}, {nn<double>, nt<double>, tn<double>}};

}  // namespace gdr::cpu
