// Systematic faults: every way to change one thing in a kernel's synchronisation. For tests that ask whether a proof
// (or random runs) would notice. Header only, so that tests of other rooms can use it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "schedule/model.hpp"

namespace gdr::testing {

enum class Mutation {
  drop_wait,
  drop_arrive,  // with the barrier's count lowered by the role's warps, if others still arrive
  drop_sync,
  drop_fence,
  count_up,       // arrivals + 1
  count_down,     // arrivals - 1
  distance_up,    // a wait for an older iteration than meant
  distance_down,  // a wait for a younger one: stricter, so often right but for deadlock
  stages_down,
  early_arrive,     // in front of the op (no barrier operation) before it
  late_wait,        // behind the op (no barrier operation) after it
  no_after_copies,  // an arrive that no longer waits for the copies
};

struct Mutant {
  Mutation mutation;
  std::string what;  // e.g. "without `x_free.wait.loader`"
  Kernel kernel;
};

namespace mutating {

inline bool is_barrier_op(const Op& op) {
  return op.kind == OpKind::arrive || op.kind == OpKind::wait || op.kind == OpKind::sync || op.kind == OpKind::fence;
}

template <typename Visit>
void for_lists(Kernel& kernel, const Visit& visit) {
  for (Role& role : kernel.roles)
    for (auto* list : {&role.prologue, &role.body, &role.epilogue}) visit(*list);
}

inline Kernel without(Kernel kernel, int op) {
  kernel.ops.erase(kernel.ops.begin() + op);
  for_lists(kernel, [&](std::vector<Step>& list) {
    std::erase_if(list, [&](const Step& step) { return step.op == op; });
    for (Step& step : list) step.op -= step.op > op ? 1 : 0;
  });
  return kernel;
}

inline Barrier* barrier_of(Kernel& kernel, const std::string& name) {
  const auto found = std::find_if(kernel.barriers.begin(), kernel.barriers.end(),
                                  [&](const Barrier& barrier) { return barrier.name == name; });
  return found == kernel.barriers.end() ? nullptr : &*found;
}

// Swaps the op's step with its neighbour `shift` (-1 or 1) away, if that does something to data.
inline bool swap_with_neighbour(Kernel& kernel, int op, int shift) {
  bool swapped = false;
  for_lists(kernel, [&](std::vector<Step>& list) {
    for (std::size_t i = 0; i < list.size() && !swapped; ++i) {
      const std::size_t other = i + static_cast<std::size_t>(shift);  // wraps below 0, and is then out of range
      if (list[i].op != op || other >= list.size()) continue;
      if (is_barrier_op(kernel.ops[static_cast<std::size_t>(list[other].op)])) return;
      std::swap(list[i], list[other]);
      swapped = true;
    }
  });
  return swapped;
}

}  // namespace mutating

// All mutants of the kernel, in the order of its ops, then of its barriers.
inline std::vector<Mutant> sync_mutants(const Kernel& kernel) {
  using namespace mutating;
  std::vector<Mutant> mutants;
  const auto add = [&](Mutation mutation, std::string what, Kernel changed) {
    mutants.push_back({mutation, std::move(what), std::move(changed)});
  };
  for (int i = 0; i < static_cast<int>(kernel.ops.size()); ++i) {
    const Op& op = kernel.ops[static_cast<std::size_t>(i)];
    if (!is_barrier_op(op)) continue;
    const auto changed = [&](auto change) {
      Kernel copy = kernel;
      change(copy.ops[static_cast<std::size_t>(i)]);
      return copy;
    };
    if (op.kind == OpKind::sync) add(Mutation::drop_sync, fmt::format("without `{}`", op.id), without(kernel, i));
    if (op.kind == OpKind::fence) add(Mutation::drop_fence, fmt::format("without `{}`", op.id), without(kernel, i));
    if (op.kind == OpKind::wait) {
      add(Mutation::drop_wait, fmt::format("without `{}`", op.id), without(kernel, i));
      add(Mutation::distance_up, fmt::format("`{}` with distance {}", op.id, op.distance + 1),
          changed([](Op& o) { ++o.distance; }));
      if (op.distance > 0)
        add(Mutation::distance_down, fmt::format("`{}` with distance {}", op.id, op.distance - 1),
            changed([](Op& o) { --o.distance; }));
      Kernel late = kernel;
      if (swap_with_neighbour(late, i, 1)) add(Mutation::late_wait, fmt::format("`{}` one op later", op.id), late);
    }
    if (op.kind == OpKind::arrive) {
      Kernel dropped = without(kernel, i);
      Barrier* barrier = barrier_of(dropped, op.barrier);
      if (barrier != nullptr && barrier->arrivals > kernel.role_of(i).warps)
        barrier->arrivals -= kernel.role_of(i).warps;
      add(Mutation::drop_arrive, fmt::format("without `{}`", op.id), dropped);
      if (op.after_copies)
        add(Mutation::no_after_copies, fmt::format("`{}` without after_copies", op.id),
            changed([](Op& o) { o.after_copies = false; }));
      Kernel early = kernel;
      if (swap_with_neighbour(early, i, -1))
        add(Mutation::early_arrive, fmt::format("`{}` one op earlier", op.id), early);
    }
  }
  for (std::size_t b = 0; b < kernel.barriers.size(); ++b) {
    const Barrier& barrier = kernel.barriers[b];
    const auto changed = [&](Mutation mutation, int Barrier::*field, int by, const char* name) {
      Kernel copy = kernel;
      copy.barriers[b].*field += by;
      add(mutation, fmt::format("barrier {} with {} {}", barrier.name, barrier.*field + by, name), std::move(copy));
    };
    changed(Mutation::count_up, &Barrier::arrivals, 1, "arrivals");
    changed(Mutation::count_down, &Barrier::arrivals, -1, "arrivals");
    if (barrier.kind == BarrierKind::named) continue;
    if (barrier.stages > 1) changed(Mutation::stages_down, &Barrier::stages, -1, "stages");
  }
  return mutants;
}

}  // namespace gdr::testing
