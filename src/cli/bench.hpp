// The command `gdrjit bench bwd`: times the kernels of a plan on this machine's GPU.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>

namespace gdr {

void add_bench_command(CLI::App& app, std::ostream& out);

}  // namespace gdr
