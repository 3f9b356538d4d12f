// Every compiled kernel against the interpreter, op by op; whole plans against float64; and that what is compiled is
// what today's plans say.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "../cpu/build_kind.hpp"
#include "../kernels/reference.hpp"
#include "compare.hpp"
#include "support.hpp"

namespace gdr::host {
namespace {

// Sums of up to 4,096 terms in another order than the interpreter's: a few times sqrt(4096) units of 2^-24, of the
// largest value that the tile holds.
constexpr double kOtherOrder = 1.0 / (1 << 18);

// What products, maps and casts publish has the interpreter's bits: both sum the contraction in its order. Sums along
// lanes have another order than sums along rows; prepare's tiles depend on its scan from the beginning.
bool has_the_same_bits(const Kernel& kernel, const Op& op) {
  return op.kind == OpKind::store && kernel.function != "prepare";
}

void check_published(const Kernel& kernel, const PublishedLog& log) {
  std::map<std::string, double> magnitude;  // by tile
  for (const Op& op : kernel.ops)
    if (const auto found = log.by_op().find(op.id); found != log.by_op().end()) {
      double& most = magnitude[op.operands[0].name];
      most = std::max(most, found->second.magnitude);
    }
  for (const Op& op : kernel.ops) {
    const auto found = log.by_op().find(op.id);
    if (found == log.by_op().end()) continue;
    const OpDifference& difference = found->second;
    CAPTURE(op.id);
    CHECK(difference.elements > 0);
    if (has_the_same_bits(kernel, op)) CHECK(difference.different == 0);
    CHECK(difference.largest <= kOtherOrder * magnitude.at(op.operands[0].name));
  }
}

bool is_written(const Kernel& kernel, const std::string& tensor) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(),
                     [&](const Op& op) { return op.kind == OpKind::copy_out && op.operands[0].name == tensor; });
}

// Relative L2, of a tensor that the kernel leaves.
double allowed_error(const Kernel& kernel, const TensorSpec& tensor) {
  const bool depends_on_sums = tensor.name == "dg" || tensor.name == "dbeta" || kernel.function == "prepare";
  if (!depends_on_sums) return 0;
  // A difference of 2^-20 takes one element in a thousand across a boundary of bf16's rounding, by 2^-8.
  constexpr double kSomeRoundedTheOtherWay = 1e-4;
  return tensor.dtype == DType::fp32 ? kOtherOrder : kSomeRoundedTheOtherWay;
}

}  // namespace

TEST_CASE("the compiled texts are those of today's plans, and all of a plan for sm_120") {
  for (const CompiledKernel& compiled : sorted_kernels()) {
    CAPTURE(label_of(compiled));
    const Plan& plan = shipped_plan(compiled.arch, compiled.strategy);
    const Kernel& kernel = kernel_of(plan, compiled.function);
    CHECK(compiled.name == kernel.name);
    CHECK(compiled.text_hash == text_hash(host_text(plan, kernel)));
  }
  const std::vector<CompiledKernel> all = sorted_kernels();
  for (const char* strategy : {"fused", "chunk_parallel"})
    for (const Kernel& kernel : shipped_plan("sm_120", strategy).kernels) {
      CAPTURE(kernel.name);
      CHECK(std::any_of(all.begin(), all.end(), [&](const CompiledKernel& k) { return k.name == kernel.name; }));
    }
}

