// Proofs about a Plan, from the Plan alone and with its final byte offsets: it is well formed, everything lies where it
// may, nothing deadlocks, no two conflicting accesses are unordered, every read finds the bytes it means, and every
// fence that the asynchronous proxy needs is there. Shares no code with the passes that made the plan; of the model it
// uses the address function (layout.hpp) and the expression parser (expr.hpp), which define what a plan means.
// A finding is a short trace for people. Nothing is repaired, and no check can be switched off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/model.hpp"

namespace gdr {

// One execution of an op: by a warp of its role, in an iteration of the block's loop. -1: not about one of them.
struct OpPlace {
  std::string op;
  std::string role;
  int warp = -1;  // in its role
  int iteration = -1;
};

// Codes (fixed):
//   GDR-V01 a name does not resolve or is used twice        GDR-V10 race
//   GDR-V02 operands: number, kind, access, element type    GDR-V11 deadlock
//   GDR-V03 shapes: sizes that do not agree                 GDR-V12 phase: an early arrival, or a parity seen too late
//   GDR-V04 register tile: warp grid, owner, role           GDR-V13 shared memory holds another value than is read
//   GDR-V05 steps: coverage, order, prologue, epilogue      GDR-V14 registers hold another value than is read
//   GDR-V06 expression                                      GDR-V15 fence missing
//   GDR-V07 mask, `where`                                   GDR-V16 bounds: outside a tile, a part or a slot
//   GDR-V08 barrier: participants, count, id                GDR-V17 placement: budget, alignment, barriers' bytes
//   GDR-V09 threads and registers                           GDR-V18 tensors: written not once, or read before written
struct Finding {
  std::string code;
  std::string kernel;  // empty: about the whole plan
  std::string what;    // whole sentences; names ops, roles, tiles, barriers
  // The trace, where there is one: `a` is the op at fault (the later one of a pair), `b` the one it collides with.
  OpPlace a, b;
  std::string tile;
  int byte_begin = -1, byte_end = -1;  // of the block's shared memory
  std::string remedy;                  // what would make it right, e.g. the barrier that would order the two

  // "GDR-V10 race in KERNEL: what; remedy."
  std::string text() const;
};

// The short name of a code ("race"), as it stands in Finding::text.
std::string_view finding_title(std::string_view code);

struct VerifyOptions {
  int max_findings = 20;  // kept per kernel; the rest is only counted
};

struct VerifyReport {
  std::vector<Finding> findings;
  int findings_left_out = 0;
  int kernels = 0;
  int iterations = 0;                 // of all kernels' runs
  std::int64_t steps_run = 0;         // executions of a step by a warp
  std::int64_t accesses_checked = 0;  // of a warp to a set of bytes of shared memory
  std::int64_t phases_checked = 0;    // of mbarriers

  bool ok() const { return findings.empty() && findings_left_out == 0; }
  // One finding a line, then how many were left out; empty if there is none.
  std::string text() const;
};

// Every kernel, and what concerns the kernels together (tensors). Never throws for a faulty plan.
VerifyReport verify(const Plan& plan, const VerifyOptions& options = {});
// One kernel of the plan (or one that is meant for it): its tensors and problem are the plan's.
VerifyReport verify(const Plan& plan, const Kernel& kernel, const VerifyOptions& options = {});

}  // namespace gdr
