// The configurations that gdrjit ships, built into the library, and loading by what a user typed: the name of a
// shipped one, a file, or for budgets a number of bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/arch.hpp"
#include "config/budget.hpp"
#include "config/shape.hpp"

namespace gdr {

enum class ConfigKind { arch, shape, budget };

// Names of the shipped configurations in alphabetical order, numbers inside names by value (sm_90 before sm_100).
std::vector<std::string_view> config_names(ConfigKind kind);

// The JSON text of a shipped configuration. Throws a config Error (GDR-C11) that lists near names, or all.
std::string_view config_text(ConfigKind kind, std::string_view name);

// `name_or_file` is a file if it holds a '/' or ends in ".json", else the name of a shipped configuration.
// Throw a config Error: GDR-C10 (file cannot be read), C11 (unknown name), or those of read_arch and its siblings.
Arch load_arch(const std::string& name_or_file);
Shape load_shape(const std::string& name_or_file);
Budget load_budget(const std::string& name_or_file_or_bytes);

}  // namespace gdr
