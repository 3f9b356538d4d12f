// mbarriers, as the hardware keeps them: a phase ends with its last arrival, a waiter sees no more of phases than their
// parity. Where the plan is known, a wait or an arrival that falls into another phase than its own is a fault. And who
// waits for what when nobody can go on.
#include <fmt/format.h>

#include <algorithm>

#include "machine.hpp"

namespace gdr::host {

void Machine::barrier_init(int byte, int arrivals) {
  constexpr int kBytes = 8;
  if (check_access(byte, kBytes, true)) {
    const std::optional<BarrierPlace> place = run_.facts != nullptr ? run_.facts->barrier_at(byte) : std::nullopt;
    if (place) {
      const auto added = run_.options.added_arrivals.find(place->barrier->name);
      if (added != run_.options.added_arrivals.end()) arrivals += added->second;
    }
    if (arrivals < 1)
      fail(FaultKind::barrier, thread_, me().place, fmt::format("a barrier of {} arrivals at byte {}", arrivals, byte));
    if (const Clash found = memory_.make_barrier(thread_, byte, kBytes, me().place))
      clash(thread_, found, "initialises");
    phases_.emplace(byte, Phases{arrivals,
                                 arrivals,
                                 0,
                                 Gathering(static_cast<std::size_t>(clocks_.num_components())),
                                 nullptr,
                                 thread_,
                                 clocks_.now(thread_),
                                 {}});
  }
  stop_if_faulty();
}

Machine::Phases* Machine::barrier_at(int byte) {
  const auto found = phases_.find(byte);
  if (found == phases_.end())
    fail(FaultKind::barrier, thread_, me().place, fmt::format("there is no barrier at byte {}", byte));
  else if (!clocks_.is_before(found->second.initialiser, found->second.init_epoch, thread_))
    fail(FaultKind::race, thread_, me().place,
         fmt::format("uses the barrier at byte {}, and nothing orders that after its initialisation", byte));
  return fault_ ? nullptr : &found->second;
}

void Machine::barrier_arrive(int byte) {
  if (is_skipped()) return;
  if (Phases* const phases = barrier_at(byte)) {
    clocks_.release(thread_, phases->gathering);
    complete_arrival(thread_, me().place, byte, *phases);
  }
  stop_if_faulty();
}

void Machine::complete_arrival(int thread, Place place, int byte, Phases& phases) {
  const std::optional<BarrierPlace> known = run_.facts != nullptr ? run_.facts->barrier_at(byte) : std::nullopt;
  if (known && place.op >= 0) {
    const int stages = known->barrier->stages;
    if (place.iteration % stages != known->copy || phases.completed != place.iteration / stages)
      fail(FaultKind::phase, thread, place,
           fmt::format("arrives for phase {} of barrier {} (copy {}) while {} phases are complete",
                       place.iteration / stages, known->barrier->name, known->copy, phases.completed));
  }
  if (--phases.pending > 0) return;
  phases.pending = phases.arrivals;
  ++phases.completed;
  phases.released = phases.gathering.finish();
  for (const int waiter : phases.waiting) wake(waiter);
  phases.waiting.clear();
}

// Whether the phase of this parity is over, which is all that the hardware asks.
bool Machine::phase_is_over(Phases& phases, int byte, int parity) {
  const bool passes = (phases.completed & 1) != parity;
  const std::optional<BarrierPlace> known = run_.facts != nullptr ? run_.facts->barrier_at(byte) : std::nullopt;
  const Place place = me().place;
  if (!known || place.op < 0) return passes;
  const Op& op = run_.facts->op(place.op);
  const int target = place.iteration - op.distance, phase = target / known->barrier->stages;
  if (op.kind != OpKind::wait || op.barrier != known->barrier->name || target % known->barrier->stages != known->copy ||
      (phase & 1) != parity)
    fail(FaultKind::phase, thread_, place,
         fmt::format("waits for parity {} of barrier {} (copy {}), which the plan does not say", parity,
                     known->barrier->name, known->copy));
  else if (phases.completed != (passes ? phase + 1 : phase))
    fail(FaultKind::phase, thread_, place,
         fmt::format("waits for phase {} of barrier {} (copy {}), which {} while {} phases are complete", phase,
                     known->barrier->name, known->copy, passes ? "passes" : "blocks", phases.completed));
  return passes;
}

void Machine::barrier_wait(int byte, int parity) {
  if (is_skipped()) return;
  if (Phases* const phases = barrier_at(byte)) {
    while (!phase_is_over(*phases, byte, parity) && !fault_) {
      phases->waiting.push_back(thread_);
      suspend(Waits::for_phase, byte);
    }
    if (!fault_) clocks_.acquire(thread_, phases->released);
  }
  stop_if_faulty();
}

// ---------------------------------------------------------------------------------------------------- deadlock

std::string Machine::what_it_waits_for(int w) const {
  std::string text;
  std::string last;
  int first_lane = 0;
  const auto close = [&](int end) {
    if (!last.empty()) text += fmt::format("\n  warp {}, lanes {} to {}: {}", w, first_lane, end - 1, last);
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    const int thread = w * kLanes + lane;
    const Thread& t = threads_[static_cast<std::size_t>(thread)];
    const std::string at = run_.facts == nullptr ? "" : fmt::format("{}, ", who(w * kLanes, t.place));  // of the warp
    std::string what;
    switch (t.waits) {
      case Waits::no:
        what = "runs";
        break;
      case Waits::ended:
        what = "ended";
        break;
      case Waits::for_lanes:
        what = fmt::format("{}{} with the other lanes", at, to_string(warps_[static_cast<std::size_t>(w)].together));
        break;
      case Waits::for_phase: {
        const Phases& phases = phases_.at(t.waits_at);
        const std::optional<BarrierPlace> known =
            run_.facts != nullptr ? run_.facts->barrier_at(t.waits_at) : std::nullopt;
        what = fmt::format("{}barrier {} ({} phases complete, {} of {} arrivals)", at,
                           known ? known->barrier->name : fmt::format("at byte {}", t.waits_at), phases.completed,
                           phases.arrivals - phases.pending, phases.arrivals);
        break;
      }
      case Waits::for_meeting: {
        const Meeting& meeting = meetings_[static_cast<std::size_t>(t.waits_at)];
        what = fmt::format("{}meeting {} ({} of {} threads)", at, t.waits_at, meeting.present.size(), meeting.threads);
        break;
      }
      case Waits::for_registers:
        what = fmt::format("{}{} registers", at, warps_[static_cast<std::size_t>(w)].number);
        break;
    }
    if (what == last) continue;
    close(lane);
    first_lane = lane;
    last = what;
  }
  close(kLanes);
  return text;
}

void Machine::deadlock() {
  std::string waiting;
  int first = -1;
  for (int thread = 0; thread < run_.threads && first < 0; ++thread)
    if (thread_at(thread).waits != Waits::ended) first = thread;
  bool diverged = false;
  for (int w = 0; w < static_cast<int>(warps_.size()); ++w) {
    waiting += what_it_waits_for(w);
    diverged = diverged || warp_at(w).arrived != 0;
  }
  // Lanes that wait for lanes of their own warp which are somewhere else.
  fail(diverged ? FaultKind::divergence : FaultKind::deadlock, first, thread_at(first).place,
       "nobody can go on:" + waiting);
}

}  // namespace gdr::host
