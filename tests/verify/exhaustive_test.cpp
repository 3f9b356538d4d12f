// The verifier against every interleaving: small kernels with random faults in their synchronisation are explored
// completely, with the barriers as the hardware has them (a count and a parity bit) and copies that land at any moment.
// What verifies must have no interleaving that blocks for ever or reads another value than Kernel::ops means.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "../cpu/build_kind.hpp"
#include "mutate.hpp"
#include "rows.hpp"
#include "schedule/layout.hpp"

using namespace gdr;
using namespace gdr::testing;

namespace {

constexpr int kIterations = 5;
constexpr int kUnitBytes = 2048;           // half a tile: all footprints are whole units
constexpr std::size_t kMaxStates = 60000;  // beyond it a kernel is left out

// Two loaders fetch the halves of x for two readers; c hands a tile p to d.
Plan handover(int stages) {
  Draft d;
  d.tensor("x", TensorKind::input, TensorIndex::token, 32, 64);
  for (const char* role : {"a", "b", "c", "d"}) d.role(role, 1);
  d.smem("x", 32, 64, {.stages = stages});
  d.smem("p", 32, 64);
  d.acc("c", "cx", 32, 64);
  d.acc("d", "dx", 32, 64);
  d.mbarrier("x_arrived", 2, stages);
  d.mbarrier("x_free", 2, stages);
  d.mbarrier("p_ready", 1);
  d.mbarrier("p_free", 1);
  for (const char* role : {"a", "b"}) {
    const int row = role[0] == 'a' ? 0 : 16;
    d.wait(role, "x_free", stages);
    d.copy_in(role, std::string("x_in_") + role, Arg("x").rows(row, row + 16), Arg("x").rows(row, row + 16));
    d.arrive(role, "x_arrived", true);
  }
  d.wait("c", "x_arrived");
  d.op("c", OpKind::load, "c_load", {"cx", "x"}).operands[1].is_tensor = false;
  d.arrive("c", "x_free");
  d.wait("d", "x_arrived");
  d.op("d", OpKind::load, "d_load", {"dx", "x"}).operands[1].is_tensor = false;
  d.arrive("d", "x_free");
  d.wait("c", "p_free", 1);
  d.op("c", OpKind::store, "p_store", {"p", "cx"});
  d.arrive("c", "p_ready");
  d.wait("d", "p_ready");
  d.op("d", OpKind::load, "p_load", {"dx", "p"});
  d.arrive("d", "p_free");
  return d.finish();
}

// The same with p on the bytes of x: c may store only when d has read x, the loaders fetch only when d has read p.
Plan handover_on_one_slot() {
  Draft d;
  d.tensor("x", TensorKind::input, TensorIndex::token, 32, 64);
  for (const char* role : {"a", "b", "c", "d"}) d.role(role, 1);
  d.smem("x", 32, 64);
  d.smem("p", 32, 64, {.offset = 0});
  d.acc("c", "cx", 32, 64);
  d.acc("d", "dx", 32, 64);
  d.mbarrier("x_arrived", 2);
  d.mbarrier("x_read", 1);
  d.mbarrier("p_ready", 1);
  d.mbarrier("p_free", 1);
  for (const char* role : {"a", "b"}) {
    const int row = role[0] == 'a' ? 0 : 16;
    d.wait(role, "p_free", 1);
    d.copy_in(role, std::string("x_in_") + role, Arg("x").rows(row, row + 16), Arg("x").rows(row, row + 16));
    d.arrive(role, "x_arrived", true);
  }
  d.wait("c", "x_arrived");
  d.op("c", OpKind::load, "c_load", {"cx", "x"}).operands[1].is_tensor = false;
  d.wait("d", "x_arrived");
  d.op("d", OpKind::load, "d_load", {"dx", "x"}).operands[1].is_tensor = false;
  d.arrive("d", "x_read");
  d.wait("c", "x_read");
  d.op("c", OpKind::store, "p_store", {"p", "cx"});
  d.arrive("c", "p_ready");
  d.wait("d", "p_ready");
  d.op("d", OpKind::load, "p_load", {"dx", "p"});
  d.arrive("d", "p_free");
  return d.finish();
}

// All states that the hardware can reach, for kernels whose roles have one warp each and whose ops are copy_in, load,
// store, arrive and wait.
class Explorer {
 public:
  enum class Verdict { correct, faulty, too_large };

  explicit Explorer(const Kernel& kernel) : kernel_(kernel) {
    for (const Op& op : kernel.ops) operands_.push_back(smem_operand(op));
  }

