// JSON as text that people read and that diffs well: keys in the given order, whatever fits on a line of 120 columns
// stands on one line, other objects put their short members on shared lines and each long member on lines of its own.
// The same value gives the same bytes everywhere.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace gdr {

// The text, with a newline at its end. Numbers must be finite; strings must be UTF-8 (other bytes become U+FFFD).
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace gdr
