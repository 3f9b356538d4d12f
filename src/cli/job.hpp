// A case made ready to run: its inputs in one element type, outputs of the matching types, and the two ways to fill
// them: the library's own call, and the float64 token recurrence that it is checked against.
#pragma once

#include <map>
#include <string>

#include "cli/case.hpp"
#include "cli/owned_tensor.hpp"
#include "gdr/gdr.hpp"

namespace gdr {

// The element type in which a case is run if nobody says: that of q.npy, or bf16 where q, k, v and do hold only numbers
// that bf16 has, as the cases that tools/oracle.py writes do.
DType default_dtype(const Case& from);

// Largest relative L2 error of an output that passes a check in this type.
double error_limit(DType dtype);

// Root mean square below which an output is not compared relatively: its type has no digits left there. fp16's smallest
// normal number; for bf16 and fp32, 1e-30 (states that have decayed by e^-100 are beyond both); 0 for fp64.
double least_rms(DType dtype);

using Outputs = std::map<std::string, OwnedTensor>;

class Job {
 public:
  // q, k, v, do are cast to `dtype`, and o, dq, dk, dv are of it; g, beta, the states and all other outputs are fp32
  // (fp64 if `dtype` is). Consumes the inputs of `from`.
  Job(Case from, Direction direction, DType dtype);

  const Case& test_case() const { return case_; }
  DType dtype() const { return dtype_; }

  // Calls run_fwd or run_bwd and measures it.
  Result run(const Options& options, Outputs& outputs, double& milliseconds);

  // The same inputs through the token recurrence; outputs in float64.
  Outputs recurrence(int threads);

 private:
  Outputs make_outputs(bool is_truth) const;
  FwdArgs fwd_args(Outputs& outputs);
  BwdArgs bwd_args(Outputs& outputs);
  std::optional<Tensor> optional_input(const std::string& name);

  Case case_;
  Direction direction_;
  DType dtype_;
};

}  // namespace gdr
