// Reading a whole file, with an upper bound.
#pragma once

#include <cstddef>
#include <string>

namespace gdr {

// The bytes of the file, at most max_bytes + 1 of them, so that a parser sees that there are too many without anybody
// reading an endless file. Throws a config Error (GDR-C10) with the reason if it cannot be read.
std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace gdr
