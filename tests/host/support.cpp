#include "support.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace gdr::host {
namespace {

test::Case sequences(int count, int k_heads) {
  test::Case c;
  c.name = "two chunks and a ragged tail";
  c.lengths.assign(static_cast<std::size_t>(count), 0);  // of the plan's chunk
  c.k_heads = k_heads;
  c.gate_scale = 0.04;
  c.pad = 0;
  return c;
}

}  // namespace

std::vector<CompiledKernel> sorted_kernels() {
  std::vector<CompiledKernel> kernels = compiled_kernels();
  const auto key = [](const CompiledKernel& k) { return std::tie(k.arch, k.strategy, k.function); };
  std::sort(kernels.begin(), kernels.end(),
            [&](const CompiledKernel& x, const CompiledKernel& y) { return key(x) < key(y); });
  return kernels;
}

std::string label_of(const CompiledKernel& compiled) {
  return compiled.arch + " " + compiled.strategy + " " + compiled.function;
}

test::Case one_sequence() { return sequences(1, 1); }
test::Case two_sequences() { return sequences(2, 2); }

test::Case fitted(test::Case c, const Plan& plan) {
  constexpr int kTail = 5;
  c = test::for_plan(c, plan);
  for (int& length : c.lengths) length = 2 * plan.chunk + kTail;
  return c;
}

OneKernel::OneKernel(const CompiledKernel& compiled, const test::Case& shape_of) {
  const Plan& plan = shipped_plan(compiled.arch, compiled.strategy);
  c = fitted(shape_of, plan);
  shape = c.launch();
  InterpOptions options;
  options.threads = 2;
  alone = test::alone(plan, compiled.function, test::run_plan(plan, c, test::make_inputs(c, 1), options));
  facts.emplace(kernel());
}

std::optional<Fault> fault_of(const OneKernel& one, HostOptions options, int runs) {
  constexpr std::array kOrders = {Order::random, Order::role_ahead, Order::role_behind};
  constexpr std::array kLandings = {Landing::late, Landing::early, Landing::random};
  if (options.facts == nullptr) options.facts = &*one.facts;
  for (int run = 0; run < runs; ++run) {
    options.engine.seed = static_cast<std::uint64_t>(run + 1);
    options.engine.order = kOrders[static_cast<std::size_t>(run) % kOrders.size()];
    options.engine.landing = kLandings[static_cast<std::size_t>(run / 3) % kLandings.size()];
    test::Tensors tensors = one.alone.tensors;
    if (std::optional<Fault> fault = run_on_host(one.alone.plan, one.shape, tensors, options)) return fault;
  }
  return std::nullopt;
}

}  // namespace gdr::host
