#include "verify/registers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "verify/footprint.hpp"

namespace gdr::verifying {
namespace {

constexpr int kUndefined = 0;  // the version of registers that nothing has written
constexpr int kOutside = -1;   // the iteration of prologue and epilogue
constexpr int kIterations = 2;

// A value: the op that wrote it anew and the mma ops that have added to it since. Sums commute (up to rounding, which
// the order of slices shapes anyway), so what was added is a set.
struct Version {
  std::pair<int, int> written;  // op, iteration
  std::set<std::pair<int, int>> added;
  auto operator<=>(const Version&) const = default;
  bool has(int op, int iteration) const {
    return written == std::pair(op, iteration) || added.contains({op, iteration});
  }
};

class RoleRegisters {
 public:
  RoleRegisters(const KernelIndex& index, int role, Findings& findings) : index_(index), role_(role), out_(findings) {
    versions_.push_back({{-1, kOutside}, {}});
    for (const Section section : {Section::prologue, Section::body, Section::epilogue})
      for (const Step& step : steps_of(index.role(role), section)) collect_borders(step);
  }

  void check() {
    State meant, found;
    for (State* state : {&meant, &found})
      for (const auto& [tile, rows] : row_borders_)
        (*state)[tile].assign(rows.size() * col_borders_[tile].size(), kUndefined);
    const bool is_once = index_.kernel->loop == LoopKind::once;
    run(Section::prologue, kOutside, meant, found);
    if (!is_once) run_epilogue(meant, found);
    for (int iteration = 0; iteration < (is_once ? 1 : kIterations); ++iteration) {
      run(Section::body, iteration, meant, found);
      run_epilogue(meant, found);
    }
  }

 private:
  using State = std::map<int, std::vector<int>>;  // by tile: the version of each cell

  void collect_borders(const Step& step) {
    const Op& op = index_.op(step.op);
    for (int k = 0; k < count_of(op.operands); ++k) {
      if (!index_.is_reg(step.op, k)) continue;
      const int tile = at(at(index_.ops, step.op).operands, k).tile;
      const auto [rows, cols] = rectangle(step, k);
      row_borders_[tile].insert({rows.begin, rows.end});
      col_borders_[tile].insert({cols.begin, cols.end});
    }
  }

  std::pair<Range, Range> rectangle(const Step& step, int k) const {
    const Op& op = index_.op(step.op);
    const Operand& o = at(op.operands, k);
    if (op.kind == OpKind::mma && k == 1) return {o.rows, contraction_of(op, 1, step)};
    return {o.rows, o.cols};
  }

  // Calls visit(cell) for each cell of the rectangle.
  template <typename Visit>
  void for_cells(const Step& step, int k, const Visit& visit) const {
    const int tile = at(at(index_.ops, step.op).operands, k).tile;
    const auto [rows, cols] = rectangle(step, k);
    const std::set<int>& row_borders = row_borders_.at(tile);
    const std::set<int>& col_borders = col_borders_.at(tile);
    int r = 0;
    for (const int row : row_borders) {
      int c = 0;
      for (const int col : col_borders) {
        if (row >= rows.begin && row < rows.end && col >= cols.begin && col < cols.end)
          visit(r * count_of(col_borders) + c);
        ++c;
      }
      ++r;
    }
  }

  bool reads(int op, int k) const {
    const Operand& o = at(index_.op(op).operands, k);
    if (index_.op(op).kind != OpKind::reduce || k != 1) return o.access != Access::write;
    const auto& uses = at(index_.ops, op).uses;  // the domain is read only if the expression names it
    return std::any_of(uses.begin(), uses.end(), [&](const ElementUse& use) { return use.name == o.name; });
  }

  // First the section's ops as Kernel::ops has them, then as the role's list has them.
  void run(Section section, int iteration, State& meant, State& found) {
    meant_reads_.clear();
    const std::vector<Step>& steps = steps_of(index_.role(role_), section);
    std::set<int> ops;
    for (const Step& step : steps) ops.insert(step.op);
    for (const int op : ops) execute({op, 0, index_.op(op).slices}, iteration, meant, true);
    for (const Step& step : steps) execute(step, iteration, found, false);
  }

  void run_epilogue(State meant, State found) { run(Section::epilogue, kOutside, meant, found); }

