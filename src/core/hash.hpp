// Hash of bytes for keys and file checks: XXH3, 128 bits. Not meant against an adversary.
// The same bytes give the same text on every machine and in every release.
#pragma once

#include <string>
#include <string_view>

namespace gdr {

// 32 lower-case hexadecimal digits, most significant first.
std::string hash_hex(std::string_view bytes);

}  // namespace gdr