  Verdict explore() {
    State start;
    start.warps.resize(kernel_.roles.size());
    for (const Barrier& barrier : kernel_.barriers) {
      start.phase.insert(start.phase.end(), static_cast<std::size_t>(barrier.stages), 0);
      start.lacking.insert(start.lacking.end(), static_cast<std::size_t>(barrier.stages), barrier.arrivals);
    }
    start.memory.assign(static_cast<std::size_t>(kernel_.smem_bytes / kUnitBytes + 1), kNothing);
    std::vector<State> todo = {start};
    std::unordered_set<std::string> seen = {key(start)};
    while (!todo.empty()) {
      const State state = std::move(todo.back());
      todo.pop_back();
      std::vector<State> next;
      if (!successors(state, next)) return Verdict::faulty;
      if (next.empty() && !is_end(state)) return Verdict::faulty;  // blocked for ever
      for (State& s : next)
        if (seen.insert(key(s)).second) todo.push_back(std::move(s));
      if (seen.size() > kMaxStates) return Verdict::too_large;
    }
    return Verdict::correct;
  }

 private:
  static constexpr int kNothing = -1, kInFlight = -2;

  // What a warp has issued and is not through: copies that may land, and arrivals that wait for those before them.
  struct Pending {
    int op = 0, iteration = 0;
    bool has_landed = false;
  };
  struct Warp {
    int step = 0, iteration = 0;
    std::vector<Pending> pending;
  };
  struct State {
    std::vector<Warp> warps;
    std::vector<int> phase, lacking;  // by barrier and copy
    std::vector<int> memory;          // by unit: iteration * ops + op that wrote it last
  };

  static std::string key(const State& s) {
    std::string text;
    const auto put = [&](int value) { text += static_cast<char>(value + 2); };
    for (const Warp& warp : s.warps) {
      put(warp.step), put(warp.iteration);
      for (const Pending& p : warp.pending) put(p.op), put(p.iteration), put(p.has_landed);
      text += '|';
    }
    for (const auto* list : {&s.phase, &s.lacking, &s.memory})
      for (const int value : *list) put(value);
    return text;
  }

  const Operand* smem_operand(const Op& op) const {
    for (const Operand& operand : op.operands)
      if (!operand.is_tensor && kernel_.tile(operand.name).space == Space::smem) return &operand;
    return nullptr;
  }

  std::set<int> units(int op, int iteration) const {
    std::set<int> found;
    const Operand& operand = *operands_[static_cast<std::size_t>(op)];
    for (int row = operand.rows.begin; row < operand.rows.end; ++row)
      found.insert(element_byte(kernel_.tile(operand.name), iteration, row, 0) / kUnitBytes);
    return found;
  }

  // The last op before `op` that writes this unit as part of the same tile.
  int meant_writer(int op, int iteration, int unit) const {
    for (int before = op - 1; before >= 0; --before) {
      const Operand* operand = operands_[static_cast<std::size_t>(before)];
      if (operand != nullptr && operand->access == Access::write &&
          operand->name == operands_[static_cast<std::size_t>(op)]->name && units(before, iteration).contains(unit))
        return id(before, iteration);
    }
    return kNothing;
  }

  int id(int op, int iteration) const { return iteration * static_cast<int>(kernel_.ops.size()) + op; }

  int copy_of(const Op& op, int iteration) const {
    int first = 0;
    for (const Barrier& barrier : kernel_.barriers) {
      if (barrier.name == op.barrier) return first + iteration % barrier.stages;
      first += barrier.stages;
    }
    return -1;
  }
  const Barrier& barrier_of(const Op& op) const {
    return *std::find_if(kernel_.barriers.begin(), kernel_.barriers.end(),
                         [&](const Barrier& barrier) { return barrier.name == op.barrier; });
  }

  void count_arrival(State& s, const Op& op, int iteration) const {
    const auto copy = static_cast<std::size_t>(copy_of(op, iteration));
    if (--s.lacking[copy] > 0) return;
    s.lacking[copy] = barrier_of(op).arrivals;
    ++s.phase[copy];
  }

  // Arrivals at the head of the queue fire; landed copies leave it.
  void settle(State& s, Warp& warp) const {
    while (!warp.pending.empty()) {
      const Pending& head = warp.pending.front();
      const Op& op = kernel_.ops[static_cast<std::size_t>(head.op)];
      if (op.kind == OpKind::copy_in && !head.has_landed) return;
      if (op.kind == OpKind::arrive) count_arrival(s, op, head.iteration);
      warp.pending.erase(warp.pending.begin());
    }
  }

  bool is_end(const State& s) const {
    return std::all_of(s.warps.begin(), s.warps.end(), [](const Warp& w) { return w.iteration == kIterations; });
  }

  // False if a step is at fault.
  bool successors(const State& state, std::vector<State>& next) const {
    for (std::size_t w = 0; w < state.warps.size(); ++w) {
      for (std::size_t p = 0; p < state.warps[w].pending.size(); ++p) {
        const Pending& pending = state.warps[w].pending[p];
        if (pending.has_landed || kernel_.ops[static_cast<std::size_t>(pending.op)].kind != OpKind::copy_in) continue;
        State s = state;
        for (const int unit : units(pending.op, pending.iteration))
          s.memory[static_cast<std::size_t>(unit)] = id(pending.op, pending.iteration);
        s.warps[w].pending[p].has_landed = true;
        settle(s, s.warps[w]);
        next.push_back(std::move(s));
      }
      if (state.warps[w].iteration == kIterations || kernel_.roles[w].body.empty()) continue;
      State s = state;
      bool may_go_on = true;
      if (!step(s, w, may_go_on)) return false;
      if (may_go_on) next.push_back(std::move(s));
    }
    return true;
  }

