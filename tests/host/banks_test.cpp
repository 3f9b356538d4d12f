// Bank conflicts of the emitted text, by op. Products read their operands by ldmatrix from swizzled tiles: without a
// conflict, plain or transposed. What remains is printed, worst first.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "../cpu/build_kind.hpp"
#include "support.hpp"

namespace gdr::host {
namespace {

std::map<std::string, BankCounter> counted(const CompiledKernel& compiled) {
  const OneKernel one(compiled, one_sequence());
  std::map<std::string, BankCounter> banks;
  HostOptions options;
  options.banks = &banks;
  test::Tensors tensors = one.alone.tensors;
  const std::optional<Fault> fault = run_on_host(one.alone.plan, one.shape, tensors, options);
  REQUIRE_MESSAGE(!fault, fault->text);
  return banks;
}

}  // namespace

TEST_CASE("products read shared memory without bank conflicts") {
  for (const CompiledKernel& compiled : sorted_kernels()) {
    if (cpu::test::test_is_slow() && compiled.function != "state_bwd") continue;
    const std::string label = label_of(compiled);
    CAPTURE(label);
    const std::map<std::string, BankCounter> banks = counted(compiled);
    const Kernel& kernel = kernel_of(shipped_plan(compiled.arch, compiled.strategy), compiled.function);
    std::vector<std::pair<BankCount, const Op*>> worst;
    BankCount all;
    for (const auto& [index, count] : banks.at(compiled.function).by_op()) {
      const Op& op = kernel.ops[static_cast<std::size_t>(index)];
      worst.emplace_back(count, &op);
      all.accesses += count.accesses;
      all.passes += count.passes;
      all.best += count.best;
      CAPTURE(op.id);
      CHECK(count.passes >= count.best);
      const bool is_mma = op.kind == OpKind::mma && kernel.tile(op.operands[2].name).dtype != DType::fp32;
      if (is_mma) CHECK(count.conflicts() == 0);
    }
    std::sort(worst.begin(), worst.end(),
              [](const auto& x, const auto& y) { return x.first.conflicts() > y.first.conflicts(); });
    std::string table;
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i) {
      const BankCount& count = worst[i].first;
      if (count.conflicts() == 0) break;
      table += fmt::format("  {:<16} {:>8} accesses, {:>8} passes, {:>8} without conflicts ({:.2f} x)\n",
                           worst[i].second->id, count.accesses, count.passes, count.best,
                           static_cast<double>(count.passes) / static_cast<double>(count.best));
    }
    MESSAGE(fmt::format("{}: {} accesses, {} passes, {} without conflicts\n{}", label, all.accesses, all.passes,
                        all.best, table));
  }
}

}  // namespace gdr::host
