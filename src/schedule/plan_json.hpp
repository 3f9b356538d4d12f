// A Plan as JSON text and back: the file that `gdrjit plan --format json` writes and that `verify` and `emit` read.
// docs/plan-format.md describes every key. Two kinds of keys stand in it:
//   model    the fields of schedule/model.hpp: the plan itself
//   derived  what follows from them (bytes, threads, lifetimes, aliases): written for readers; when a file that is
//            read has them, they must agree with the model, and may be left out
// A report (src/present) adds planned keys: cost, bounds and names of configs. The reader checks their types only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "schedule/model.hpp"

namespace gdr {

// Deterministic to the byte; plan_from_json gives back an equal Plan. The plan must be well-formed (below); throws
// Error (internal) for what a file cannot say: an op in no role's list, a repeated op id, a register tile of no role.
std::string plan_to_json(const Plan& plan);
nlohmann::ordered_json plan_to_tree(const Plan& plan);

// The hash of plan_to_json.
std::string plan_hash(const Plan& plan);

// Reads a plan or a report. `source` (a file name) opens every message. Throws Error (config, GDR-C01 to C08 of
// config/json.hpp, C20 for an element type, and GDR-S10 for a derived key that disagrees with the model).
// What it returns is well-formed: every name resolves, every rectangle and number is inside the limits, expressions
// parse, and the functions of layout.hpp can be called on every tile. Whether it is right is for src/verify to say.
Plan plan_from_json(std::string_view text, const std::string& source);

}  // namespace gdr
