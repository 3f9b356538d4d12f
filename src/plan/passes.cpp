#include "plan/passes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/dependences.hpp"
#include "plan/footprint.hpp"
#include "plan/happens_before.hpp"
#include "plan/pack.hpp"
#include "plan/synchronise.hpp"
#include "schedule/layout.hpp"

namespace gdr {
namespace {

constexpr int kTileAlignment = 128;  // swizzled rows repeat after 128 bytes
constexpr int kVectorAlignment = 16;
constexpr int kBarrierBytes = 8;

int align_up(int value, int alignment) { return (value + alignment - 1) / alignment * alignment; }

struct Placement {
  int tiles_end = 0;
  int lower_bound_bytes = 0;
  bool is_optimal = false;
};

// Leaves the tiles where they are if the bound says that they cannot fit.
Placement place_tiles(Kernel& kernel, const ConflictGraph& all_conflicts, int limit_bytes) {
  std::vector<std::size_t> smem;
  for (std::size_t t = 0; t < kernel.tiles.size(); ++t)
    if (kernel.tiles[t].space == Space::smem) smem.push_back(t);
  std::vector<PackItem> items;
  ConflictGraph conflicts(smem.size(), std::vector<bool>(smem.size()));
  for (std::size_t i = 0; i < smem.size(); ++i) {
    const Tile& tile = kernel.tiles[smem[i]];
    items.push_back({tile_bytes(tile), tile.smem.xor_mask > 0 ? kTileAlignment : kVectorAlignment});
    for (std::size_t j = 0; j < smem.size(); ++j) conflicts[i][j] = all_conflicts[smem[i]][smem[j]];
  }
  const int least = heaviest_clique(items, conflicts);
  if (least > limit_bytes) return {least, least, false};
  const Packing packing = pack(items, conflicts);
  for (std::size_t i = 0; i < smem.size(); ++i) kernel.tiles[smem[i]].offset_bytes = packing.offsets[i];
  return {packing.total_bytes, packing.lower_bound_bytes, packing.is_proven_optimal};
}

std::string count_sharing(const Kernel& kernel, const ConflictGraph& conflicts) {
  int may_share = 0, pairs = 0;
  for (std::size_t i = 0; i < kernel.tiles.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (kernel.tiles[i].space == Space::smem && kernel.tiles[j].space == Space::smem)
        ++pairs, may_share += !conflicts[i][j];
  return fmt::format("{} of {} pairs of tiles may share bytes", may_share, pairs);
}

std::string too_large(int bytes, int limit) {
  return fmt::format("{} B of shared memory, {} B too many", bytes, bytes - limit);
}

// The most bytes of tiles that hold values at one operation: no way of sharing can need less.
int most_alive_bytes(const Kernel& kernel, const std::vector<std::vector<Life>>& lives) {
  std::vector<int> alive(kernel.ops.size(), 0);
  for (std::size_t t = 0; t < lives.size(); ++t)
    for (const Life& life : lives[t])
      for (int op = life.first; op <= life.last; ++op)
        alive[static_cast<std::size_t>(op)] += tile_bytes(kernel.tiles[t]);
  return *std::max_element(alive.begin(), alive.end());
}

int mbarrier_bytes(const Kernel& kernel) {
  int bytes = 0;
  for (const Barrier& barrier : kernel.barriers)
    if (barrier.kind == BarrierKind::mbarrier) bytes += barrier.stages * kBarrierBytes;
  return bytes;
}

}  // namespace

PassResult run_passes(Kernel& kernel, const Arch& arch, const PassOptions& options) {
  PassResult result;
  const auto now = [&] { return options.clock_us ? options.clock_us() : 0.0; };
  double begun = now();
  const auto note = [&](const char* pass, std::string summary) {
    const double done = now();
    result.notes.push_back({pass, done - begun, std::move(summary)});
    begun = done;
  };

  result.registers = allocate_registers(kernel, arch);
  note("registers", result.registers.fits
                        ? fmt::format("{} threads, {}", kernel.threads(),
                                      result.registers.setmaxnreg ? "one count a role" : "one count for all")
                        : result.registers.reason);
  if (!result.registers.fits) {
    result.reason = result.registers.reason;
    return result;
  }
  kernel.setmaxnreg = result.registers.setmaxnreg;
  kernel.launch_registers = result.registers.at_launch;
  for (std::size_t r = 0; r < kernel.roles.size(); ++r) kernel.roles[r].registers = result.registers.registers[r];

  const std::vector<Footprint> touched = footprints(kernel);
  std::size_t cells = 0;
  for (const Footprint& footprint : touched) cells += footprint.uses.size();
  note("footprints",
       fmt::format("{} cells of {} bytes touched by {} operations", cells, kCellBytes, kernel.ops.size()));

  const std::vector<std::vector<Life>> lives = tile_lives(kernel, touched);
  const int least = most_alive_bytes(kernel, lives);
  if (least > options.smem_limit_bytes) {
    result.smem_bytes = result.lower_bound_bytes = least;
    result.reason = too_large(least, options.smem_limit_bytes);
    note("conflicts", fmt::format("{} bytes are alive at once", least));
    return result;
  }

  const int num_roles = static_cast<int>(kernel.roles.size());
  const int distance = max_stages(kernel);
  const std::vector<BodyOp> ops = body_ops(kernel);
  const std::vector<Dependence> own = dependences(kernel, touched, separate_bases(kernel));
  const Synchronisation unshared = order_dependences(ops, num_roles, own, distance);
  note("dependences", fmt::format("{} between warps; {} waits and {} meetings order them", own.size(),
                                  unshared.waits.size(), unshared.meetings.size()));

  const HappensBefore order(ops, num_roles, unshared.waits, unshared.meetings, distance + 1);
  const Kernel unplaced = kernel;
  for (const Aliasing aliasing : {Aliasing::none, Aliasing::free, Aliasing::matrices, Aliasing::any}) {
    if (aliasing > options.aliasing) break;
    kernel = unplaced;
    const ConflictGraph conflicts = conflict_graph(kernel, lives, order, aliasing);
    const Placement placement = place_tiles(kernel, conflicts, options.smem_limit_bytes);
    result.aliasing = aliasing;
    result.lower_bound_bytes = placement.lower_bound_bytes;
    result.packing_is_optimal = placement.is_optimal;
    result.smem_bytes = placement.tiles_end;
    note("conflicts", fmt::format("aliasing {}: {}", to_string(aliasing), count_sharing(kernel, conflicts)));
    note("pack", fmt::format("{} bytes, lower bound {}", placement.tiles_end, placement.lower_bound_bytes));
    if (placement.tiles_end > options.smem_limit_bytes) continue;

    const std::vector<Dependence> shared = dependences(kernel, touched, packed_bases(kernel));
    const Synchronisation needed = order_dependences(ops, num_roles, shared, distance);
    place_barriers(kernel, needed, shared);
    kernel.barrier_offset_bytes = align_up(placement.tiles_end, kBarrierBytes);
    kernel.smem_bytes = kernel.barrier_offset_bytes + mbarrier_bytes(kernel);
    result.smem_bytes = kernel.smem_bytes;
    note("synchronise", fmt::format("{} dependences; {} waits, {} meetings, {} barriers", shared.size(),
                                    needed.waits.size(), needed.meetings.size(), kernel.barriers.size()));
    result.fits = kernel.smem_bytes <= options.smem_limit_bytes;
    if (result.fits) return result;
  }
  result.reason = too_large(result.smem_bytes, options.smem_limit_bytes);
  return result;
}

}  // namespace gdr
