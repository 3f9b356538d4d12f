#include "core/text.hpp"

namespace gdr {

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;  // 10xxxxxx goes on a sequence
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace gdr
