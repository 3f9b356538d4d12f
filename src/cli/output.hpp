// Where a command's result goes: a stream, or a file that appears whole or not at all; and what is said beside it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gdr {

// Writes beside `path` and renames, so that a reader never sees half a file; the mode of a file that was there stays. A
// link is followed; a device or a pipe is written to in place. Throws a config Error (GDR-L01) with the reason if that
// is not possible; nothing is left behind then.
void write_file(const std::string& path, std::string_view bytes);

// Indented, with a line end. Bytes that are not UTF-8 (of a path in the environment) are replaced.
std::string json_output(const nlohmann::ordered_json& json);

// Whether colours may be used for a result on standard output: a terminal, and NO_COLOR is not set.
bool color_on_stdout();

// A line for people on standard error, "gdrjit: <text>". Thread-safe.
void tell(const std::string& text);

}  // namespace gdr
