#include "plan/registers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

constexpr int kUnit = 8;  // registers per thread come in eights
constexpr int kLeastMaxnreg = 24;
constexpr int kMostMaxnreg = 240;  // setmaxnreg takes 24..256; ptxas gives at most 240 to a role with this pool
constexpr int kWarpgroup = 4;

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

namespace {

// Does the operation leave nothing of the tile's former value?
bool overwrites(const Op& op, const Tile& tile) {
  const auto whole = [&](const Operand& o) {
    return !o.is_tensor && o.name == tile.name && o.access == Access::write && o.rows == Range{0, tile.rows} &&
           o.cols == Range{0, tile.cols};
  };
  return std::any_of(op.operands.begin(), op.operands.end(), whole);
}

bool needs(const Op& op, const Tile& tile) {
  const auto reads = [&](const Operand& o) { return !o.is_tensor && o.name == tile.name && o.access != Access::write; };
  return std::any_of(op.operands.begin(), op.operands.end(), reads);
}

bool touches(const Op& op, const Tile& tile) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& o) { return !o.is_tensor && o.name == tile.name; });
}

}  // namespace

int live_registers(const Kernel& kernel, const Role& role) {
  std::vector<int> live(role.body.size(), 0);
  for (const Tile& tile : kernel.tiles) {
    if (tile.space != Space::reg || tile.role != role.name) continue;
    // Backwards over the body, twice where it is a loop: what the next iteration needs is alive at the end of this one.
    bool is_live = false;
    for (int pass = kernel.loop == LoopKind::once ? 1 : 0; pass < 2; ++pass)
      for (std::size_t at = role.body.size(); at-- > 0;) {
        const Op& op = kernel.ops[static_cast<std::size_t>(role.body[at].op)];
        const bool live_after = is_live;
        is_live = needs(op, tile) || (is_live && !overwrites(op, tile));
        // A tile written piece by piece is alive from its first piece; the pieces are not told apart.
        if (pass == 1 && (live_after || touches(op, tile))) live[at] += registers_per_thread(tile);
      }
  }
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

RegisterAllocation allocate_registers(const Kernel& kernel, const Arch& arch) {
  RegisterAllocation result;
  const int threads = kernel.threads();
  const int file = arch.registers_per_sm / kernel.blocks_per_sm;
  const int uniform = std::min(file / threads / kUnit * kUnit, arch.max_registers_per_thread / kUnit * kUnit);
  if (threads > arch.max_threads_per_block) {
    result.reason = fmt::format("{} threads, {} allows {} a block", threads, arch.name, arch.max_threads_per_block);
    return result;
  }
  int most = 0, sum = 0;
  bool whole_warpgroups = true;
  std::string wants;
  for (const Role& role : kernel.roles) {
    const int live = live_registers(kernel, role);
    const int needed = live == 0 ? kCopyingRegisters : live + kWorkingRegisters;
    result.needed.push_back(needed);
    most = std::max(most, needed);
    sum += std::max(kLeastMaxnreg, round_up(needed, kUnit)) * role.warps * 32;
    whole_warpgroups &= role.warps % kWarpgroup == 0;
    wants += fmt::format("{}{} {} x {}", wants.empty() ? "" : ", ", role.name, needed, role.warps * 32);
  }
  if (most <= uniform) {
    result.fits = true;
    result.registers.assign(kernel.roles.size(), uniform);
    return result;
  }
  const bool can_move = arch.features.setmaxnreg && whole_warpgroups && most <= kMostMaxnreg;
  if (can_move && sum <= uniform * threads) {
    result.fits = result.setmaxnreg = true;
    for (const int needed : result.needed) result.registers.push_back(std::max(kLeastMaxnreg, round_up(needed, kUnit)));
    return result;
  }
  result.reason =
      can_move ? fmt::format("registers: {} make {}, the block has {}", wants, sum, uniform * threads)
               : fmt::format("registers: {} a thread needed ({}), {} threads get {}", most, wants, threads, uniform);
  return result;
}

}  // namespace gdr
