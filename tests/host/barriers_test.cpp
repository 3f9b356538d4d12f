// No barrier of the plans can be left out of the text: without any single wait, arrival or meeting a host execution
// finds a fault.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>

#include "../cpu/build_kind.hpp"
#include "emit/ops.hpp"
#include "support.hpp"

namespace gdr::host {
namespace {

bool is_barrier_op(const Op& op) {
  return op.kind == OpKind::wait || op.kind == OpKind::arrive || op.kind == OpKind::sync;
}

// The text without op `index`. A barrier at which others still arrive expects only those.
HostOptions without(const Kernel& kernel, int index) {
  HostOptions options;
  options.engine.skipped_ops = {index};
  const Op& op = kernel.ops[static_cast<std::size_t>(index)];
  if (op.kind != OpKind::arrive) return options;
  int all = 0;
  for (const Op& other : kernel.ops)
    if (other.kind == OpKind::arrive && other.barrier == op.barrier) ++all;
  const Role& role = kernel.role_of(index);
  if (all > 1) options.engine.added_arrivals[op.barrier] = -role.warps * arrivals_of_warp(kernel, role, op);
  return options;
}

}  // namespace

TEST_CASE("no barrier can be left out of the text") {
  const bool is_slow = cpu::test::test_is_slow();
  for (const CompiledKernel& compiled : sorted_kernels()) {
    if (is_slow && compiled.function != "prepare") continue;
    const std::string label = label_of(compiled);
    CAPTURE(label);
    const OneKernel one(compiled, one_sequence());
    const Kernel& kernel = one.kernel();
    const std::optional<Fault> whole = fault_of(one, {}, 3);
    CHECK_MESSAGE(!whole, whole->text);
    const auto begin = std::chrono::steady_clock::now();
    int removed = 0;
    std::string table;
    for (int i = 0; i < static_cast<int>(kernel.ops.size()); ++i) {
      const Op& op = kernel.ops[static_cast<std::size_t>(i)];
      if (!is_barrier_op(op)) continue;
      ++removed;
      const std::optional<Fault> fault = fault_of(one, without(kernel, i), 9);
      CHECK_MESSAGE(fault, "without " << op.id << " nothing was seen");
      if (fault) table += fmt::format("  {:<32} {}\n", op.id, fault->text.substr(0, 300));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    MESSAGE(fmt::format("{}: {} removals, {:.1f} s\n{}", label, removed, took.count(), table));
  }
}

}  // namespace gdr::host
