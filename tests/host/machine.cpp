#include "machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace gdr::host {
namespace {

Machine* g_current = nullptr;

// Stacks are kept from block to block.
FiberStack& stack_of(int thread) {
  static std::vector<std::unique_ptr<FiberStack>> stacks;
  while (stacks.size() <= static_cast<std::size_t>(thread)) stacks.push_back(std::make_unique<FiberStack>());
  return *stacks[static_cast<std::size_t>(thread)];
}

}  // namespace

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::race:
      return "race";
    case FaultKind::unwritten:
      return "unwritten";
    case FaultKind::bounds:
      return "bounds";
    case FaultKind::global:
      return "global";
    case FaultKind::phase:
      return "phase";
    case FaultKind::barrier:
      return "barrier";
    case FaultKind::divergence:
      return "divergence";
    case FaultKind::registers:
      return "registers";
    case FaultKind::deadlock:
      return "deadlock";
  }
  return "?";
}

Machine& Machine::current() { return *g_current; }

Machine::Machine(const BlockRun& run, int block, const std::function<void()>& body)
    : run_(run),
      block_(block),
      body_(body),
      random_(run.options.seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(block)),
      clocks_(run.threads),
      memory_(run.smem_bytes, clocks_),
      threads_(static_cast<std::size_t>(run.threads)),
      warps_(static_cast<std::size_t>(run.threads / kLanes)) {
  for (int t = 0; t < run.threads; ++t) {
    thread_at(t).fiber.emplace(stack_of(t), &Machine::run_thread, this);
    wake(t);
  }
  if (run.facts != nullptr) {
    const Kernel& kernel = run.facts->kernel();
    for (Warp& warp : warps_) warp.registers = kernel.launch_registers;
    free_registers_ = 0;  // a block has what its threads start with: what one gives back another may take
    favoured_role_ = random_.below(static_cast<int>(kernel.roles.size()));
  }
  g_current = this;
}

Machine::~Machine() { g_current = nullptr; }

void Machine::run_thread(void* machine) {
  auto* const self = static_cast<Machine*>(machine);
  self->body_();
  self->leave_op(self->thread_);
  self->me().waits = Waits::ended;
}

std::optional<Fault> Machine::execute() {
  constexpr int kPicksBetweenLandings = 4;
  while (!fault_) {
    if (run_.options.landing == Landing::random && random_.below(kPicksBetweenLandings) == 0) land_some(false);
    const int warp = pick_warp();
    if (warp >= 0) {
      run_lanes(warp);
      continue;
    }
    const bool all_ended =
        std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.waits == Waits::ended; });
    if (all_ended && with_copies_.empty()) break;
    if (!land_some(!all_ended)) deadlock();
  }
  check_warpgroups();
  return fault_;
}

int Machine::pick_warp() {
  std::array<int, 2> count = {};  // of all ready warps, and of preferred ones
  std::array<int, 64> ready{}, preferred{};
  for (int w = 0; w < static_cast<int>(warps_.size()); ++w) {
    if (warp_at(w).ready == 0) continue;
    ready[static_cast<std::size_t>(count[0]++)] = w;
    if (run_.options.order == Order::random || run_.facts == nullptr) continue;
    const bool is_favoured =
        &run_.facts->role_of_warp(w) == &run_.facts->kernel().roles[static_cast<std::size_t>(favoured_role_)];
    if (is_favoured == (run_.options.order == Order::role_ahead)) preferred[static_cast<std::size_t>(count[1]++)] = w;
  }
  if (count[1] > 0) return preferred[static_cast<std::size_t>(random_.below(count[1]))];
  return count[0] > 0 ? ready[static_cast<std::size_t>(random_.below(count[0]))] : -1;
}

// The lanes that are ready now, in a random rotation.
void Machine::run_lanes(int warp) {
  std::uint32_t lanes = warp_at(warp).ready;
  while (lanes != 0 && !fault_) {
    const int turn = random_.below(kLanes);
    const int lane = (std::countr_zero(std::rotr(lanes, turn)) + turn) % kLanes;
    lanes &= ~(1u << lane);
    warp_at(warp).ready &= ~(1u << lane);
    thread_ = warp * kLanes + lane;
    me().waits = Waits::no;
    me().fiber->resume();
  }
}

void Machine::wake(int thread) { warp_at(thread / kLanes).ready |= 1u << thread % kLanes; }

void Machine::suspend(Waits reason, int at) {
  me().waits = reason;
  me().waits_at = at;
  me().fiber->suspend();
}

// A thread that goes no further: nothing that it still owns may depend on its end.
void Machine::stop_if_faulty() {
  while (fault_) me().fiber->suspend();
}

// ------------------------------------------------------------------------------------------------------ copies

void Machine::copy_16(int byte, const void* source, bool is_there, const void* site) {
  constexpr int kBytes = 16;
  if (is_skipped() || !check_access(byte, kBytes, true)) return stop_if_faulty();
  if (is_there && !check_global(run_.global->read(source, kBytes, operands(false)), "copies")) return stop_if_faulty();
  if (const Clash found = memory_.issue_copy(thread_, byte, kBytes, me().place)) clash(thread_, found, "copies into");
  note_access(byte, kBytes, site);
  if (me().pending.empty()) with_copies_.push_back(thread_);
  me().pending.push_back({byte, is_there ? source : nullptr, -1, me().place, 0, nullptr});
  me().at_last_copy = clocks_.knowledge(thread_);
  if (run_.options.landing == Landing::early) land_first(thread_);
  stop_if_faulty();
}

