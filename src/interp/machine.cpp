#include "interp/machine.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace gdr::interp {

Machine::Machine(const Context& context, std::uint64_t seed, Actions& actions)
    : context_(context), random_(seed), actions_(actions) {
  const Kernel& kernel = *context_.program->kernel;
  for (std::size_t role = 0; role < kernel.roles.size(); ++role)
    for (int index = 0; index < kernel.roles[role].warps; ++index) {
      Warp warp;
      warp.role = static_cast<int>(role);
      warp.index = index;
      warp.priority = random_.next();
      settle(warp);
      warps_.push_back(std::move(warp));
    }
  for (const Barrier& barrier : kernel.barriers) {
    BarrierState state;
    state.completed.assign(static_cast<std::size_t>(barrier.stages), 0);
    state.arrived.assign(static_cast<std::size_t>(barrier.stages), 0);
    barriers_.push_back(std::move(state));
  }
  favoured_role_ = static_cast<int>(random_.below(std::max<std::size_t>(kernel.roles.size(), 1)));
}

Machine::BarrierState& Machine::barrier_of(const At& at) {
  return barriers_[static_cast<std::size_t>(context_.program->ops[static_cast<std::size_t>(at.op)].barrier)];
}

const Barrier& Machine::barrier_model(const At& at) const {
  return context_.program->kernel
      ->barriers[static_cast<std::size_t>(context_.program->ops[static_cast<std::size_t>(at.op)].barrier)];
}

const std::vector<Step>& Machine::list_of(const Warp& warp) const {
  const Role& role = context_.program->kernel->roles[static_cast<std::size_t>(warp.role)];
  return warp.section == Section::prologue ? role.prologue : warp.section == Section::body ? role.body : role.epilogue;
}

At Machine::at_of(const Warp& warp) const {
  const Step& step = list_of(warp)[warp.next_step];
  return {warp.role, warp.index, step.op, step.slice_begin, step.slice_end, warp.iteration};
}

void Machine::settle(Warp& warp) {
  while (!warp.done && warp.next_step == list_of(warp).size()) {
    warp.next_step = 0;
    if (warp.section == Section::epilogue) {
      warp.done = true;
    } else if (warp.iteration + 1 < context_.block->count) {
      warp.section = Section::body;
      ++warp.iteration;
      if (list_of(warp).empty()) warp.iteration = context_.block->count - 1;
    } else {
      warp.section = Section::epilogue;
      warp.iteration = context_.block->count;
    }
  }
}

void Machine::advance(Warp& warp) {
  ++warp.next_step;
  ++num_steps_;
  settle(warp);
}

bool Machine::wait_passes(const At& at) {
  const std::int64_t target = at.iteration - op_of(at).distance;
  if (target < 0) return true;
  const Barrier& model = barrier_model(at);
  const std::int64_t phase = target / model.stages;
  const auto copy = static_cast<std::size_t>(target % model.stages);
  const std::int64_t completed = barrier_of(at).completed[copy];
  const bool passes = (completed & 1) != (phase & 1);  // all that the hardware knows of a phase is its parity
  if (context_.options->check && (passes ? completed != phase + 1 : completed != phase))
    fault(context_, at, "GDR-I13",
          fmt::format("waits for phase {} of barrier {} (copy {}, of iteration {}), which {} while {} phases are "
                      "complete. The barrier needs more stages or one more wait.",
                      phase, model.name, copy, target, passes ? "passes" : "blocks", completed));
  return passes;
}

bool Machine::can_run(Warp& warp) {
  if (warp.done) return false;
  const At at = at_of(warp);
  if (op_of(at).kind == OpKind::wait) return wait_passes(at);
  return !warp.in_sync || barrier_of(at).generation != warp.sync_generation;
}

void Machine::enter_sync(Warp& warp, const At& at) {
  constexpr int kLanes = 32;
  BarrierState& state = barrier_of(at);
  warp.in_sync = true;
  warp.sync_generation = state.generation;
  if (++state.synced_warps * kLanes == barrier_model(at).arrivals) {
    state.synced_warps = 0;
    ++state.generation;
  }
}

void Machine::arrive(const At& at) {
  const Barrier& model = barrier_model(at);
  BarrierState& state = barrier_of(at);
  const auto copy = static_cast<std::size_t>(at.iteration % model.stages);
  const std::int64_t phase = at.iteration / model.stages;
  if (context_.options->check && state.completed[copy] != phase)
    fault(context_, at, "GDR-I13",
          fmt::format("arrives for phase {} of barrier {} (copy {}) while {} phases are complete. Its arrivals do not "
                      "match its phases, or a warp ran ahead.",
                      phase, model.name, copy, state.completed[copy]));
  if (++state.arrived[copy] == model.arrivals) {
    state.arrived[copy] = 0;
    ++state.completed[copy];
  }
}

void Machine::fire_arrivals(Warp& warp) {
  while (!warp.arrivals.empty()) {
    const PendingArrival& first = warp.arrivals.front();
    const bool waits = std::any_of(warp.copies.begin(), warp.copies.end(),
                                   [&](const PendingCopy& copy) { return copy.id <= first.after; });
    if (waits) return;
    const At at = first.at;
    warp.arrivals.pop_front();
    arrive(at);
  }
}

