#include "plan/happens_before.hpp"

#include <algorithm>

namespace gdr {

std::vector<BodyOp> body_ops(const Kernel& kernel) {
  std::vector<BodyOp> ops(kernel.ops.size());
  for (std::size_t r = 0; r < kernel.roles.size(); ++r)
    for (const Step& step : kernel.roles[r].body) {
      const auto at = static_cast<std::size_t>(step.op);
      ops[at] = {static_cast<int>(r), kernel.ops[at].kind == OpKind::copy_in};
    }
  return ops;
}

HappensBefore::HappensBefore(const std::vector<BodyOp>& ops, int num_roles, const std::vector<Wait>& waits,
                             const std::vector<Meeting>& meetings, int max_distance)
    : ops_(&ops), num_sources_(2 * num_roles), num_roles_(num_roles), last_iteration_(max_distance) {
  // A chain of waits whose distances add up to d starts d iterations earlier and never leaves that window, so
  // iterations 0..max_distance show every order that later iterations have.
  const int count = static_cast<int>(ops.size());
  clocks_.assign(static_cast<std::size_t>(last_iteration_ + 1) * ops.size() * static_cast<std::size_t>(num_sources_),
                 -1);
  std::vector<std::vector<Wait>> waits_of(ops.size());
  for (const Wait& wait : waits) waits_of[static_cast<std::size_t>(wait.after)].push_back(wait);
  std::vector<bool> meets(ops.size());
  for (const Meeting& meeting : meetings) meets[static_cast<std::size_t>(meeting.op)] = true;

  std::vector<std::vector<int>> now(static_cast<std::size_t>(num_roles),
                                    std::vector<int>(static_cast<std::size_t>(num_sources_), -1));
  std::vector<int> previous(static_cast<std::size_t>(num_roles), -1);  // the role's last operation
  const auto at = [&](int iteration, int op) {
    return clocks_.begin() + (static_cast<std::ptrdiff_t>(iteration) * count + op) * num_sources_;
  };
  for (int iteration = 0; iteration <= last_iteration_; ++iteration)
    for (int op = 0; op < count; ++op) {
      const int role = ops[static_cast<std::size_t>(op)].role;
      if (role < 0) continue;
      std::vector<int>& known = now[static_cast<std::size_t>(role)];
      for (const Wait& wait : waits_of[static_cast<std::size_t>(op)]) {
        if (wait.distance > iteration) continue;
        const auto then = at(iteration - wait.distance, wait.before);
        for (int s = 0; s < num_sources_; ++s)
          known[static_cast<std::size_t>(s)] = std::max(known[static_cast<std::size_t>(s)], then[s]);
        const int stamp = (iteration - wait.distance) * count + wait.before;
        const BodyOp& source = ops[static_cast<std::size_t>(wait.before)];
        auto& issued = known[static_cast<std::size_t>(source.role)];
        issued = std::max(issued, stamp);
        if (source.is_copy) {
          auto& landed = known[static_cast<std::size_t>(num_roles + source.role)];
          landed = std::max(landed, stamp);
        }
      }
      if (meets[static_cast<std::size_t>(op)])
        known[static_cast<std::size_t>(role)] =
            std::max(known[static_cast<std::size_t>(role)], previous[static_cast<std::size_t>(role)]);
      std::copy(known.begin(), known.end(), at(iteration, op));
      previous[static_cast<std::size_t>(role)] = iteration * count + op;
    }
}

int HappensBefore::source_of(int op) const {
  const BodyOp& body = (*ops_)[static_cast<std::size_t>(op)];
  return body.is_copy ? num_roles_ + body.role : body.role;
}

int HappensBefore::clock(int op, int iteration, int source) const {
  const std::size_t row = static_cast<std::size_t>(iteration) * ops_->size() + static_cast<std::size_t>(op);
  return clocks_[row * static_cast<std::size_t>(num_sources_) + static_cast<std::size_t>(source)];
}

bool HappensBefore::holds(int before, int after, int distance) const {
  const int stamp = (last_iteration_ - distance) * static_cast<int>(ops_->size()) + before;
  return clock(after, last_iteration_, source_of(before)) >= stamp;
}

}  // namespace gdr
