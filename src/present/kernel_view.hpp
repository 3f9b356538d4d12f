// A kernel as the table and the picture show it: its operations as columns in canonical order, its barriers as events
// with those who arrive and those who wait. Derived from the model alone.
#pragma once

#include <string>
#include <vector>

#include "schedule/memory_map.hpp"
#include "schedule/model.hpp"

namespace gdr {

enum class Section { prologue, body, epilogue };

// An operation that does work (barriers and fences are no columns).
struct OpColumn {
  int op = 0;    // index into Kernel::ops
  int role = 0;  // index into Kernel::roles
  Section section = Section::body;
  std::string step;  // "3" of "3: D1 = er (K dS)"; empty where the formula names no step
};

// An arrive, wait or sync in a role's list. `before`, `after`: the columns of the nearest working ops of that list, or
// -1 at its ends.
struct BarrierUse {
  int op = 0;
  int role = 0;
  int before = -1;  // the column that the role has finished
  int after = -1;   // the column that comes next
};

struct BarrierView {
  const Barrier* barrier = nullptr;
  std::vector<BarrierUse> arrivals;
  std::vector<BarrierUse> waits;
  std::vector<BarrierUse> syncs;  // arrive and wait in one, of a named barrier
};

struct KernelView {
  const Kernel* kernel = nullptr;
  std::vector<OpColumn> columns;      // prologue, body, epilogue; each in canonical order
  std::vector<int> column_of_op;      // -1: no column
  std::vector<TileFacts> tiles;       // shared memory, in the order of Kernel::tiles
  std::vector<BarrierView> barriers;  // in the order of Kernel::barriers

  const Op& op(const OpColumn& column) const { return kernel->ops[static_cast<std::size_t>(column.op)]; }
  // The columns of the body: [begin, end).
  Range body() const;
  // The first column at or after an op of the body, and the last one at or before it.
  int column_from(int op) const;
  int column_until(int op) const;
};

// Points into `kernel`, which must outlive it.
KernelView view_kernel(const Kernel& kernel);

// One letter for each kind of work, upper case for matrix products; what they mean, for a legend.
char op_letter(OpKind kind);
inline constexpr const char* kOpLetters =
    "i copy in, o copy out, l load, s store, M mma, e elementwise, + sum, t inverse, c cast";

// "3" of "3: D1 = er (K dS)": what stands before the first colon, if it is at most three characters.
std::string step_label(const std::string& step);

}  // namespace gdr