void Machine::land(Warp& warp, std::size_t copy) {
  const At at = warp.copies[copy].at;
  warp.copies.erase(warp.copies.begin() + static_cast<std::ptrdiff_t>(copy));
  actions_.land_copy(at);
  fire_arrivals(warp);
}

// Lands a copy if there is one: forced, those that the oldest arrival of some warp waits for; else any one.
bool Machine::land_some(bool forced) {
  std::vector<std::size_t> candidates;
  for (std::size_t index = 0; index < warps_.size(); ++index)
    if (!warps_[index].copies.empty() && (!forced || !warps_[index].arrivals.empty())) candidates.push_back(index);
  if (candidates.empty()) return false;
  Warp& warp = warps_[candidates[random_.below(candidates.size())]];
  if (!forced) {
    land(warp, random_.below(warp.copies.size()));
    return true;
  }
  const std::uint64_t after = warp.arrivals.front().after;
  while (!warp.copies.empty() && warp.copies.front().id <= after) land(warp, 0);
  return true;
}

void Machine::step(Warp& warp) {
  const At at = at_of(warp);
  const Op& op = op_of(at);
  switch (op.kind) {
    case OpKind::wait:
    case OpKind::fence:
      break;
    case OpKind::sync:
      if (!warp.in_sync) {
        enter_sync(warp, at);
        return;
      }
      warp.in_sync = false;
      break;
    case OpKind::arrive:
      if (op.after_copies && !warp.copies.empty()) {
        warp.arrivals.push_back({warp.copies.back().id, at});
      } else {
        arrive(at);
      }
      break;
    case OpKind::copy_in:
      actions_.issue_copy(at);
      warp.copies.push_back({next_copy_id_++, at});
      if (context_.options->landing == Landing::early || op.mechanism == Mechanism::plain)
        land(warp, warp.copies.size() - 1);
      break;
    default:
      actions_.execute(at);
  }
  advance(warp);
}

std::size_t Machine::choose(const std::vector<std::size_t>& runnable) {
  const Order order = context_.options->order;
  if (order == Order::round_robin) {
    const auto after = std::upper_bound(runnable.begin(), runnable.end(), last_chosen_);
    return after == runnable.end() ? runnable.front() : *after;
  }
  if (order == Order::priorities) {
    constexpr std::size_t kStepsBetweenChanges = 64;
    if (random_.below(kStepsBetweenChanges) == 0) warps_[random_.below(warps_.size())].priority = random_.next();
    return *std::max_element(runnable.begin(), runnable.end(),
                             [&](std::size_t a, std::size_t b) { return warps_[a].priority < warps_[b].priority; });
  }
  if (order == Order::role_ahead || order == Order::role_behind) {
    std::vector<std::size_t> preferred;
    for (const std::size_t index : runnable)
      if ((warps_[index].role == favoured_role_) == (order == Order::role_ahead)) preferred.push_back(index);
    if (!preferred.empty()) return preferred[random_.below(preferred.size())];
  }
  return runnable[random_.below(runnable.size())];
}

void Machine::run() {
  constexpr std::size_t kStepsBetweenLandings = 4;
  std::vector<std::size_t> runnable;
  for (;;) {
    if (context_.options->landing == Landing::random && random_.below(kStepsBetweenLandings) == 0) land_some(false);
    runnable.clear();
    bool all_done = true;
    for (std::size_t index = 0; index < warps_.size(); ++index) {
      all_done = all_done && warps_[index].done;
      if (can_run(warps_[index])) runnable.push_back(index);
    }
    if (all_done) break;
    if (!runnable.empty()) {
      last_chosen_ = choose(runnable);
      step(warps_[last_chosen_]);
    } else if (!land_some(true)) {
      deadlock();
    }
  }
  while (land_some(false)) continue;  // copies that nobody waited for
}

std::string Machine::what_it_waits_for(const Warp& warp) {
  const At at = at_of(warp);
  const Role& role = context_.program->kernel->roles[static_cast<std::size_t>(warp.role)];
  const Barrier& model = barrier_model(at);
  const BarrierState& state = barrier_of(at);
  const std::string who =
      fmt::format("{} {} at op {}, iteration {}", role.name, warp.index, op_of(at).id, at.iteration);
  if (model.kind == BarrierKind::named)
    return fmt::format("{}: barrier {} ({} of {} threads arrived)", who, model.name, state.synced_warps * 32,
                       model.arrivals);
  const std::int64_t target = at.iteration - op_of(at).distance;
  const auto copy = static_cast<std::size_t>(target % model.stages);
  return fmt::format("{}: phase {} of barrier {} (copy {}: {} phases complete, {} of {} arrivals)", who,
                     target / model.stages, model.name, copy, state.completed[copy], state.arrived[copy],
                     model.arrivals);
}

void Machine::deadlock() {
  std::string waiting;
  At first;
  for (const Warp& warp : warps_) {
    if (warp.done) continue;
    if (waiting.empty()) first = at_of(warp);
    waiting += fmt::format("\n  {}", what_it_waits_for(warp));
  }
  fault(context_, first, "GDR-I03", fmt::format("deadlock; no warp can run. They wait for:{}\n ", waiting));
}

}  // namespace gdr::interp