  void execute(const Step& step, int iteration, State& state, bool is_meant) {
    const Op& op = index_.op(step.op);
    for (int k = 0; k < count_of(op.operands); ++k) {
      if (!index_.is_reg(step.op, k) || !reads(step.op, k)) continue;
      const int tile = at(at(index_.ops, step.op).operands, k).tile;
      const bool adds = op.kind == OpKind::mma && k == 0;
      for_cells(step, k, [&](int cell) {
        const int version = at(state[tile], cell);
        if (is_meant) {
          meant_reads_[{step.op, k, cell}] = version;
        } else if (adds) {
          if (version == kUndefined && step.slice_begin == 0) report(step, k, iteration, version, kUndefined);
        } else {
          check_read(step, k, iteration, version, meant_reads_[{step.op, k, cell}]);
        }
      });
    }
    if (op.operands.empty() || !index_.is_reg(step.op, 0)) return;
    const int tile = at(at(index_.ops, step.op).operands, 0).tile;
    for_cells(step, 0, [&](int cell) {
      int& version = at(state[tile], cell);
      if (op.kind != OpKind::mma || (op.operands.front().access == Access::write && step.slice_begin == 0)) {
        version = number_of({{step.op, iteration}, {}});
      } else if (step.slice_begin == 0) {
        Version sum = at(versions_, version);
        sum.added.insert({step.op, iteration});
        version = number_of(sum);
      } else if (!is_meant && !at(versions_, version).has(step.op, iteration)) {
        report_lost(step, iteration);
      }
    });
    if (!is_meant && op.slices > 1) {
      if (step.slice_end < op.slices)
        unfinished_.insert(step.op);
      else
        unfinished_.erase(step.op);
    }
  }

  int number_of(const Version& version) {
    const auto known = std::find(versions_.begin(), versions_.end(), version);
    if (known != versions_.end()) return static_cast<int>(known - versions_.begin());
    versions_.push_back(version);
    return count_of(versions_) - 1;
  }

  void check_read(const Step& step, int k, int iteration, int version, int meant) {
    for (const int op : unfinished_)
      if (at(versions_, version).has(op, iteration)) return report_partial(step, k, iteration, op);
    if (version == kUndefined || version != meant) report(step, k, iteration, version, meant);
  }

  std::string describe(int version) const {
    if (version == kUndefined) return "registers that nothing has written";
    const auto name = [&](const std::pair<int, int>& write) {
      return write.second == kOutside ? fmt::format("`{}`", index_.op(write.first).id)
                                      : fmt::format("`{}` of iteration {}", index_.op(write.first).id, write.second);
    };
    const Version& v = at(versions_, version);
    std::string text = v.written.first < 0 ? "undefined registers" : "the result of " + name(v.written);
    for (const auto& write : v.added) text += " plus " + name(write);
    return text;
  }

  // Adds the trace; null if the operand was reported before.
  Finding* begin(const Step& step, int k, int iteration, const std::string& what) {
    if (!reported_.insert({step.op, k}).second) return nullptr;
    const Role& role = index_.role(role_);
    const std::string& tile = index_.tile(step.op, k)->name;
    const std::string when = iteration == kOutside ? "" : fmt::format(", iteration {}", iteration);
    Finding& finding = out_.add("GDR-V14", "op `{}` (role {}{}) {}", index_.op(step.op).id, role.name, when, what);
    finding.a = {index_.op(step.op).id, role.name, -1, iteration};
    finding.tile = tile;
    return &finding;
  }

  void report(const Step& step, int k, int iteration, int version, int meant) {
    std::string what = fmt::format("reads {} and finds {}", index_.tile(step.op, k)->name, describe(version));
    if (meant != version) what += "; it means " + describe(meant);
    Finding* finding = begin(step, k, iteration, what);
    if (finding == nullptr || version == kUndefined) return;
    const auto& [op, when] = at(versions_, version).written;
    if (op >= 0) finding->b = {index_.op(op).id, index_.role(role_).name, -1, when};
  }

  void report_partial(const Step& step, int k, int iteration, int op) {
    Finding* finding = begin(step, k, iteration,
                             fmt::format("reads {} while `{}` has not run all of its slices",
                                         index_.tile(step.op, k)->name, index_.op(op).id));
    if (finding != nullptr) finding->b = {index_.op(op).id, index_.role(role_).name, -1, iteration};
  }

  void report_lost(const Step& step, int iteration) {
    begin(
        step, 0, iteration,
        fmt::format("goes on adding to {}, which was written anew between its slices", index_.tile(step.op, 0)->name));
  }

  const KernelIndex& index_;
  int role_;
  Findings& out_;
  std::map<int, std::set<int>> row_borders_, col_borders_;  // by tile
  std::vector<Version> versions_;                           // 0: undefined
  std::map<std::tuple<int, int, int>, int> meant_reads_;    // op, operand, cell -> version
  std::set<int> unfinished_;                                // ops with slices still to run
  std::set<std::pair<int, int>> reported_;                  // op, operand
};

}  // namespace

void check_registers(const KernelIndex& index, Findings& findings) {
  for (int role = 0; role < count_of(index.kernel->roles); ++role) RoleRegisters(index, role, findings).check();
}

}  // namespace gdr::verifying
