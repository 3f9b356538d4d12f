// Fields of the file layouts: numbers as 8 bytes, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cache/entry.hpp"

namespace gdr {

inline std::string number_bytes(std::uint64_t value) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>((value >> (8 * byte)) & 0xff));
  return bytes;
}

inline std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t byte = 0; byte < 8; ++byte)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + byte])} << (8 * byte);
  return value;
}

inline std::string_view text_at(std::string_view bytes, const EntryField& field) {
  return bytes.substr(field.offset, field.bytes);
}

// True if each field begins where the one before ends, and the last ends at `bytes`.
constexpr bool fields_fill(std::span<const EntryField> fields, std::size_t bytes) {
  std::size_t offset = 0;
  for (const EntryField& field : fields) {
    if (field.offset != offset) return false;
    offset += field.bytes;
  }
  return offset == bytes;
}

}  // namespace gdr
