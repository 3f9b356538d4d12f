// Faults planted into the emitted text of whole kernels: each is found, and told with its tile, op and role.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "../cpu/build_kind.hpp"
#include "schedule/layout.hpp"
#include "schedule/memory_map.hpp"
#include "support.hpp"

namespace gdr::host {
namespace {

constexpr int kRuns = 9;

const Op& op_at(const Kernel& kernel, const Role& role, std::size_t step) {
  return kernel.ops[static_cast<std::size_t>(role.body[step].op)];
}

bool touches(const Kernel& kernel, const std::string& op_id, const std::string& tile) {
  const auto op = std::find_if(kernel.ops.begin(), kernel.ops.end(), [&](const Op& o) { return o.id == op_id; });
  return op != kernel.ops.end() && std::any_of(op->operands.begin(), op->operands.end(), [&](const Operand& operand) {
           return !operand.is_tensor && operand.name == tile;
         });
}

// Calls visit(role, step) for every step of a body.
template <typename Visit>
void for_steps(const Kernel& kernel, const Visit& visit) {
  for (const Role& role : kernel.roles)
    for (std::size_t step = 0; step < role.body.size(); ++step) visit(role, step);
}

// The kernels with all kinds of barriers; one of them where tests are slow.
std::deque<OneKernel> kernels() {
  std::deque<OneKernel> result;
  for (const CompiledKernel& compiled : sorted_kernels()) {
    const std::string& function = compiled.function;
    if (compiled.arch != "sm_120" || (function != "bwd_fused" && function != "state_bwd")) continue;
    if (cpu::test::test_is_slow() && function == "bwd_fused") continue;
    result.emplace_back(compiled, one_sequence());
  }
  return result;
}

}  // namespace

TEST_CASE("a tile that is too small is found at every tile") {
  for (const OneKernel& one : kernels()) {
    const Kernel& kernel = one.kernel();
    for (const Tile& tile : kernel.tiles) {
      if (tile.space != Space::smem) continue;
      int last = 0;  // byte of the tile where its last element begins
      for (int row = 0; row < tile.rows; ++row)
        for (int col = 0; col < tile.cols; ++col)
          if (element_exists(tile, row, col))
            last = std::max(last, element_byte(tile, tile.stages - 1, row, col) - tile.offset_bytes);
      const KernelFacts facts(kernel, {{tile.name, last}});
      HostOptions options;
      options.facts = &facts;
      const std::optional<Fault> fault = fault_of(one, options, 1);
      CAPTURE(tile.name);
      REQUIRE(fault);
      CAPTURE(fault->text);
      CHECK(fault->kind == FaultKind::bounds);
      CHECK(fault->tile == tile.name);
      CHECK(touches(kernel, fault->op, tile.name));
      CHECK_FALSE(fault->role.empty());
    }
  }
}

TEST_CASE("a wrong count is found at every barrier") {
  for (const OneKernel& one : kernels())
    for (const Barrier& barrier : one.kernel().barriers)
      for (const int sign : {1, -1}) {
        HostOptions options;
        options.engine.added_arrivals[barrier.name] = barrier.kind == BarrierKind::named ? 32 * sign : sign;
        const std::optional<Fault> fault = fault_of(one, options, kRuns);
        CAPTURE(barrier.name);
        CAPTURE(sign);
        REQUIRE(fault);
        CAPTURE(fault->text);
        CHECK((fault->kind == FaultKind::deadlock || fault->kind == FaultKind::phase ||
               fault->kind == FaultKind::race || fault->kind == FaultKind::barrier ||
               fault->kind == FaultKind::unwritten));
        CHECK_FALSE(fault->role.empty());
        CHECK_FALSE(fault->op.empty());
        if (fault->kind == FaultKind::deadlock) CHECK(fault->text.find("nobody can go on") != std::string::npos);
      }
}

TEST_CASE("a stage that is filled again too early is found at every wait of a loader") {
  for (const OneKernel& one : kernels()) {
    const Kernel& kernel = one.kernel();
    int planted = 0;
    for_steps(kernel, [&](const Role& role, std::size_t step) {
      if (step + 1 == role.body.size() || op_at(kernel, role, step).kind != OpKind::wait) return;
      const Op& copy = op_at(kernel, role, step + 1);
      if (copy.kind != OpKind::copy_in) return;
      ++planted;
      HostOptions options;
      options.engine.skipped_ops = {role.body[step].op};
      const std::optional<Fault> fault = fault_of(one, options, kRuns);
      CAPTURE(copy.id);
      REQUIRE(fault);
      CAPTURE(fault->text);
      CHECK(fault->kind == FaultKind::race);
      // The refill is one of the two parties.
      CHECK(fault->text.find("role " + role.name + ",") != std::string::npos);
      CHECK_FALSE(fault->tile.empty());
      CHECK(touches(kernel, fault->op, fault->tile));
    });
    CHECK(planted > 0);
  }
}

TEST_CASE("bytes that nobody wrote are found where a copy is left out") {
  for (const OneKernel& one : kernels()) {
    const Kernel& kernel = one.kernel();
    std::vector<std::string> alone;  // tiles whose parts share their bytes with nothing
    for (const TileFacts& facts : memory_map(kernel))
      if (facts.aliases.empty() && facts.tile->parts == facts.tile->resident) alone.push_back(facts.tile->name);
    int planted = 0;
    for_steps(kernel, [&](const Role& role, std::size_t step) {
      const Op& copy = op_at(kernel, role, step);
      if (copy.kind != OpKind::copy_in) return;
      const std::string tile = copy.operands[0].name;
      if (std::find(alone.begin(), alone.end(), tile) == alone.end()) return;
      ++planted;
      HostOptions options;
      options.engine.skipped_ops = {role.body[step].op};
      const std::optional<Fault> fault = fault_of(one, options, 1);
      CAPTURE(copy.id);
      REQUIRE(fault);
      CAPTURE(fault->text);
      CHECK(fault->kind == FaultKind::unwritten);
      CHECK(fault->tile == tile);
      CHECK(touches(kernel, fault->op, tile));
    });
    CHECK(planted > 0);
  }
}

// Behind a product the lanes have read through ldmatrix, which orders nothing: only the arrival's own warp_sync lets
// lane 0 speak for them.
TEST_CASE("an arrival of lane 0 without its warp_sync is found behind every product") {
  int planted = 0;
  for (const OneKernel& one : kernels()) {
    const Kernel& kernel = one.kernel();
    for_steps(kernel, [&](const Role& role, std::size_t step) {
      const Op& arrive = op_at(kernel, role, step);
      if (step == 0 || arrive.kind != OpKind::arrive || arrive.after_copies) return;
      if (op_at(kernel, role, step - 1).kind != OpKind::mma) return;
      ++planted;
      HostOptions options;
      options.engine.unsynced_ops = {role.body[step].op};
      const std::optional<Fault> fault = fault_of(one, options, kRuns);
      CAPTURE(arrive.id);
      REQUIRE(fault);
      CAPTURE(fault->text);
      CHECK(fault->kind == FaultKind::race);
      CHECK(fault->text.find("role " + role.name + ",") != std::string::npos);
      CHECK(fault->text.find("reads it") != std::string::npos);
    });
  }
  CHECK(planted > 0);
}

TEST_CASE("a row of a tensor that does not exist is found where it is touched") {
  for (const OneKernel& one : kernels()) {
    HostOptions options;
    options.added_tokens = 1;  // the tail becomes longer than the tensors are
    const std::optional<Fault> fault = fault_of(one, options, 1);
    REQUIRE(fault);
    CAPTURE(fault->text);
    CHECK(fault->kind == FaultKind::global);
    CHECK(fault->text.find("the row does not exist") != std::string::npos);
    CHECK_FALSE(fault->role.empty());
    CHECK_FALSE(fault->op.empty());
  }
}

}  // namespace gdr::host
