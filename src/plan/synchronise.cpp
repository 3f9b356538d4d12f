#include "plan/synchronise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"

namespace gdr {
namespace {

bool meets_inside_role(const std::vector<BodyOp>& ops, const Dependence& d) {
  const BodyOp &before = ops[static_cast<std::size_t>(d.before)], &after = ops[static_cast<std::size_t>(d.after)];
  return before.role == after.role && !before.is_copy;
}

class Orderer {
 public:
  Orderer(const std::vector<BodyOp>& ops, int num_roles, std::vector<Dependence> dependences, int max_distance)
      : ops_(ops), num_roles_(num_roles), dependences_(std::move(dependences)), max_distance_(max_distance) {}

  Synchronisation run() && {
    // Near dependences first, and of several into one operation the latest source: it implies the earlier ones.
    std::sort(dependences_.begin(), dependences_.end(), [](const Dependence& x, const Dependence& y) {
      return std::tuple(x.distance, x.after, -x.before) < std::tuple(y.distance, y.after, -y.before);
    });
    HappensBefore now = order();
    for (const Dependence& d : dependences_)
      if (!now.holds(d.before, d.after, d.distance)) {
        add(d);
        now = order();
      }
    drop_implied();
    return std::move(found_);
  }

 private:
  HappensBefore order() const { return HappensBefore(ops_, num_roles_, found_.waits, found_.meetings, max_distance_); }

  void add(const Dependence& d) {
    if (meets_inside_role(ops_, d))
      found_.meetings.push_back({d.after});
    else
      found_.waits.push_back({d.before, d.after, d.distance});
  }

  bool all_hold() const {
    const HappensBefore now = order();
    return std::all_of(dependences_.begin(), dependences_.end(),
                       [&](const Dependence& d) { return now.holds(d.before, d.after, d.distance); });
  }

  template <typename T>
  void drop_implied_from(std::vector<T>& items) {
    for (std::size_t i = 0; i < items.size();) {
      const T item = items[i];
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      if (all_hold()) continue;
      items.insert(items.begin() + static_cast<std::ptrdiff_t>(i), item);
      ++i;
    }
  }

  // A wait placed early may be implied by later ones together. Waits between roles cost more than meetings.
  void drop_implied() {
    drop_implied_from(found_.waits);
    drop_implied_from(found_.meetings);
  }

  const std::vector<BodyOp>& ops_;
  const int num_roles_;
  std::vector<Dependence> dependences_;
  const int max_distance_;
  Synchronisation found_;
};

// Events that are waited for by the same operations at the same distances are one barrier.
struct Event {
  std::vector<int> sources;                  // operations whose roles arrive after them
  std::vector<std::pair<int, int>> waiters;  // (operation, distance)
  int stages = 1;
};

std::vector<Event> events_of(const Synchronisation& synchronisation) {
  std::map<int, std::vector<std::pair<int, int>>> waiters_of;
  for (const Wait& wait : synchronisation.waits) waiters_of[wait.before].emplace_back(wait.after, wait.distance);
  std::map<std::vector<std::pair<int, int>>, std::vector<int>> by_waiters;
  for (auto& [source, waiters] : waiters_of) {
    std::sort(waiters.begin(), waiters.end());
    by_waiters[waiters].push_back(source);
  }
  std::vector<Event> events;
  for (const auto& [waiters, sources] : by_waiters) events.push_back({sources, waiters, 1});
  std::sort(events.begin(), events.end(),
            [](const Event& x, const Event& y) { return x.sources.front() < y.sources.front(); });
  return events;
}

class Placer {
 public:
  Placer(Kernel& kernel, const Synchronisation& synchronisation, const std::vector<Dependence>& dependences)
      : kernel_(kernel),
        synchronisation_(synchronisation),
        dependences_(dependences),
        ops_(body_ops(kernel)),
        before_(kernel.ops.size()),
        after_(kernel.ops.size()) {}

  void run() && {
    for (Event& event : events_of(synchronisation_)) {
      choose_stages(event);
      place(event);
    }
    place_meetings();
    rebuild_lists();
  }

