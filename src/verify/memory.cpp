#include "verify/memory.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace gdr::verifying {

MemoryCheck::MemoryCheck(const KernelIndex& index) : index_(index), cells_(*index.kernel) {
  list_accesses();
  cells_.cut();
  find_expected_writers();
  const auto num_cells = static_cast<std::size_t>(cells_.num_cells());
  const auto num_warps = static_cast<std::size_t>(index.num_warps);
  last_write_.assign(num_cells, {});
  readers_.assign(num_cells, 0);
  last_read_.assign(num_cells * num_warps, -1);
  steps_of_warp_.assign(num_warps, 0);
  fences_.assign(num_warps, {});
}

void MemoryCheck::list_accesses() {
  const Kernel& kernel = *index_.kernel;
  for (const Role& role : kernel.roles) {
    auto& of_role = accesses_.emplace_back();
    for (const Step& step : role.body) {
      const Op& op = at(kernel.ops, step.op);
      auto& of_step = of_role.emplace_back();
      for (int warp = 0; warp < role.warps; ++warp) {
        auto& of_warp = of_step.emplace_back();
        for (Touch& touch : smem_touches(index_, step, warp)) {
          const Operand& operand = at(op.operands, touch.operand);
          SmemAccess access;
          access.op = step.op;
          access.operand = touch.operand;
          access.tile = at(at(index_.ops, step.op).operands, touch.operand).tile;
          access.part = operand.part;
          access.reads = operand.access != Access::write;
          access.writes = operand.access != Access::read;
          access.lands_later = op.kind == OpKind::copy_in && op.mechanism != Mechanism::plain;
          access.async_proxy = operand.proxy == Proxy::async;
          for (int copy = 0; copy < at(kernel.tiles, access.tile).stages; ++copy)
            access.copies.push_back({cells_.add(access.tile, copy, touch.area), kNothing, {}});
          of_warp.push_back(std::move(access));
        }
      }
    }
  }
}

// Runs the body's ops one by one, for each copy of each tile, on memory that nothing else uses.
void MemoryCheck::find_expected_writers() {
  const Kernel& kernel = *index_.kernel;
  std::vector<std::vector<SmemAccess*>> of_op(kernel.ops.size());
  for (auto& of_role : accesses_)
    for (auto& of_step : of_role)
      for (auto& of_warp : of_step)
        for (SmemAccess& access : of_warp) at(of_op, access.op).push_back(&access);
  std::vector<std::vector<SmemAccess*>> of_tile(kernel.tiles.size());  // in the order of the ops, reads before writes
  for (auto& accesses : of_op) {
    std::stable_sort(accesses.begin(), accesses.end(),
                     [](const SmemAccess* a, const SmemAccess* b) { return a->writes < b->writes; });
    for (SmemAccess* access : accesses) at(of_tile, access->tile).push_back(access);
  }
  std::vector<int> last_writer;
  for (int t = 0; t < count_of(kernel.tiles); ++t) {
    const Tile& tile = at(kernel.tiles, t);
    for (int copy = 0; copy < tile.stages && !at(of_tile, t).empty(); ++copy) {
      last_writer.assign(static_cast<std::size_t>(cells_.num_cells() * tile.parts), kNothing);
      for (SmemAccess* access : at(of_tile, t)) {
        Copy& here = at(access->copies, copy);
        if (access->reads) expect(*access, here, last_writer);
        if (!access->writes) continue;
        const int base = access->part * cells_.num_cells();
        for (const int cell : cells_.cells(here.footprint)) at(last_writer, base + cell) = access->op;
      }
    }
  }
}

void MemoryCheck::expect(const SmemAccess& access, Copy& copy, const std::vector<int>& last_writer) {
  const int base = access.part * cells_.num_cells();
  std::vector<int> writers;
  for (const int cell : cells_.cells(copy.footprint)) writers.push_back(at(last_writer, base + cell));
  if (writers.empty()) return;
  copy.expected = writers.front();
  if (std::any_of(writers.begin(), writers.end(), [&](int w) { return w != copy.expected; }))
    copy.expected_each = std::move(writers);
}

void MemoryCheck::on_step(const StepRun& run) {
  const Clock& clock = *run.clock;
  const auto own = static_cast<std::size_t>(run.block_warp);
  const int number = at(steps_of_warp_, run.block_warp)++;
  const Step& step = at(index_.role(run.role).body, run.step);
  if (index_.op(step.op).kind == OpKind::fence)
    fences_[own].push_back({number, clock.at[own], clock.at[static_cast<std::size_t>(copies_of(run.block_warp))]});
  for (const SmemAccess& access : at(at(at(accesses_, run.role), run.step), run.warp)) {
    Event event{&access, run.role, run.warp, run.block_warp, run.iteration, run.block_warp, clock.at[own], number};
    if (access.lands_later) {
      event.component = copies_of(run.block_warp);
      event.epoch = run.landing;
    }
    events_.push_back(event);
    const int id = count_of(events_) - 1;
    const Copy& copy = at(access.copies, run.iteration % count_of(access.copies));
    if (access.reads) read(id, copy, clock);
    if (access.writes) write(id, copy, clock);
    ++accesses_checked_;
  }
}

