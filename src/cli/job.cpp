#include "cli/job.hpp"

#include <chrono>
#include <utility>

#include "api/arguments.hpp"
#include "core/error.hpp"
#include "cpu/recurrence.hpp"

namespace gdr {
namespace {

DType aux_dtype(DType dtype) { return dtype == DType::fp64 ? DType::fp64 : DType::fp32; }

// q, k, v, do and what is shaped like them share the element type; the rest has the wider one.
bool is_wide(const std::string& name) {
  return name == "g" || name == "beta" || name == "h0" || name == "dht" || name == "dg" || name == "dbeta" ||
         name == "dh0" || name == "final_state";
}

bool holds_only_bf16(const OwnedTensor& tensor) { return relative_l2(tensor.cast(DType::bf16), tensor, 0) == 0; }

}  // namespace

DType default_dtype(const Case& from) {
  const DType stored = from.inputs.at("q").dtype();
  if (stored != DType::fp32) return stored;
  for (const char* name : {"q", "k", "v", "do"}) {
    const auto found = from.inputs.find(name);
    if (found != from.inputs.end() && !holds_only_bf16(found->second)) return DType::fp32;
  }
  return DType::bf16;
}

double error_limit(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0.005;
    case DType::fp16:
      return 0.001;
    case DType::fp32:
      return 1e-5;
    case DType::fp64:
      return 1e-10;
    default:
      break;
  }
  fail(ErrorKind::internal, "GDR-X01",
       "internal: no limit for an integer type. This is a fault of gdrjit; please report it.");
}

double least_rms(DType dtype) {
  if (dtype == DType::fp64) return 0;
  return dtype == DType::fp16 ? 0x1p-14 : 1e-30;
}

Job::Job(Case from, Direction direction, DType dtype) : case_(std::move(from)), direction_(direction), dtype_(dtype) {
  for (auto& [name, tensor] : case_.inputs)
    if (name != "cu_seqlens") tensor = tensor.cast(is_wide(name) ? aux_dtype(dtype) : dtype);
}

Outputs Job::make_outputs(bool is_truth) const {
  Outputs outputs;
  for (const std::string& name : output_names(direction_)) {
    const DType dtype = is_truth ? DType::fp64 : is_wide(name) ? aux_dtype(dtype_) : dtype_;
    outputs[name] = OwnedTensor(dtype, case_.shape_of(name));
    outputs[name].poison();
  }
  return outputs;
}

std::optional<Tensor> Job::optional_input(const std::string& name) {
  const auto found = case_.inputs.find(name);
  if (found == case_.inputs.end()) return std::nullopt;
  return found->second.tensor();
}

FwdArgs Job::fwd_args(Outputs& outputs) {
  FwdArgs args;
  args.q = case_.inputs.at("q").tensor();
  args.k = case_.inputs.at("k").tensor();
  args.v = case_.inputs.at("v").tensor();
  args.g = case_.inputs.at("g").tensor();
  args.beta = case_.inputs.at("beta").tensor();
  args.initial_state = optional_input("h0");
  args.cu_seqlens = optional_input("cu_seqlens");
  args.scale = case_.scale;
  args.o = outputs.at("o").tensor();
  args.final_state = outputs.at("final_state").tensor();
  return args;
}

BwdArgs Job::bwd_args(Outputs& outputs) {
  BwdArgs args;
  args.q = case_.inputs.at("q").tensor();
  args.k = case_.inputs.at("k").tensor();
  args.v = case_.inputs.at("v").tensor();
  args.g = case_.inputs.at("g").tensor();
  args.beta = case_.inputs.at("beta").tensor();
  args.do_ = case_.inputs.at("do").tensor();
  args.initial_state = optional_input("h0");
  args.final_state_grad = optional_input("dht");
  args.cu_seqlens = optional_input("cu_seqlens");
  args.scale = case_.scale;
  args.dq = outputs.at("dq").tensor();
  args.dk = outputs.at("dk").tensor();
  args.dv = outputs.at("dv").tensor();
  args.dg = outputs.at("dg").tensor();
  args.dbeta = outputs.at("dbeta").tensor();
  args.dh0 = outputs.at("dh0").tensor();
  return args;
}

Result Job::run(const Options& options, Outputs& outputs, double& milliseconds) {
  Options with_layout = options;
  with_layout.state_layout = case_.layout;
  outputs = make_outputs(false);
  const auto begin = std::chrono::steady_clock::now();
  const Result result =
      direction_ == Direction::fwd ? run_fwd(fwd_args(outputs), with_layout) : run_bwd(bwd_args(outputs), with_layout);
  milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

Outputs Job::recurrence(int threads) {
  Options options;
  options.state_layout = case_.layout;
  Outputs outputs = make_outputs(true);
  if (direction_ == Direction::fwd) {
    cpu::recurrence_forward(check_fwd(fwd_args(outputs), options), threads);
  } else {
    cpu::recurrence_backward(check_bwd(bwd_args(outputs), options), threads);
  }
  return outputs;
}

}  // namespace gdr
