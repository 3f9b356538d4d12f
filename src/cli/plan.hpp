// The commands `gdrjit plan` (what lies where, when and why), `gdrjit verify` (the proofs about a plan) and
// `gdrjit emit` (its kernels as CUDA source).
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>

namespace gdr {

// Adds the command to the program. Its callback writes the result to `out`, or to a file with -o. It throws Error:
// config (2), unsupported (3: nothing fits, not supported), check_failed (6: `verify` found a fault).
void add_plan_command(CLI::App& app, std::ostream& out);
void add_verify_command(CLI::App& app, std::ostream& out);
void add_emit_command(CLI::App& app, std::ostream& out);

}  // namespace gdr
