// Random problems for the tests of the CPU backend: tensors that own their memory, inputs drawn from a printed seed,
// outputs filled with NaN before every run, and relative L2 errors against the float64 token recurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cpu/call.hpp"
#include "cpu/chunked.hpp"

namespace gdr::cpu::test {

// A dense [d0, d1, d2, d3] tensor in memory of its own, or a strided one inside a larger allocation.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, std::array<std::int64_t, 4> shape);
  // As above with these strides (elements), the first element `first_byte` bytes into the allocation.
  Tensor(DType dtype, std::array<std::int64_t, 4> shape, std::array<std::int64_t, 4> strides, std::int64_t first_byte);

  bool present() const { return present_; }
  View view() const;
  std::int64_t num_elems() const { return shape_[0] * shape_[1] * shape_[2] * shape_[3]; }
  const std::array<std::int64_t, 4>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }

  std::vector<double> values() const;              // row-major, converted
  void assign(const std::vector<double>& values);  // row-major, rounded to the dtype
  void poison();                                   // NaN everywhere, also between the rows
  const std::vector<std::byte>& bytes() const { return memory_; }

 private:
  template <class Body>
  void for_rows(Body&& body) const;

  DType dtype_ = DType::fp32;
  std::array<std::int64_t, 4> shape_{};
  std::array<std::int64_t, 4> strides_{};
  std::int64_t first_byte_ = 0;
  bool present_ = false;
  mutable std::vector<std::byte> memory_;
};

// How a problem is drawn. The field names are those of tests/data/correctness.json.
struct Spec {
  std::vector<std::int64_t> lengths = {57, 2, 5, 64};
  bool varlen = true;    // packed sequences; else a [B, T] batch of equal lengths
  std::int64_t pad = 0;  // rows past the last sequence; their inputs are NaN
  std::int64_t k_heads = 2, v_heads = 4;
  std::int64_t dim_k = 16, dim_v = 16;
  DType dtype = DType::fp32;      // q, k, v, do
  DType aux_dtype = DType::fp32;  // g, beta and the states
  std::string gates = "realistic";
  std::string beta = "random";  // "random", or the value of all
  std::string keys = "random";  // or "all equal, beta 1, g 0"
  double key_cosine = 0;        // mean cosine between any two keys of a head
  bool initial_state = true, final_state_grad = true, dh0 = true;
  std::int64_t state_bytes = ChunkedOptions{}.state_bytes_per_task;
  std::optional<double> scale;  // default K^-0.5
  std::uint64_t seed = 1;
};

// Throws std::invalid_argument naming a kind of gates, beta or keys that it does not know.
struct Problem {
  explicit Problem(const Spec& spec);

  Spec spec;
  Sizes sizes;
  std::vector<Sequence> sequences;
  double scale = 1;
  Tensor q, k, v, g, beta, do_, initial_state, final_state_grad;

  Inputs inputs() const;
  // Tokens that belong to a sequence, times v-heads, times K V: what the running time is proportional to.
  double work() const;
};

// Outputs by their names: "o", "final_state", "dq", "dk", "dv", "dg", "dbeta", "dh0".
using Outputs = std::map<std::string, Tensor>;

enum class Method { recurrence, chunked_fp32, chunked_fp64 };

// Runs forward and backward; outputs are of this dtype and hold NaN before.
Outputs run(const Problem& problem, Method method, DType output_dtype, int threads);

// The outputs of the recurrence in float64.
inline Outputs truth(const Problem& problem) { return run(problem, Method::recurrence, DType::fp64, 2); }

// |a - b| / |b| over all elements, but |b| is taken as at least `least_norm`, and |a - b| where both are 0; infinite if
// an element of a is not finite.
double relative_l2(const std::vector<double>& a, const std::vector<double>& b, double least_norm = 0);

// Errors by output name. Of a method in float32 elements smaller than 1e-30 are not asked for: a state that has decayed
// by e^-100 is below its smallest number (1.2e-38), and sums have terms smaller than themselves.
std::map<std::string, double> errors(const Outputs& outputs, const Outputs& reference, Method method);
// Errors of both chunked methods against the recurrence.
struct Errors {
  std::map<std::string, double> fp64, fp32;
};
Errors compare_chunked(const Problem& problem);

double largest(const std::map<std::string, double>& errors);
std::string to_text(const std::map<std::string, double>& errors);

// A seed that differs from run to run, or the one in GDRJIT_TEST_SEED; printed by the tests that use it.
std::uint64_t fresh_seed();

}  // namespace gdr::cpu::test
