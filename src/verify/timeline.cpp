#include "verify/timeline.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gdr::verifying {

// Why so many iterations are enough. Let S be the least common multiple of the stages of two tiles (or of a tile and a
// barrier), L the largest S, D the largest distance of a wait.
// 1. Order never leads to an earlier iteration (program order does not, and a wait of iteration i - d, d >= 0, stands
// in
//    iteration i), and whether x of iteration i comes before y of iteration j depends on the iterations i..j alone.
//    So the order is the same for (i + 1, j + 1): only waits that mean iterations before the first are special, and
//    they order nothing.
// 2. Deadlock: a circle of waits lies within one iteration, by 1. Iteration 0 has it if any has.
// 3. Races: let x of iteration i and y of iteration j > i touch the same bytes, unordered. x of iteration i + mS
// touches
//    them too, after x of i in the same warp. Take the last such i' <= j: if x of i' came before y, so would x of i; it
//    cannot come after y by 1, unless i' = j, and then x of j - S is unordered with y. So two iterations at most S
//    apart race, and by 1 two among the first 2 S.
// 4. Values: the last write to a byte before a read is at most S iterations old once every op has run for each stage
//    (the writer writes the same byte every S iterations); which write it is repeats with the iteration modulo the
//    S of reader and writer, again pairwise. The first 2 L iterations show all cases, the first L also the beginning.
// 5. Phases: a wait with distance d at iteration i meets the arrivals of iteration i - d + stages: 2 L + D + 1 > D +
//    stages iterations hold both.
// A run of fewer iterations is the beginning of this one in every warp (nothing looks at the trip count but registers,
// which have a check of their own), so it holds no fault that this one does not show.
int iterations_to_run(const KernelIndex& index) {
  if (index.kernel->loop == LoopKind::once) return 1;
  std::vector<int> stages = {1};
  for (const Tile& tile : index.kernel->tiles) stages.push_back(tile.stages);
  for (const Barrier& barrier : index.kernel->barriers) stages.push_back(barrier.stages);
  int longest = 1, distance = 0;
  for (const int a : stages)
    for (const int b : stages) longest = std::max(longest, std::lcm(a, b));
  for (const Op& op : index.kernel->ops) distance = std::max(distance, op.distance);
  return 2 * longest + distance + 1;
}

Timeline::Timeline(const KernelIndex& index, int iterations) : index_(index), iterations_(iterations) {
  const int barriers = count_of(index.kernel->barriers);
  const auto n = static_cast<std::size_t>(barriers);
  expected_.assign(n, 0);
  for (int i = 0; i < count_of(index.ops); ++i)
    if (index.op(i).kind == OpKind::arrive) at(expected_, at(index.ops, i).barrier) += index.role_of(i).warps;
  phases_.assign(n, std::vector<Phase>(static_cast<std::size_t>(iterations)));
  rounds_.assign(n, {});
  early_reported_.assign(n, false);
  late_reported_.assign(n, false);
  for (int r = 0; r < count_of(index.kernel->roles); ++r)
    for (int w = 0; w < index.role(r).warps; ++w) {
      Warp warp;
      warp.role = r;
      warp.in_role = w;
      warp.syncs.assign(n, 0);
      warp.clock.at[warps_.size()] = 1;
      warps_.push_back(std::move(warp));
    }
  for (const Role& role : index.kernel->roles) {
    std::vector<int> next(role.body.size(), count_of(index.ops));  // behind the last: the end of the iteration
    for (int step = count_of(role.body) - 1; step >= 0; --step) {
      const int op = at(role.body, step).op;
      const bool is_barrier_op = at(index.ops, op).barrier >= 0;
      if (!is_barrier_op)
        at(next, step) = op;
      else if (step + 1 < count_of(role.body))
        at(next, step) = at(next, step + 1);
    }
    next_op_.push_back(std::move(next));
  }
}

bool Timeline::is_done(const Warp& warp) const {
  return warp.iteration >= iterations_ || index_.role(warp.role).body.empty();
}

// The least (iteration, next op); -1 if no warp can go on.
int Timeline::next_warp() const {
  int best = -1;
  std::pair<int, int> least;
  for (int w = 0; w < count_of(warps_); ++w) {
    const Warp& warp = at(warps_, w);
    if (warp.is_blocked || is_done(warp)) continue;
    const std::pair rank(warp.iteration, at(at(next_op_, warp.role), warp.step));
    if (best < 0 || rank < least) best = w, least = rank;
  }
  return best;
}

bool Timeline::run(const std::function<void(const StepRun&)>& on_step, Findings& findings) {
  for (int w = next_warp(); w >= 0; w = next_warp()) at(warps_, w).is_blocked = !advance(w, on_step);
  const bool all_done = std::all_of(warps_.begin(), warps_.end(), [&](const Warp& w) { return is_done(w); });
  if (!all_done) report_stuck(findings);
  return all_done;
}

