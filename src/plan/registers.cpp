#include "plan/registers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "schedule/layout.hpp"

namespace gdr {
namespace {

constexpr int kUnit = 8;  // registers per thread come in eights
constexpr int kLeastMaxnreg = 24;
constexpr int kMostMaxnreg = 240;  // setmaxnreg takes 24..256; ptxas gives at most 240 to a role with this pool
constexpr int kWarpgroup = 4;      // warps; also the quarters of an SM, each with a quarter of its registers

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

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

namespace {

// Roles whose warps share a warpgroup get the same registers. The runs of consecutive roles that fill whole
// warpgroups; empty if the last one does not.
struct Group {
  std::size_t first_role = 0, end_role = 0;
  int threads = 0;
  int registers = 0;
  int ample = 0;
};
std::vector<Group> warpgroups_of(const Kernel& kernel) {
  std::vector<Group> groups;
  Group group;
  for (std::size_t role = 0; role < kernel.roles.size(); ++role) {
    group.threads += kernel.roles[role].warps * 32;
    group.end_role = role + 1;
    if (group.threads % (kWarpgroup * 32) != 0) continue;
    groups.push_back(group);
    group = {role + 1, role + 1, 0, 0, 0};
  }
  if (group.threads != 0) groups.clear();
  return groups;
}

// What is left of the block's registers goes, a unit at a time, first to those that hold fragments up to an ample
// number, then to those that copy, and then to those that hold most.
void deal(std::vector<Group>& groups, int left) {
  const auto can_take = [&](const Group& g) {
    return g.threads * kUnit <= left && g.registers + kUnit <= kMostMaxnreg;
  };
  const auto rank = [&](const Group& g) { return std::tuple(can_take(g), g.registers < g.ample, g.registers); };
  for (;;) {
    Group& group = *std::max_element(groups.begin(), groups.end(),
                                     [&](const Group& a, const Group& b) { return rank(a) < rank(b); });
    if (!can_take(group)) return;
    group.registers += kUnit;
    left -= group.threads * kUnit;
  }
}

}  // namespace

RegisterAllocation allocate_registers(const Kernel& kernel, const Arch& arch) {
  RegisterAllocation result;
  const int threads = kernel.threads();
  const int file = arch.registers_per_sm / kernel.blocks_per_sm;
  // Nine warps on four quarters leave one quarter with three.
  const int threads_held = round_up(threads, kWarpgroup * 32);
  const int uniform = std::min(file / threads_held / kUnit * kUnit, arch.max_registers_per_thread / kUnit * kUnit);
  result.at_launch = uniform;
  if (threads > arch.max_threads_per_block) {
    result.reason = fmt::format("{} threads, {} allows {} a block", threads, arch.name, arch.max_threads_per_block);
    return result;
  }
  int most = 0;
  std::string wants;
  for (const Role& role : kernel.roles) {
    const int live = live_registers(kernel, role);
    const int needed = live == 0 ? kCopyingRegisters : live + kWorkingRegisters;
    result.needed.push_back(needed);
    most = std::max(most, needed);
    wants += fmt::format("{}{} {} x {}", wants.empty() ? "" : ", ", role.name, needed, role.warps * 32);
  }
  if (most <= uniform) {
    result.fits = true;
    result.registers.assign(kernel.roles.size(), uniform);
    return result;
  }
  std::vector<Group> groups = arch.features.setmaxnreg ? warpgroups_of(kernel) : std::vector<Group>{};
  if (groups.empty() || most + kMovingRegisters > kMostMaxnreg) {
    result.reason = fmt::format("registers: {} a thread needed ({}), {} threads get {}", most, wants, threads, uniform);
    return result;
  }
  int sum = 0;
  for (Group& group : groups) {
    const auto begin = result.needed.begin();
    const int needed = *std::max_element(begin + static_cast<std::ptrdiff_t>(group.first_role),
                                         begin + static_cast<std::ptrdiff_t>(group.end_role));
    const bool copies = needed == kCopyingRegisters;
    group.registers = copies ? kLeastMaxnreg : round_up(needed + kMovingRegisters, kUnit);
    group.ample = copies ? kAmpleCopyingRegisters : group.registers + kMovingRegisters;
    sum += group.registers * group.threads;
  }
  if (sum > uniform * threads) {
    result.reason = fmt::format("registers: {} make {} with {} more for each that holds fragments, the block has {}",
                                wants, sum, kMovingRegisters, uniform * threads);
    return result;
  }
  deal(groups, uniform * threads - sum);
  result.fits = result.setmaxnreg = true;
  for (const Group& group : groups)
    for (std::size_t role = group.first_role; role < group.end_role; ++role)
      result.registers.push_back(group.registers);
  return result;
}

}  // namespace gdr