 private:
  // Parity tells the phase wanted from its neighbours only, and arrivals are counted, not named. So before phase
  // i + stages can complete, everyone who waits for phase i has passed; and no source arrives for phase i + stages
  // before phase i is complete, which somebody who waited for it and passed is the proof of.
  void choose_stages(Event& event) const {
    if (kernel_.loop == LoopKind::once) return;  // one phase is all there is
    constexpr int kMostStages = 8;
    for (event.stages = 1; event.stages <= kMostStages; ++event.stages) {
      const HappensBefore order(ops_, static_cast<int>(kernel_.roles.size()), synchronisation_.waits,
                                synchronisation_.meetings, event.stages + 1);
      const auto passed = [&](const std::pair<int, int>& waiter, int source) {
        const int distance = event.stages - waiter.second;
        return distance >= 0 && order.holds(waiter.first, source, distance);
      };
      const bool all_waiters_pass = std::all_of(event.waiters.begin(), event.waiters.end(), [&](const auto& waiter) {
        return std::any_of(event.sources.begin(), event.sources.end(),
                           [&](int source) { return passed(waiter, source); });
      });
      const bool no_source_is_early = std::all_of(event.sources.begin(), event.sources.end(), [&](int source) {
        return std::any_of(event.waiters.begin(), event.waiters.end(),
                           [&](const auto& waiter) { return passed(waiter, source); });
      });
      if (all_waiters_pass && no_source_is_early) return;
    }
    fail(ErrorKind::internal, "GDR-X03",
         "kernel {}: the phases of the event after {} cannot be told apart in {} stages", kernel_.function,
         kernel_.ops[static_cast<std::size_t>(event.sources.front())].id, kMostStages);
  }

  // The dependences that this event's waits order directly: what it is named after and explained by.
  std::vector<Dependence> ordered_by(const Event& event) const {
    std::vector<Dependence> found;
    for (const Dependence& d : dependences_)
      for (const auto& [op, distance] : event.waiters)
        if (d.after == op && d.distance == distance &&
            std::find(event.sources.begin(), event.sources.end(), d.before) != event.sources.end())
          found.push_back(d);
    return found;
  }

  std::string name_of(const Event& event, const std::vector<Dependence>& ordered) {
    internal_check(!ordered.empty(), "an event without a dependence");
    const Dependence& d = ordered.front();
    const Op& source = kernel_.ops[static_cast<std::size_t>(d.before)];
    const bool data = d.hazard == Hazard::read_after_write;
    const Tile& tile = kernel_.tiles[static_cast<std::size_t>(data ? d.tile_before : d.tile_after)];
    const Op& owner = data ? source : kernel_.ops[static_cast<std::size_t>(event.waiters.front().first)];
    std::string name = tile.name;
    for (const Operand& operand : owner.operands)
      if (operand.name == tile.name && tile.parts > 1 && !operand.is_tensor) name += std::to_string(operand.part);
    name += !data ? "_free" : source.kind == OpKind::copy_in ? "_arrived" : "_ready";
    int& uses = names_[name];
    return ++uses == 1 ? name : fmt::format("{}_{}", name, uses);
  }

  std::string why(const std::vector<Dependence>& ordered) const {
    std::string text;
    std::set<std::string> said;
    for (const Dependence& d : ordered) {
      const char* what = d.hazard == Hazard::read_after_write   ? "is read by"
                         : d.hazard == Hazard::write_after_read ? "was read before"
                                                                : "was written before";
      const std::string& tile =
          kernel_.tiles[static_cast<std::size_t>(d.hazard == Hazard::read_after_write ? d.tile_after : d.tile_before)]
              .name;
      std::string clause = fmt::format("{} of {} {} {}", tile, kernel_.ops[static_cast<std::size_t>(d.before)].id, what,
                                       kernel_.ops[static_cast<std::size_t>(d.after)].id);
      if (said.insert(clause).second) text += (text.empty() ? "" : "; ") + clause;
    }
    return text;
  }

  int add_op(Op op) {
    kernel_.ops.push_back(std::move(op));
    return static_cast<int>(kernel_.ops.size()) - 1;
  }

