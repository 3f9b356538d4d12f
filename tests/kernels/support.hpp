// Small problems for the tests of the kernels' dataflow, plans of the kernels under test, and how far results are from
// the reference.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interp/interp.hpp"
#include "schedule/builders.hpp"

namespace gdr::test {

using Tensors = std::map<std::string, HostTensor>;
using Values = std::vector<double>;

struct Case {
  std::string name;
  std::vector<int> lengths;  // of the sequences, one behind the other
  int chunk = 64;
  int k_heads = 1, group = 1;
  int dim_k = 32, dim_v = 32;
  double gate_scale = 1;  // of -0.5 softplus(N(0, 1)); 0.04 is 'slow', 32 is 'extreme'
  bool h0 = true, dht = true;
  int pad = 3;  // rows behind the last sequence; their inputs are NaN
  DType dtype = DType::bf16, gate_dtype = DType::fp32;
  double zero_betas = 0;  // share of tokens whose beta is 0
  double huge_gates = 0;  // share of tokens whose g is -1e6 or -infinity

  int v_heads() const { return k_heads * group; }
  int tokens() const;
  Problem problem() const;
  LaunchShape launch() const;
};

// All inputs of the backward, in the dtypes of the problem. Optional tensors are there if the case has them.
Tensors make_inputs(const Case& c, std::uint64_t seed);

// The elements of a tensor, converted.
Values values(const HostTensor& tensor);
HostTensor host_tensor(DType dtype, std::vector<std::int64_t> shape, const Values& values);

// A plan of these kernels, through all passes for sm_120 with its whole shared memory. Fails the test if a kernel does
// not fit or the plan is not proved.
Plan finished_plan(const Case& c, const std::vector<TensorSpec>& tensors, std::vector<Kernel> kernels);

// |x - y| / |y|, or |x| where y is 0; infinite if an element of x is not finite or the sizes differ.
double relative_error(const Values& x, const Values& y);

}  // namespace gdr::test
