// What all config files have in common: "schema_version", "about" and "name".
#pragma once

#include <string>
#include <string_view>

#include "config/json.hpp"

namespace gdr {

// Reads the three keys and returns the name. Throws Error C05, C07 or C08.
std::string read_config_header(ObjectReader& reader);

// The key "name": 1 to 64 lower-case letters, digits and underscores, so that it can stand in file and kernel names.
std::string read_config_name(ObjectReader& reader);

// A string that says something: not empty.
std::string read_sentence(ObjectReader& reader, std::string_view key);

}  // namespace gdr
