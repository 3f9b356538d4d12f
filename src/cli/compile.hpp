// The command `gdrjit compile`: plans' kernels as machine code in the cache, on a machine with or without a GPU.
#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>

namespace gdr {

// Adds the command to the program; its callback writes the result to `out`, and what the cache has to tell to standard
// error. Its JSON: kernels[] = {name, arch, target, registers, spill_bytes, local_bytes, smem_bytes, seconds, cached,
// kernel_key}.
void add_compile_command(CLI::App& app, std::ostream& out);

}  // namespace gdr
