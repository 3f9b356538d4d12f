#include "cache/entry.hpp"

#include <iterator>

#include "cache/bytes.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"

namespace gdr {
namespace {

constexpr std::string_view kMagicBytes{"\x89GDRjit\n", 8};

constexpr const EntryField& kMagic = kEntryFields[0];
constexpr const EntryField& kVersion = kEntryFields[1];
constexpr const EntryField& kChecksum = kEntryFields[2];
constexpr const EntryField& kPayloadOffset = kEntryFields[3];
constexpr const EntryField& kPayloadBytes = kEntryFields[4];
constexpr const EntryField& kKey = kEntryFields[5];
constexpr const EntryField& kKind = kEntryFields[6];
constexpr const EntryField& kFactCount = kEntryFields[7];
constexpr std::size_t kCheckedFrom = kChecksum.offset + kChecksum.bytes;

static_assert(std::size(kEntryFields) == 8 && fields_fill(kEntryFields, kFixedHeaderBytes));

std::string facts_bytes(const Facts& facts) {
  std::string bytes;
  for (const auto& [name, value] : facts)
    bytes += number_bytes(name.size()) + number_bytes(value.size()) + name + value;
  return bytes;
}

// Reads `count` facts from `bytes`, which end where the payload begins. False if they do not fit or are out of order.
bool parse_facts(std::string_view bytes, std::uint64_t count, Facts& facts) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (bytes.size() < 16) return false;
    const std::uint64_t name_bytes = number_at(bytes, 0);
    const std::uint64_t value_bytes = number_at(bytes, 8);
    bytes.remove_prefix(16);
    if (name_bytes > bytes.size() || value_bytes > bytes.size() - name_bytes) return false;
    std::string name(bytes.substr(0, name_bytes));
    if (!facts.empty() && facts.rbegin()->first >= name) return false;
    facts.emplace_hint(facts.end(), std::move(name), bytes.substr(name_bytes, value_bytes));
    bytes.remove_prefix(name_bytes + value_bytes);
  }
  return bytes.size() < kPayloadAlignment && bytes.find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

bool is_kind(std::string_view text) {
  return !text.empty() && text.size() < kKind.bytes &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

bool is_key(std::string_view text) {
  return text.size() == kKey.bytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<EntryHeader> parse_header(std::string_view begin_of_file, std::uint64_t file_bytes, std::string& reason) {
  const auto wrong = [&](std::string text) {
    reason = std::move(text);
    return std::nullopt;
  };
  if (file_bytes < kFixedHeaderBytes || begin_of_file.size() < kFixedHeaderBytes)
    return wrong(fmt::format("it has {} bytes, the header alone takes {}", file_bytes, kFixedHeaderBytes));
  if (text_at(begin_of_file, kMagic) != kMagicBytes) return wrong("its first 8 bytes are not those of a cache entry");
  if (const std::uint64_t version = number_at(begin_of_file, kVersion.offset); version != kEntryVersion)
    return wrong(fmt::format("its format has version {}, this gdrjit reads {}", version, kEntryVersion));

  EntryHeader header;
  header.payload_offset = number_at(begin_of_file, kPayloadOffset.offset);
  header.payload_bytes = number_at(begin_of_file, kPayloadBytes.offset);
  if (header.payload_offset < kFixedHeaderBytes || header.payload_offset > kMaxHeaderBytes ||
      header.payload_offset % kPayloadAlignment != 0)
    return wrong(fmt::format("its payload cannot begin at byte {}", header.payload_offset));
  if (header.payload_offset > file_bytes || file_bytes - header.payload_offset != header.payload_bytes)
    return wrong(fmt::format("it has {} bytes, its header says {} and {} of payload", file_bytes, header.payload_offset,
                             header.payload_bytes));

  header.key = text_at(begin_of_file, kKey);
  const std::string_view kind = text_at(begin_of_file, kKind);
  header.kind = kind.substr(0, kind.find('\0'));
  if (!is_key(header.key)) return wrong("its key is not 32 hexadecimal digits");
  if (!is_kind(header.kind) || kind.find_first_not_of('\0', header.kind.size()) != std::string_view::npos)
    return wrong("its kind is not 1 to 15 of a-z, 0-9 and _");
  const std::string_view facts = begin_of_file.substr(kFixedHeaderBytes, header.payload_offset - kFixedHeaderBytes);
  if (!parse_facts(facts, number_at(begin_of_file, kFactCount.offset), header.facts))
    return wrong("its facts do not fill the header as they should");
  return header;
}

Entry Entry::make(std::string_view kind, std::string_view key, std::string_view payload, const Facts& facts) {
  internal_check(is_kind(kind), "cache: a kind is 1 to 15 of a-z, 0-9 and _");
  internal_check(is_key(key), "cache: a key is 32 hexadecimal digits");
  const std::string fact_text = facts_bytes(facts);
  const std::size_t payload_offset =
      (kFixedHeaderBytes + fact_text.size() + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
  internal_check(payload_offset <= kMaxHeaderBytes, "cache: the facts of an entry take more than 64 KiB");

  std::string image;
  image.reserve(payload_offset + payload.size());
  image += kMagicBytes;
  image += number_bytes(kEntryVersion);
  image.append(kChecksum.bytes, '0');
  image += number_bytes(payload_offset);
  image += number_bytes(payload.size());
  image += key;
  image += kind;
  image.resize(kFactCount.offset, '\0');
  image += number_bytes(facts.size());
  image += fact_text;
  image.resize(payload_offset, '\0');
  image += payload;
  image.replace(kChecksum.offset, kChecksum.bytes, hash_hex(std::string_view(image).substr(kCheckedFrom)));
  EntryHeader header{std::string(kind), std::string(key), facts, payload_offset, payload.size()};
  return Entry(std::move(image), std::move(header));
}

std::optional<Entry> Entry::parse(std::string image, std::string_view kind, std::string_view key, std::string& reason) {
  std::optional<EntryHeader> header = parse_header(image, image.size(), reason);
  if (!header) return std::nullopt;
  if (header->kind != kind || header->key != key) {
    reason = fmt::format("it holds {} {}, not {} {}", header->kind, header->key, kind, key);
    return std::nullopt;
  }
  if (hash_hex(std::string_view(image).substr(kCheckedFrom)) != text_at(image, kChecksum)) {
    reason = "its bytes do not have the checksum that its header states";
    return std::nullopt;
  }
  return Entry(std::move(image), std::move(*header));
}

}  // namespace gdr
