// One entry of the cache: a payload of bytes with kind, key and facts, held as the bytes of its file. The file
// describes itself and is checked whole when it is read. kEntryFields and the text below it are the layout;
// docs/cache-format.md shows it with an example, and a test holds the two together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gdr {

// What is worth knowing about a payload (compiler version, registers, spill bytes): for people and checks, never part
// of the key. Any text; names and values together with the rest of the header must fit kMaxHeaderBytes.
using Facts = std::map<std::string, std::string>;

struct EntryField {
  const char* name;
  std::size_t offset;
  std::size_t bytes;
  const char* meaning;
};

// The fixed part of the header. Numbers are unsigned, little endian, 8 bytes.
inline constexpr EntryField kEntryFields[] = {
    {"magic", 0, 8, "0x89, `GDRjit`, newline: what a text-mode copy damages first"},
    {"version", 8, 8, "version of this layout: 1"},
    {"checksum", 16, 32, "XXH3-128 of every byte from offset 48 to the end of the file, as hexadecimal digits"},
    {"payload_offset", 48, 8, "where the payload begins: a multiple of 64, at most 65,536"},
    {"payload_bytes", 56, 8, "length of the payload; the file ends with it"},
    {"key", 64, 32, "32 lower-case hexadecimal digits"},
    {"kind", 96, 16, "what the payload is (`plan`, `cubin`): 1 to 15 of a-z 0-9 _, then zeros"},
    {"fact_count", 112, 8, "how many facts follow"},
};
// From offset 120 on, a fact is: bytes of its name (8), bytes of its value (8), name, value; facts are sorted by name.
// Zeros fill up to payload_offset.
inline constexpr std::size_t kFixedHeaderBytes = 120;
inline constexpr std::size_t kMaxHeaderBytes = 65536;
inline constexpr std::size_t kPayloadAlignment = 64;
inline constexpr std::uint64_t kEntryVersion = 1;

// True for 1 to 15 characters of a-z, 0-9 and _.
bool is_kind(std::string_view text);
// True for 32 lower-case hexadecimal digits.
bool is_key(std::string_view text);

struct EntryHeader {
  std::string kind;
  std::string key;
  Facts facts;
  std::uint64_t payload_offset = 0;
  std::uint64_t payload_bytes = 0;
};

// Reads a header from the first bytes of a file (all of it, or at least kMaxHeaderBytes). Returns nothing and sets
// `reason` ("its first 8 bytes are not the magic bytes ...") if it is not a header of a file of `file_bytes` bytes.
// Does not check the checksum.
std::optional<EntryHeader> parse_header(std::string_view begin_of_file, std::uint64_t file_bytes, std::string& reason);

class Entry {
 public:
  // Puts the bytes of an entry file together. `kind` and `key` as in is_kind and is_key.
  // Throws an internal Error (GDR-X01) if they are not, or if the facts make the header too long.
  static Entry make(std::string_view kind, std::string_view key, std::string_view payload, const Facts& facts);

  // Takes the bytes of an entry file after checking all of them. Returns nothing and sets `reason` if one is wrong, or
  // if the entry is not the one asked for.
  static std::optional<Entry> parse(std::string image, std::string_view kind, std::string_view key,
                                    std::string& reason);

  const std::string& kind() const { return header_.kind; }
  const std::string& key() const { return header_.key; }
  const Facts& facts() const { return header_.facts; }
  std::string_view payload() const { return std::string_view(image_).substr(header_.payload_offset); }
  // The bytes of the file.
  const std::string& image() const { return image_; }

 private:
  Entry(std::string image, EntryHeader header) : image_(std::move(image)), header_(std::move(header)) {}

  std::string image_;
  EntryHeader header_;
};

}  // namespace gdr