  void place(const Event& event) {
    const std::vector<Dependence> ordered = ordered_by(event);
    Barrier barrier;
    barrier.name = name_of(event, ordered);
    barrier.stages = event.stages;
    barrier.why = why(ordered);
    for (const int source : event.sources) {
      const BodyOp& body = ops_[static_cast<std::size_t>(source)];
      barrier.arrivals += kernel_.roles[static_cast<std::size_t>(body.role)].warps;
      Op op;
      op.id = fmt::format("{}.arrive.{}", barrier.name, kernel_.roles[static_cast<std::size_t>(body.role)].name);
      op.kind = OpKind::arrive;
      op.barrier = barrier.name;
      op.after_copies = body.is_copy;
      after_[static_cast<std::size_t>(source)].push_back(add_op(op));
    }
    int count = 0;
    for (const auto& [waiter, distance] : event.waiters) {
      Op op;
      op.id = fmt::format("{}.wait{}", barrier.name, ++count == 1 ? "" : std::to_string(count));
      op.kind = OpKind::wait;
      op.barrier = barrier.name;
      op.distance = distance;
      before_[static_cast<std::size_t>(waiter)].push_back(add_op(op));
    }
    kernel_.barriers.push_back(barrier);
  }

  void place_meetings() {
    std::map<int, std::string> of_role;
    int id = 0;
    std::vector<Meeting> meetings = synchronisation_.meetings;
    std::sort(meetings.begin(), meetings.end(), [](const Meeting& x, const Meeting& y) { return x.op < y.op; });
    for (const Meeting& meeting : meetings) {
      const int r = ops_[static_cast<std::size_t>(meeting.op)].role;
      const Role& role = kernel_.roles[static_cast<std::size_t>(r)];
      if (!of_role.contains(r)) {
        of_role[r] = role.name + "_meet";
        kernel_.barriers.push_back({of_role[r], BarrierKind::named, 1, role.warps * 32, ++id,
                                    "orders the warps of the role where one reads what another wrote"});
      }
      Op op;
      op.id = fmt::format("{}.before.{}", of_role[r], kernel_.ops[static_cast<std::size_t>(meeting.op)].id);
      op.kind = OpKind::sync;
      op.barrier = of_role[r];
      before_[static_cast<std::size_t>(meeting.op)].push_back(add_op(op));
    }
  }

  // Operations renumbered so that Kernel::ops stays in canonical order, with the new ones beside what they order.
  void rebuild_lists() {
    std::vector<Op> ops;
    std::vector<int> renumbered(kernel_.ops.size(), -1);
    const auto take = [&](int op) {
      renumbered[static_cast<std::size_t>(op)] = static_cast<int>(ops.size());
      ops.push_back(kernel_.ops[static_cast<std::size_t>(op)]);
    };
    for (std::size_t op = 0; op < before_.size(); ++op) {
      for (const int sync : before_[op]) take(sync);
      take(static_cast<int>(op));
      for (const int sync : after_[op]) take(sync);
    }
    for (Role& role : kernel_.roles) {
      for (auto* list : {&role.prologue, &role.epilogue})
        for (Step& step : *list) step.op = renumbered[static_cast<std::size_t>(step.op)];
      std::vector<Step> body;
      for (const Step& step : role.body) {
        const auto at = static_cast<std::size_t>(step.op);
        for (const int sync : before_[at]) body.push_back({renumbered[static_cast<std::size_t>(sync)], 0, 1});
        body.push_back({renumbered[at], step.slice_begin, step.slice_end});
        for (const int sync : after_[at]) body.push_back({renumbered[static_cast<std::size_t>(sync)], 0, 1});
      }
      role.body = std::move(body);
    }
    kernel_.ops = std::move(ops);
  }

  Kernel& kernel_;
  const Synchronisation& synchronisation_;
  const std::vector<Dependence>& dependences_;
  const std::vector<BodyOp> ops_;
  std::vector<std::vector<int>> before_, after_;  // new operations around each old one
  std::map<std::string, int> names_;
};

}  // namespace

Synchronisation order_dependences(const std::vector<BodyOp>& ops, int num_roles,
                                  const std::vector<Dependence>& dependences, int max_distance) {
  return Orderer(ops, num_roles, dependences, max_distance).run();
}

void place_barriers(Kernel& kernel, const Synchronisation& synchronisation,
                    const std::vector<Dependence>& dependences) {
  Placer(kernel, synchronisation, dependences).run();
}

}  // namespace gdr