bool Timeline::advance(int w, const std::function<void(const StepRun&)>& on_step) {
  Warp& warp = at(warps_, w);
  const std::vector<Step>& body = index_.role(warp.role).body;
  const int op = at(body, warp.step).op;
  switch (index_.op(op).kind) {
    case OpKind::arrive:
      arrive(w, op);
      for (Warp& other : warps_) other.is_blocked = false;
      break;
    case OpKind::wait:
      if (!wait(w, op)) return false;
      break;
    case OpKind::sync:
      if (!sync(w, op)) return false;
      break;
    default:
      on_step({warp.role, warp.step, warp.in_role, w, warp.iteration, &warp.clock, warp.landings + 1});
  }
  ++steps_run_;
  if (++warp.step == count_of(body)) {
    warp.step = 0;
    ++warp.iteration;
  }
  return true;
}

void Timeline::arrive(int w, int op) {
  Warp& warp = at(warps_, w);
  auto& epoch = warp.clock.at[static_cast<std::size_t>(w)];
  Phase& here = phase(at(index_.ops, op).barrier, warp.iteration);
  Arrival arrival{op, w, warp.iteration, w, epoch, warp.clock};
  if (index_.op(op).after_copies) {
    // It fires when the copies have landed, which the warp does not wait for: an event of the copies, after this one of
    // the warp. Nothing can keep copies from landing, so the run may fire it at once.
    arrival.component = copies_of(w);
    arrival.epoch = ++warp.landings;
    arrival.clock.at[static_cast<std::size_t>(arrival.component)] = arrival.epoch;
  }
  here.joined.join(arrival.clock);
  here.arrivals.push_back(arrival);
  ++epoch;
}

bool Timeline::wait(int w, int op) {
  Warp& warp = at(warps_, w);
  const int barrier = at(index_.ops, op).barrier;
  const int meant = warp.iteration - index_.op(op).distance;
  if (meant < 0) return true;
  if (!is_complete(barrier, meant)) return false;
  Phase& there = phase(barrier, meant);
  there.waiters.push_back({op, w, warp.iteration, warp.clock.at[static_cast<std::size_t>(w)]});
  warp.clock.join(there.joined);
  return true;
}

bool Timeline::sync(int w, int op) {
  Warp& warp = at(warps_, w);
  const int barrier = at(index_.ops, op).barrier;
  std::vector<SyncRound>& rounds = at(rounds_, barrier);
  int& passed = at(warp.syncs, barrier);
  if (count_of(rounds) <= passed) rounds.emplace_back();
  SyncRound& round = at(rounds, passed);
  if (!warp.at_sync) {
    round.joined.join(warp.clock);
    ++round.arrived;
    ++warp.clock.at[static_cast<std::size_t>(w)];
    warp.at_sync = true;
  }
  if (round.arrived < index_.role(warp.role).warps) return false;
  for (Warp& other : warps_) other.is_blocked = other.is_blocked && other.role != warp.role;
  warp.clock.join(round.joined);
  warp.at_sync = false;
  ++passed;
  return true;
}

OpPlace Timeline::place(int op, int w, int iteration) const {
  const Warp& warp = at(warps_, w);
  return {index_.op(op).id, index_.role(warp.role).name, warp.in_role, iteration};
}

std::string Timeline::describe(int op, int w, int iteration) const {
  const OpPlace p = place(op, w, iteration);
  return fmt::format("`{}` (role {}, warp {}, iteration {})", p.op, p.role, p.warp, p.iteration);
}

std::string Timeline::describe_wait(const Warp& warp, int op) const {
  const Op& stuck = index_.op(op);
  if (stuck.kind == OpKind::sync)
    return fmt::format("waits at sync `{}` (iteration {}) for the role's other warps", stuck.id, warp.iteration);
  const int barrier = at(index_.ops, op).barrier;
  const int meant = warp.iteration - stuck.distance;
  const int stages = at(index_.kernel->barriers, barrier).stages;
  const Phase& there = phase(barrier, meant);
  std::string missing;
  for (int i = 0; i < count_of(index_.ops); ++i) {
    if (index_.op(i).kind != OpKind::arrive || at(index_.ops, i).barrier != barrier) continue;
    const auto arrived =
        std::count_if(there.arrivals.begin(), there.arrivals.end(), [&](const Arrival& a) { return a.op == i; });
    if (arrived < index_.role_of(i).warps)
      missing += fmt::format("{}`{}` of role {}", missing.empty() ? "" : ", ", index_.op(i).id, index_.role_of(i).name);
  }
  return fmt::format(
      "waits at `{}` (iteration {}) for barrier {}, copy {}, phase {} (iteration {}), which has {} of {} "
      "arrivals and lacks {}",
      stuck.id, warp.iteration, stuck.barrier, meant % stages, meant / stages, meant, there.arrivals.size(),
      at(expected_, barrier), missing);
}

