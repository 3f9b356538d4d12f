// Text to a JSON tree: the half of config/json.hpp that meets raw bytes. The parser keeps its own stack, so depth is a
// limit that is checked and never a stack overflow.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/json.hpp"

namespace gdr {

// Throws Error C01 to C04 of config/json.hpp.
nlohmann::json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits);

}  // namespace gdr
