// The command `gdrjit run fwd|bwd`: runs the library on a folder of .npy files, and checks the results on request.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>

namespace gdr {

// Adds the command to the program. Its callback writes the result to `out` and throws Error: config (2), unsupported
// (3), and check_failed (6) if --check found an error above its limit.
void add_run_command(CLI::App& app, std::ostream& out);

}  // namespace gdr