TEST_CASE("every kernel publishes and leaves what the interpreter does") {
  for (const CompiledKernel& compiled : sorted_kernels()) {
    const bool is_large = compiled.function == "gradients" || compiled.arch != "sm_120";
    if (cpu::test::test_is_slow() && is_large) continue;
    const std::string label = label_of(compiled);
    CAPTURE(label);
    const OneKernel one(compiled, one_sequence());
    const Plan& plan = one.alone.plan;
    PublishedLog log(plan, one.shape);
    test::Tensors expected = one.alone.tensors, found = one.alone.tensors;
    InterpOptions interpreted;
    interpreted.observer = [&](const StepView& step) { log.expect(step); };
    interpret(plan, one.shape, expected, interpreted);
    HostOptions options;
    options.engine.exponential = Exponential::library;
    options.observer = [&](const Kernel& kernel, const Published& published) { log.compare(kernel, published); };
    const std::optional<Fault> fault = run_on_host(plan, one.shape, found, options);
    REQUIRE_MESSAGE(!fault, fault->text);
    check_published(one.kernel(), log);
    for (const TensorSpec& tensor : plan.tensors) {
      if (!is_written(one.kernel(), tensor.name)) continue;
      CAPTURE(tensor.name);
      const double error =
          test::relative_error(test::values(found.at(tensor.name)), test::values(expected.at(tensor.name)));
      CHECK(error <= allowed_error(one.kernel(), tensor));
    }
  }
}

// With the GPU's exponential. Errors against float64 do not depend on who executes the plan, but for the noise of
// rounding the other way here and there.
TEST_CASE("whole plans: several sequences and heads, a group of v-heads, against float64") {
  for (const char* strategy : {"fused", "chunk_parallel"})
    for (const double gate_scale : {1.0, 0.04}) {
      if (cpu::test::test_is_slow() && (strategy != std::string("fused") || gate_scale == 1.0)) continue;
      CAPTURE(strategy);
      CAPTURE(gate_scale);
      const Plan& plan = shipped_plan("sm_120", strategy);
      test::Case c = fitted(gate_scale == 1.0 || cpu::test::test_is_slow() ? one_sequence() : two_sequences(), plan);
      c.gate_scale = gate_scale;
      const test::Tensors inputs = test::make_inputs(c, 2);
      const auto expected = test::reference(c, inputs);
      InterpOptions interpreted;
      interpreted.threads = 2;
      const test::Errors of_interpreter = test::errors_of(test::run_plan(plan, c, inputs, interpreted), expected);
      test::Tensors found = inputs;
      found["dh0"];
      HostOptions options;
      options.engine.seed = 5;
      options.engine.landing = Landing::random;
      const std::optional<Fault> fault = run_on_host(plan, c.launch(), found, options);
      REQUIRE_MESSAGE(!fault, fault->text);
      const test::Errors errors = test::errors_of(found, expected);
      MESSAGE(fmt::format("{}, gates x {}: host {}; interpreter {}", strategy, gate_scale, test::table_row(errors),
                          test::table_row(of_interpreter)));
      for (const std::string& name : test::kGradients) {
        CAPTURE(name);
        CHECK(errors.at(name) <= 1.05 * of_interpreter.at(name));
        CHECK(errors.at(name) <= 0.005);
      }
    }
}

TEST_CASE("bits do not depend on the order of threads or on when copies land") {
  CompiledKernel compiled;
  compiled.arch = "sm_120";
  compiled.strategy = "fused";
  compiled.function = cpu::test::test_is_slow() ? "state_fwd" : "bwd_fused";
  const OneKernel one(compiled, one_sequence());
  std::optional<test::Tensors> first;
  for (const Order order : {Order::random, Order::role_ahead, Order::role_behind})
    for (const Landing landing : {Landing::late, Landing::random}) {
      HostOptions options;
      options.facts = &*one.facts;
      options.engine.order = order;
      options.engine.landing = landing;
      options.engine.seed = static_cast<std::uint64_t>(order) * 3 + static_cast<std::uint64_t>(landing) + 1;
      test::Tensors found = one.alone.tensors;
      const std::optional<Fault> fault = run_on_host(one.alone.plan, one.shape, found, options);
      REQUIRE_MESSAGE(!fault, fault->text);
      if (!first) first = found;
      for (const auto& entry : found) CHECK_MESSAGE(entry.second.bytes == first->at(entry.first).bytes, entry.first);
    }
}

}  // namespace gdr::host