  bool step(State& s, std::size_t w, bool& may_go_on) const {
    Warp& warp = s.warps[w];
    const std::vector<Step>& body = kernel_.roles[w].body;
    const int i = body[static_cast<std::size_t>(warp.step)].op;
    const Op& op = kernel_.ops[static_cast<std::size_t>(i)];
    const int iteration = warp.iteration;
    if (op.kind == OpKind::wait) {
      const int meant = iteration - op.distance;
      if (meant >= 0) {
        const int phase = s.phase[static_cast<std::size_t>(copy_of(op, meant))];
        may_go_on = phase % 2 != meant / barrier_of(op).stages % 2;
      }
    } else if (op.kind == OpKind::arrive) {
      if (op.after_copies) {
        warp.pending.push_back({i, iteration, false});
        settle(s, warp);
      } else {
        count_arrival(s, op, iteration);
      }
    } else {
      for (const int unit : units(i, iteration)) {
        int& held = s.memory[static_cast<std::size_t>(unit)];
        if (held == kInFlight) return false;
        if (op.kind == OpKind::load && held != meant_writer(i, iteration, unit)) return false;
        if (op.kind == OpKind::store) held = id(i, iteration);
        if (op.kind == OpKind::copy_in) held = kInFlight;
      }
      if (op.kind == OpKind::copy_in) warp.pending.push_back({i, iteration, false});
    }
    if (++warp.step == static_cast<int>(body.size())) {
      warp.step = 0;
      ++warp.iteration;
    }
    return true;
  }

  const Kernel& kernel_;
  std::vector<const Operand*> operands_;
};

}  // namespace

namespace {

class Faults {
 public:
  explicit Faults(unsigned seed) : random_(seed) {}

  // One or two mutations of the synchronisation; says which. (Wrong counts are refused before anything is run: they
  // would test nothing here.)
  std::string mutate(Kernel& kernel) {
    std::string what;
    const int changes = 1 + below(2);
    for (int c = 0; c < changes; ++c) {
      std::vector<Mutant> mutants = sync_mutants(kernel);
      std::erase_if(mutants, [](const Mutant& m) {
        return m.mutation == Mutation::count_up || m.mutation == Mutation::count_down;
      });
      Mutant& mutant = mutants[static_cast<std::size_t>(below(static_cast<int>(mutants.size())))];
      what += mutant.what + "; ";
      kernel = std::move(mutant.kernel);
    }
    return what;
  }

  // Other stages and distances in several places at once, right ones and wrong ones.
  std::string turn_knobs(Kernel& kernel) {
    std::string what;
    for (Barrier& barrier : kernel.barriers) {
      if (below(3) > 0) continue;
      barrier.stages = 1 + below(3);
      what += fmt::format("{} {} stages; ", barrier.name, barrier.stages);
    }
    for (Op& op : kernel.ops)
      if (op.kind == OpKind::wait && op.distance > 0 && below(4) == 0) {
        op.distance = 1 + below(3);
        what += fmt::format("{} distance {}; ", op.id, op.distance);
      }
    return what;
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("what verifies is right in every interleaving") {
  constexpr unsigned kSeed = 20260;
  // The exploration itself takes the time: a sanitizer's build looks at the first ones only.
  const int kernels = cpu::test::test_is_slow() ? 300 : 1500;
  MESSAGE("seed " << kSeed);
  Faults faults(kSeed);
  int both_right = 0, both_wrong = 0, stricter = 0, left_out = 0;
  for (int k = 0; k < kernels; ++k) {
    Plan plan = k % 4 == 0 ? handover_on_one_slot() : handover(k % 4);
    Kernel& kernel = kernel_of(plan);
    kernel.smem_bytes = plan.smem_limit_bytes = 32768;  // room for barriers of more stages
    std::string what;
    if (k >= 4) what = k % 3 == 0 ? faults.turn_knobs(kernel) : faults.mutate(kernel);
    CAPTURE(what);
    const VerifyReport report = verify(plan, kernel);
    CAPTURE(report.text());
    if (k < 4) CHECK(report.text() == "");
    if (has(report.text(), "GDR-V08")) continue;  // not runnable: a barrier without arrivals
    const Explorer::Verdict verdict = Explorer(kernel).explore();
    if (verdict == Explorer::Verdict::too_large) {
      ++left_out;
    } else if (report.ok()) {
      CHECK(verdict == Explorer::Verdict::correct);
      ++both_right;
    } else {
      ++(verdict == Explorer::Verdict::faulty ? both_wrong : stricter);
    }
  }
  MESSAGE(both_right << " right, " << both_wrong << " wrong, " << stricter << " refused though no run shows it, "
                     << left_out << " too large");
  CHECK(both_right >= kernels / 20);
  CHECK(both_wrong >= kernels / 3);
  CHECK(stricter == 0);
  CHECK(left_out < kernels / 10);
}
