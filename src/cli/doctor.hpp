// The command `gdrjit doctor`: what this program is, what it can do here, and which settings are in force.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>

namespace gdr {

// Adds the command to the program; its callback writes to `out`.
void add_doctor_command(CLI::App& app, std::ostream& out);

}  // namespace gdr
