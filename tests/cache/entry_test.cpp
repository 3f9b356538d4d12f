#include "cache/entry.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include "cache/bundle.hpp"
#include "cache/notice.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "support.hpp"

namespace {

using namespace gdr;
using namespace gdr::test;

// Why the bytes are no entry `kind` of key_of(1); empty if they are one.
std::string why_bad(std::string image, std::string_view kind = "cubin") {
  std::string reason;
  const auto entry = Entry::parse(std::move(image), kind, key_of(1), reason);
  CHECK(entry.has_value() == reason.empty());
  return reason;
}

Entry sample() {
  return Entry::make("cubin", key_of(1), payload_of(key_of(1), 500), {{"nvrtc", "12.9"}, {"registers", "168"}});
}

std::string changed(std::string text, std::size_t offset, std::string_view bytes) {
  return text.replace(offset, bytes.size(), bytes);
}

std::string row_of(const EntryField& field) {
  return fmt::format("| {} | {} | `{}` | {} |\n", field.offset, field.bytes, field.name, field.meaning);
}

// As `xxd` prints it.
std::string hex_dump(std::string_view bytes) {
  std::string text;
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    text += fmt::format("{:08x}:", line);
    std::string readable;
    for (std::size_t i = 0; i < 16; ++i) {
      if (i % 2 == 0) text += ' ';
      if (line + i >= bytes.size()) {
        text += "  ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[line + i]);
      text += fmt::format("{:02x}", byte);
      readable += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    }
    text += "  " + readable + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("an entry comes back as it was made") {
  struct Row {
    std::string name;
    std::string kind;
    std::string payload;
    Facts facts;
  };
  const Row rows[] = {
      {"nothing in it", "plan", "", {}},
      {"no facts", "plan", "{}", {}},
      {"facts", "cubin", payload_of(key_of(1), 100'000), {{"nvrtc", "12.9.86"}, {"registers", "168"}}},
      {"facts of any bytes",
       "x",
       "p",
       {{"", ""}, {"a=b\n", std::string("\0\xff\n", 3)}, {"log", std::string(9000, 'l')}}},
      {"longest kind", "abcdefghij_0123", "p", {}},
      {"zeros at the ends", "plan", std::string(200, '\0'), {{"z", std::string(64, '\0')}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Entry made = Entry::make(row.kind, key_of(1), row.payload, row.facts);
    std::string reason;
    const auto read = Entry::parse(made.image(), row.kind, key_of(1), reason);
    REQUIRE(read);
    for (const Entry& entry : {made, *read}) {
      CHECK(entry.kind() == row.kind);
      CHECK(entry.key() == key_of(1));
      CHECK(entry.payload() == row.payload);
      CHECK(entry.facts() == row.facts);
    }
    CHECK((made.image().size() - row.payload.size()) % kPayloadAlignment == 0);
    // The same entry has the same bytes, whenever and wherever it is made.
    CHECK(Entry::make(row.kind, key_of(1), row.payload, row.facts).image() == made.image());
  }
}

TEST_CASE("a change of any bit anywhere in the file is found") {
  const std::string image = sample().image();
  REQUIRE(image.size() == 192 + 500);
  for (std::size_t i = 0; i < image.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = image;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const std::string reason = why_bad(std::move(flipped));
      REQUIRE_MESSAGE(!reason.empty(), "byte ", i, " bit ", bit);
    }
  }
  CHECK(why_bad(image) == "");
}

TEST_CASE("a file of any other length is found") {
  const std::string image = sample().image();
  for (std::size_t bytes = 0; bytes < image.size(); ++bytes)
    REQUIRE_MESSAGE(!why_bad(image.substr(0, bytes)).empty(), bytes, " bytes");
  CHECK(why_bad(image + '\0') == "it has 693 bytes, its header says 192 and 500 of payload");
}

TEST_CASE("the reason says what is wrong") {
  const std::string image = sample().image();
  struct Row {
    std::string image;
    std::string reason;
  };
  const Row rows[] = {
      {"", "it has 0 bytes, the header alone takes 120"},
      {image.substr(0, 119), "it has 119 bytes, the header alone takes 120"},
      {image.substr(0, 200), "it has 200 bytes, its header says 192 and 500 of payload"},
      {changed(image, 1, "gdr"), "its first 8 bytes are not those of a cache entry"},
      {changed(image, 8, "\x02"), "its format has version 2, this gdrjit reads 1"},
      {changed(image, 48, "\x41"), "its payload cannot begin at byte 65"},
      {changed(image, 50, "\xff"), "its payload cannot begin at byte 16711872"},
      {changed(image, 64, "x"), "its key is not 32 hexadecimal digits"},
      {changed(image, 96, "-"), "its kind is not 1 to 15 of a-z, 0-9 and _"},
      {changed(image, 111, "x"), "its kind is not 1 to 15 of a-z, 0-9 and _"},
      {changed(image, 119, "\x7f"), "its facts do not fill the header as they should"},
      {changed(image, 127, "\xff"), "its facts do not fill the header as they should"},
      {changed(image, 300, "hello"), "its bytes do not have the checksum that its header states"},
      {Entry::make("plan", key_of(1), "p", {}).image(), fmt::format("it holds plan {0}, not cubin {0}", key_of(1))},
      {Entry::make("cubin", key_of(2), "p", {}).image(),
       fmt::format("it holds cubin {}, not cubin {}", key_of(2), key_of(1))},
  };
  for (const Row& row : rows) CHECK(why_bad(row.image) == row.reason);
}

TEST_CASE("kinds and keys") {
  for (const char* kind : {"plan", "cubin", "a", "0_z", "abcdefghij_0123"}) CHECK(is_kind(kind));
  for (const char* kind : {"", "Plan", "a-b", "a/b", "..", "a b", "abcdefghij_01234"}) CHECK_FALSE(is_kind(kind));
  CHECK_FALSE(is_kind(std::string_view("a\0", 2)));
  CHECK(is_key(key_of(1)));
  CHECK(is_key("0123456789abcdef0123456789abcdef"));
  for (const char* key : {"", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcde",
                          "0123456789abcdef0123456789abcdef0", "../3456789abcdef0123456789abcdef"})
    CHECK_FALSE(is_key(key));
}

TEST_CASE("what only a fault of the caller can be is an internal error") {
  const std::string text(kMaxHeaderBytes, 'x');
  CHECK_THROWS_WITH_AS(Entry::make("Plan", key_of(1), "", {}), doctest::Contains("GDR-X01"), Error);
  CHECK_THROWS_WITH_AS(Entry::make("plan", "1", "", {}), doctest::Contains("32 hexadecimal digits"), Error);
  CHECK_THROWS_WITH_AS(Entry::make("plan", key_of(1), "", {{"log", text}}), doctest::Contains("64 KiB"), Error);
  const Facts largest = {{"log", text.substr(kFixedHeaderBytes + 16 + 3)}};
  CHECK(Entry::make("plan", key_of(1), "p", largest).image().size() == kMaxHeaderBytes + 1);
}

TEST_CASE("docs/cache-format.md states the layouts, an example and the codes of this build") {
  const std::string text = read_file(GDR_SOURCE_DIR "/docs/cache-format.md");
  REQUIRE(!text.empty());
  const auto states = [&](const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, "docs/cache-format.md should contain:\n", part);
  };
  std::string entry_table, bundle_table, record_table, code_table;
  for (const EntryField& field : kEntryFields) entry_table += row_of(field);
  for (const EntryField& field : kBundleFields) bundle_table += row_of(field);
  for (const EntryField& field : kBundleRecordFields) record_table += row_of(field);
  for (const NoticeCode& code : kNoticeCodes) code_table += fmt::format("| {} | {} |\n", code.code, code.meaning);
  states(entry_table);
  states(bundle_table);
  states(record_table);
  states(code_table);
  states("```\n" +
         hex_dump(Entry::make("plan", hash_hex("example"), "the payload\n", {{"made_by", "gdrjit"}}).image()) + "```");
}
