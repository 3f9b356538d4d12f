// A plan as text for people: what was chosen and why it fits, then for each kernel where every tile lies and when it
// lives, who does what, which barriers order it, and what it costs. At most 120 columns wide.
#pragma once

#include <string>

#include "plan/facts.hpp"
#include "schedule/model.hpp"

namespace gdr {

struct TableOptions {
  bool color = false;    // emphasis by terminal escapes
  bool explain = false;  // what else was tried and why it lost, and the log of the passes
  std::string kernel{};  // only this one: its name or its function; empty: all
  std::string proof{};   // a sentence about the proof of the plan; empty: none
};

// `facts` is of this plan: as many kernels, in the same order.
std::string plan_table(const Plan& plan, const PlanFacts& facts, const TableOptions& options);

// The sentence that opens every report: strategy, chunk, split, bytes of its largest kernel and bytes left.
std::string plan_sentence(const Plan& plan);
// What a direct port of the largest kernel needs and by how much it misses the limit; empty where it is not known.
std::string direct_port_sentence(const Plan& plan, const PlanFacts& facts);
// Whether a kernel is meant by a name that a user gave: its own or its function's; an empty one means all.
bool is_meant(const Kernel& kernel, const std::string& name);
// Throws a config Error (GDR-T01) that lists the plan's kernels if `name` means none of them.
void check_meant(const Plan& plan, const std::string& name);

}  // namespace gdr