void Machine::barrier_arrive_after_copies(int byte) {
  if (is_skipped()) return;
  if (barrier_at(byte) != nullptr) {
    if (me().pending.empty()) with_copies_.push_back(thread_);
    me().pending.push_back({0, nullptr, byte, me().place, clocks_.copies_now(thread_), me().at_last_copy});
    clocks_.end_copies_epoch(thread_);
    if (me().pending.size() == 1) land_first(thread_);
  }
  stop_if_faulty();
}

void Machine::land_first(int thread) {
  const PendingCopy first = std::move(thread_at(thread).pending.front());
  thread_at(thread).pending.pop_front();
  if (first.barrier < 0) {
    std::array<std::byte, 16> data{};
    if (first.source != nullptr) std::memcpy(data.data(), first.source, data.size());
    memory_.land_copy(first.byte, data);
    if (!thread_at(thread).pending.empty() && thread_at(thread).pending.front().barrier >= 0) land_first(thread);
  } else {
    Phases& phases = phases_.at(first.barrier);
    clocks_.release_copies(thread, first.epoch, first.at_issue, phases.gathering);
    complete_arrival(thread, first.place, first.barrier, phases);
    if (!thread_at(thread).pending.empty() && thread_at(thread).pending.front().barrier >= 0) land_first(thread);
  }
  if (thread_at(thread).pending.empty()) std::erase(with_copies_, thread);
}

// Lands a copy of some thread; `forced`: all those of it that its oldest arrival waits for.
bool Machine::land_some(bool forced) {
  std::vector<int> candidates;
  for (const int thread : with_copies_) {
    const auto& pending = thread_at(thread).pending;
    if (!forced || std::any_of(pending.begin(), pending.end(), [](const PendingCopy& p) { return p.barrier >= 0; }))
      candidates.push_back(thread);
  }
  if (candidates.empty()) return false;
  const int thread = candidates[static_cast<std::size_t>(random_.below(static_cast<int>(candidates.size())))];
  const auto arrivals = [&] {
    const auto& pending = thread_at(thread).pending;
    return std::count_if(pending.begin(), pending.end(), [](const PendingCopy& p) { return p.barrier >= 0; });
  };
  const auto before = arrivals();
  do land_first(thread);
  while (forced && arrivals() == before);
  return true;
}

// ------------------------------------------------------------------------------------------------- ops, visits

void Machine::at_op(int op, int iteration) {
  leave_op(thread_);
  me().place = {op, iteration};
  ++me().ops_entered;
  Warp& warp = warp_at(thread_ / kLanes);
  if (run_.observer || run_.options.counts_banks) {
    const auto ordinal = static_cast<std::size_t>(me().ops_entered - 1 - warp.first_visit);
    if (ordinal == warp.visits.size()) warp.visits.emplace_back().place = me().place;
  }
}

void Machine::leave_op(int thread) {
  Warp& warp = warp_at(thread / kLanes);
  const std::int64_t entered = thread_at(thread).ops_entered;
  if (entered == 0 || warp.visits.empty()) return;
  const auto ordinal = static_cast<std::size_t>(entered - 1 - warp.first_visit);
  if (++warp.visits[ordinal].left < kLanes) return;
  // Lanes leave ops in one order, so this is the oldest.
  finish_visit(thread / kLanes, warp.visits.front());
  warp.visits.pop_front();
  ++warp.first_visit;
}

void Machine::finish_visit(int warp, OpVisit& visit) {
  if (run_.observer && run_.facts != nullptr && !visit.stored.empty()) {
    Published published;
    published.block = block_;
    published.op = visit.place.op;
    published.iteration = visit.place.iteration;
    published.warp = warp - run_.facts->first_warp(run_.facts->role_of_warp(warp));
    published.stored = std::move(visit.stored);
    published.memory = [this](int byte) { return memory_.at(byte); };
    run_.observer(published);
  }
  if (run_.banks == nullptr) return;
  // The n-th access of each lane at one place of the program is one access of the warp.
  std::map<std::pair<const void*, int>, std::vector<BankCounter::Lane>> accesses;
  std::map<std::pair<const void*, int>, int> times;  // by place and lane
  std::map<const void*, int> sizes;
  for (const Access& access : visit.accesses) {
    const int time = times[{access.site, access.lane}]++;
    accesses[{access.site, time}].push_back({access.lane, access.byte});
    sizes[access.site] = access.bytes;
  }
  for (const auto& [key, lanes] : accesses) run_.banks->add(visit.place.op, lanes, sizes[key.first]);
}

void Machine::note_access(int byte, int bytes, const void* site) {
  Warp& warp = warp_at(thread_ / kLanes);
  if (!run_.options.counts_banks || warp.visits.empty()) return;
  const auto ordinal = static_cast<std::size_t>(me().ops_entered - 1 - warp.first_visit);
  warp.visits[ordinal].accesses.push_back({site, thread_ % kLanes, byte, bytes});
}

std::optional<Fault> run_block(const BlockRun& run, int index, const std::function<void()>& body) {
  Machine machine(run, index, body);
  return machine.execute();
}

}  // namespace gdr::host
