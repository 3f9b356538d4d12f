// Runs the kernels of a plan by their compiled texts, on tensors as the interpreter takes them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine.hpp"
#include "interp/interp.hpp"

namespace gdr::host {

struct HostOptions {
  EngineOptions engine;
  const KernelFacts* facts = nullptr;  // of the plan's only kernel, where many runs share them; else made anew
  std::map<std::string, BankCounter>* banks = nullptr;  // by function; asks for counting
  std::function<void(const Kernel&, const Published&)> observer;
  int added_tokens = 0;  // the kernels are told of so many more tokens than there are
};

// Launches the plan's kernels in order, their blocks in random order. Sequences must lie one behind the other from
// token 0 on and be equally long, as the texts expect. tensors in: all inputs, and the optional tensors that the launch
// has; out, if there is no fault: all tensors that are there. Rows between sequences and tensors do not exist for the
// kernels. An output that is not written whole is a fault.
std::optional<Fault> run_on_host(const Plan& plan, const LaunchShape& shape, std::map<std::string, HostTensor>& tensors,
                                 const HostOptions& options = {});

}  // namespace gdr::host