void Timeline::report_stuck(Findings& findings) const {
  std::string what;
  OpPlace first;
  int last_role = -1;
  for (int w = 0; w < count_of(warps_); ++w) {
    const Warp& warp = at(warps_, w);
    if (is_done(warp) || warp.role == last_role) continue;  // one warp speaks for its role
    last_role = warp.role;
    const int op = at(index_.role(warp.role).body, warp.step).op;
    if (what.empty()) first = place(op, w, warp.iteration);
    what += fmt::format("{}role {} {}", what.empty() ? "" : "; ", index_.role(warp.role).name, describe_wait(warp, op));
  }
  findings.add("GDR-V11", "no warp can go on: {}", what).a = first;
}

// The hardware keeps, for each copy of an mbarrier, the number of the current phase (of which a waiter sees the last
// bit) and how many arrivals it still lacks. Claim: if for every copy and consecutive phases k (iteration t) and k + 1
// (iteration t + stages)
//   (1) every arrival of phase k + 1 comes, by the order, after every arrival of phase k, and
//   (2) every wait for phase k comes before some arrival of phase k + 1,
// then every run of the hardware follows the order of the intended meaning. By induction over a run: an arrival is
// counted for its own phase, since by (1) the phases before are complete and its own is not. A wait for phase k finds
// phase k incomplete (it then blocks, as intended), or complete with phase k + 1 incomplete by (2) (it passes). It
// cannot find phase k - 1 incomplete, whose parity would let it pass: the same op waited for phase k - 1 one round of
// stages before.
// Where (1) fails, an early arrival can complete phase k in place of a late one; where (2) fails, a waiter can find
// phase k + 1 complete and wait for a parity that has gone by.
void Timeline::check_phases(Findings& findings) {
  for (int b = 0; b < count_of(index_.kernel->barriers); ++b) {
    const Barrier& barrier = at(index_.kernel->barriers, b);
    if (barrier.kind != BarrierKind::mbarrier) continue;
    for (int t = 0; t + barrier.stages < iterations_; ++t) {
      if (!is_complete(b, t) || !is_complete(b, t + barrier.stages)) continue;
      ++phases_checked_;
      check_early_arrivals(b, t, findings);
      check_late_waiters(b, t, findings);
    }
  }
}

void Timeline::check_early_arrivals(int b, int t, Findings& findings) {
  if (at(early_reported_, b)) return;
  const Barrier& barrier = at(index_.kernel->barriers, b);
  for (const Arrival& later : phase(b, t + barrier.stages).arrivals)
    for (const Arrival& earlier : phase(b, t).arrivals) {
      if (later.clock.knows(earlier.component, earlier.epoch)) continue;
      Finding& finding =
          findings.add("GDR-V12",
                       "op {} may arrive on barrier {} (copy {}) before {} has: it would be counted for the phase of "
                       "iteration {}, which then completes without {}",
                       describe(later.op, later.warp, later.iteration), barrier.name, t % barrier.stages,
                       describe(earlier.op, earlier.warp, earlier.iteration), t, index_.op(earlier.op).id);
      finding.a = place(later.op, later.warp, later.iteration);
      finding.b = place(earlier.op, earlier.warp, earlier.iteration);
      finding.remedy = fmt::format(
          "a wait in role {} for the phase of iteration {} before `{}`, or more stages, would "
          "keep them apart",
          finding.a.role, t, finding.a.op);
      early_reported_[static_cast<std::size_t>(b)] = true;
      return;
    }
}

void Timeline::check_late_waiters(int b, int t, Findings& findings) {
  if (at(late_reported_, b)) return;
  const Barrier& barrier = at(index_.kernel->barriers, b);
  const Phase& next = phase(b, t + barrier.stages);
  for (const Waiter& waiter : phase(b, t).waiters) {
    const bool is_held = std::any_of(next.arrivals.begin(), next.arrivals.end(), [&](const Arrival& arrival) {
      return arrival.clock.knows(waiter.warp, waiter.epoch);
    });
    if (is_held) continue;
    const Arrival& last = next.arrivals.back();
    Finding& finding = findings.add(
        "GDR-V12",
        "op {} waits on barrier {} (copy {}) for the phase of iteration {}; that of iteration {} may complete "
        "before it looks (last arrival {}), and the parity it waits for has then gone by",
        describe(waiter.op, waiter.warp, waiter.iteration), barrier.name, t % barrier.stages, t, t + barrier.stages,
        describe(last.op, last.warp, last.iteration));
    finding.a = place(waiter.op, waiter.warp, waiter.iteration);
    finding.b = place(last.op, last.warp, last.iteration);
    finding.remedy = fmt::format(
        "an arrive of role {} after `{}` that role {} waits for before `{}`, or more stages, "
        "would hold it",
        finding.a.role, finding.a.op, finding.b.role, finding.b.op);
    late_reported_[static_cast<std::size_t>(b)] = true;
    return;
  }
}

}  // namespace gdr::verifying
