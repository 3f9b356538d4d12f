// Text of others inside our messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gdr {

// The text, or its first `max_bytes` bytes (fewer, so as not to cut a UTF-8 sequence) and "...".
std::string shortened(std::string_view text, std::size_t max_bytes);

}  // namespace gdr