void MemoryCheck::read(int id, const Copy& copy, const Clock& clock) {
  const Event& own = event(id);
  const std::span<const int> cells = cells_.cells(copy.footprint);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int cell = cells[i];
    const LastWrite& last = at(last_write_, cell);
    const int expected = copy.expected_each.empty() ? copy.expected : copy.expected_each[i];
    if (last.event >= 0 && !clock.knows(last.component, last.epoch)) {
      record_race(last.event, false, id, true, cell);
    } else if (last.event < 0 || last.op != expected || last.iteration != own.iteration) {
      misses_.push_back({last.event, id, cell, expected});
    }
    if (own.access->async_proxy) check_fence(id, cell, last, clock);
    at(readers_, cell) |= 1U << own.block_warp;
    at(last_read_, cell * index_.num_warps + own.block_warp) = id;
  }
}

void MemoryCheck::write(int id, const Copy& copy, const Clock& clock) {
  const Event& own = event(id);
  for (const int cell : cells_.cells(copy.footprint)) {
    LastWrite& last = at(last_write_, cell);
    if (last.event >= 0 && !clock.knows(last.component, last.epoch)) record_race(last.event, false, id, false, cell);
    for (std::uint32_t rest = at(readers_, cell); rest != 0; rest &= rest - 1) {
      const int reader = std::countr_zero(rest);
      const int met = at(last_read_, cell * index_.num_warps + reader);
      if (!clock.knows(reader, event(met).epoch)) record_race(met, true, id, false, cell);
    }
    if (own.access->async_proxy) check_fence(id, cell, last, clock);
    at(readers_, cell) = 0;
    last = {id, own.component, own.epoch, own.access->op, own.iteration};
  }
}

// What was written through the generic proxy is visible to the asynchronous one only behind a fence of the writer that
// stands after the write (for a copy: after the writer knows that it has landed) and is known to the reader.
void MemoryCheck::check_fence(int id, int cell, const LastWrite& last, const Clock& clock) {
  if (last.event < 0 || event(last.event).access->async_proxy) return;
  const Event& written = event(last.event);
  const std::vector<FencePoint>& fences = at(fences_, written.block_warp);
  const bool is_fenced = std::any_of(fences.begin(), fences.end(), [&](const FencePoint& fence) {
    const bool after =
        written.access->lands_later ? fence.landings_known >= written.epoch : fence.number > written.number;
    return after && clock.knows(written.block_warp, fence.epoch);
  });
  if (!is_fenced) add_trace(Fault::fence, last.event, false, id, event(id).access->reads, cell);
}

void MemoryCheck::record_race(int first, bool first_reads, int second, bool second_reads, int cell) {
  if (!in_order(event(first), event(second))) {
    std::swap(first, second);
    std::swap(first_reads, second_reads);
  }
  add_trace(Fault::race, first, first_reads, second, second_reads, cell);
  if (first_reads == second_reads || event(first).iteration != event(second).iteration) return;
  const Event& reader = event(first_reads ? first : second);
  const Event& writer = event(first_reads ? second : first);
  races_of_reads_.insert({reader.access->op, reader.block_warp, reader.iteration, writer.access->op, cell});
}

void MemoryCheck::add_trace(Fault fault, int first, bool first_reads, int second, bool second_reads, int cell,
                            int expected) {
  std::vector<int> key = {static_cast<int>(fault), first_reads, second_reads, expected};
  for (const int i : {first, second}) {
    const SmemAccess* access = i < 0 ? nullptr : event(i).access;
    key.insert(key.end(), {access ? access->op : -1, access ? access->tile : -1, access ? access->part : -1});
  }
  const Range bytes = cells_.hull(cell);
  const auto [known, is_new] = known_.emplace(std::move(key), traces_.size());
  if (is_new) {
    traces_.push_back({fault, first, second, first_reads, second_reads, expected, bytes});
    return;
  }
  // More bytes of the same two executions widen the trace; later executions add nothing.
  Trace& trace = traces_[known->second];
  const auto same = [&](int a, int b) {
    return a == b ||
           (a >= 0 && b >= 0 && event(a).block_warp == event(b).block_warp && event(a).iteration == event(b).iteration);
  };
  if (!same(trace.first, first) || !same(trace.second, second)) return;
  trace.bytes = {std::min(trace.bytes.begin, bytes.begin), std::max(trace.bytes.end, bytes.end)};
}

}  // namespace gdr::verifying
