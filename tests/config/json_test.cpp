#include "config/json.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "expect_error.hpp"

using gdr::ErrorKind;
using gdr::JsonDocument;
using gdr::JsonValue;
using gdr::ObjectReader;
using gdr::test::error_text;

namespace {

enum class Colour { red, green };
constexpr std::array<gdr::Choice<Colour>, 2> kColours = {{{"red", Colour::red}, {"green", Colour::green}}};

std::string parse_error(const std::string& text, const gdr::JsonLimits& limits = {}) {
  return error_text(ErrorKind::config, [&] { JsonDocument::parse(text, "f.json", limits); });
}

// Runs `read` on the object that `text` holds and gives the error's text.
template <typename Read>
std::string read_error(const std::string& text, Read read) {
  const JsonDocument document = JsonDocument::parse(text, "f.json");
  return error_text(ErrorKind::config, [&] {
    ObjectReader reader = document.root().object();
    read(reader);
  });
}

}  // namespace

TEST_CASE("texts that are not JSON") {
  struct Row {
    std::string name;
    std::string text;
    std::string error;
  };
  const Row rows[] = {
      {"empty", "",
       "GDR-C02 f.json: line 1, column 1: syntax error while parsing value - unexpected end of input; expected '[', "
       "'{', or a literal."},
      {"truncated in an object", "{\n \"a\": 1,\n \"b\"",
       "GDR-C02 f.json: line 3, column 5: syntax error while parsing object separator - unexpected end of input; "
       "expected ':'."},
      {"truncated in a string", "{\"a\": \"x",
       "GDR-C02 f.json: line 1, column 9: syntax error while parsing value - invalid string: missing closing quote."},
      {"trailing text", "{} {}",
       "GDR-C02 f.json: line 1, column 4: syntax error while parsing value - unexpected '{'; expected end of input."},
      {"trailing comma", "[1,]",
       "GDR-C02 f.json: line 1, column 4: syntax error while parsing value - unexpected ']'; expected '[', '{', or a "
       "literal."},
      {"NaN", "{\"a\": NaN}", "GDR-C02 f.json: line 1, column 7: syntax error while parsing value - invalid literal."},
      {"infinity", "{\"a\": -Infinity}",
       "GDR-C02 f.json: line 1, column 8: syntax error while parsing value - invalid number; expected digit after "
       "'-'."},
      {"overflowing number", "{\"a\": 1e999}", "GDR-C02 f.json: line 1, column 11: number overflow parsing '1e999'."},
      {"comment", "{\"a\": 1} // one",
       "GDR-C02 f.json: line 1, column 10: syntax error while parsing value - invalid literal; expected end of "
       "input."},
      {"byte that starts nothing", "{\"a\": \"\xff\"}", "GDR-C02 f.json: line 1, column 8: byte 0xff is not UTF-8."},
      {"overlong form", "{\"a\":\n\"\xc0\xaf\"}", "GDR-C02 f.json: line 2, column 2: byte 0xc0 is not UTF-8."},
      {"surrogate", "\"\xed\xa0\x80\"", "GDR-C02 f.json: line 1, column 2: byte 0xed is not UTF-8."},
      {"past U+10FFFF", "\"\xf4\x90\x80\x80\"", "GDR-C02 f.json: line 1, column 2: byte 0xf4 is not UTF-8."},
      {"cut sequence at the end", "\"\xe2\x82", "GDR-C02 f.json: line 1, column 2: byte 0xe2 is not UTF-8."},
      {"Latin-1", "\"caf\xe9\"", "GDR-C02 f.json: line 1, column 5: byte 0xe9 is not UTF-8."},
      {"duplicate key", "{\"a\": {\"b\": [1, {\"c\": 1, \"c\": 2}]}}", "GDR-C04 f.json: /a/b/1/c: key is given twice."},
      {"duplicate key at the top", "{\"x/y\": 1, \"x/y\": 1}", "GDR-C04 f.json: /x~1y: key is given twice."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(parse_error(row.text) == row.error);
  }
}

TEST_CASE("size and depth are limited") {
  CHECK(parse_error(std::string(10'000'000, ' ')) == "GDR-C01 f.json: more than the limit of 1048576 bytes.");
  CHECK_NOTHROW(JsonDocument::parse("[]" + std::string(1'048'574, ' '), "f.json"));

  const auto nested = [](int depth) {
    const auto count = static_cast<std::size_t>(depth);
    return std::string(count, '[') + std::string(count, ']');
  };
  CHECK_NOTHROW(JsonDocument::parse(nested(64), "f.json"));
  const std::string too_deep = "GDR-C03 f.json: arrays and objects are nested deeper than 64 levels.";
  CHECK(parse_error(nested(65)) == too_deep);
  CHECK(parse_error(nested(200'000)) == too_deep);
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"\":";
  CHECK(parse_error(objects) == too_deep);

  // A long token or key does not make a long message.
  const std::string key = "\"" + std::string(100'000, 'k') + "\"";
  CHECK(parse_error("{" + key + ": 1, " + key + ": 2}").size() < 300);
  const JsonDocument document = JsonDocument::parse("{" + key + ": 1}", "f.json");
  CHECK(error_text(ErrorKind::config, [&] { document.root().object().finish(); }).size() < 300);
  CHECK(error_text(ErrorKind::config, [&] { document.root().object().string(std::string(100'000, 'k')); }).size() <
        300);
  CHECK(parse_error("\"" + std::string(100'000, 'x')).size() < 300);
}

TEST_CASE("values are read as written") {
  const JsonDocument document =
      JsonDocument::parse(R"({"i": -3, "n": 2.5, "whole": 7, "b": true, "s": "caf)"
                          "\xc3\xa9"
                          R"(", "c": "green", "a": [1, 2], "o": {"x": 1}, "none": null, "big": 9223372036854775807})",
                          "f.json");
  ObjectReader reader = document.root().object();
  CHECK(reader.integer("i", -3, 3) == -3);
  CHECK(reader.number("n") == 2.5);
  CHECK(reader.number("whole", 0, 10) == 7.0);
  CHECK(reader.boolean("b"));
  CHECK(reader.string("s") == "caf\xc3\xa9");
  CHECK(reader.choice("c", kColours) == Colour::green);
  const std::vector<JsonValue> array = reader.array("a", 2, 2);
  CHECK(array[1].integer(0, 2) == 2);
  CHECK(array[1].path() == "/a/1");
  ObjectReader inner = reader.object("o");
  CHECK(inner.path() == "/o");
  CHECK(inner.keys() == std::vector<std::string>{"x"});
  inner.finish();
  CHECK(reader.at("none").is_null());
  CHECK(reader.integer("big", std::int64_t{0}, std::int64_t{INT64_MAX}) == INT64_MAX);
  CHECK(reader.integer_or("absent", 5, 0, 9) == 5);
  CHECK(reader.integer_or("whole", 5, 0, 9) == 7);
  CHECK(reader.boolean_or("absent", true));
  CHECK(reader.string_or("absent", "x") == "x");
  CHECK(reader.string_or("c", "x") == "green");
  CHECK_FALSE(reader.find("absent").has_value());
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("a document may move while its values are in use") {
  JsonDocument first = JsonDocument::parse(R"({"a": [1]})", "f.json");
  const JsonValue value = first.root().object().at("a");
  const JsonDocument second = std::move(first);
  CHECK(second.source() == "f.json");
  CHECK(error_text(ErrorKind::config, [&] { value.boolean(); }) ==
        "GDR-C07 f.json: /a: an array of 1 is not true or false.");
}

TEST_CASE("reading what is not there or not allowed") {
  struct Row {
    std::string name;
    std::string text;
    void (*read)(ObjectReader&);
    std::string error;
  };
  const Row rows[] = {
      {"missing", R"({"a": 1})", [](ObjectReader& r) { r.at("b"); }, "GDR-C05 f.json: top level: key 'b' is missing."},
      {"missing below", R"({"a": {}})", [](ObjectReader& r) { r.object("a").at("b"); },
       "GDR-C05 f.json: /a: key 'b' is missing."},
      {"unknown", R"({"a": 1, "chunck": 2})",
       [](ObjectReader& r) {
         r.find("chunk");
         r.find("a");
         r.finish();
       },
       "GDR-C06 f.json: top level: key \"chunck\" is unknown; allowed are a, chunk."},
      {"unknown below", R"({"a": [{"x": 1}]})",
       [](ObjectReader& r) {
         ObjectReader inner = r.array("a")[0].object();
         inner.find("y");
         inner.finish();
       },
       "GDR-C06 f.json: /a/0: key \"x\" is unknown; allowed are y."},
      {"integer of a string", R"({"a": "4"})", [](ObjectReader& r) { r.integer("a", 1, 8); },
       "GDR-C07 f.json: /a: \"4\" is not a whole number from 1 to 8."},
      {"integer with a fraction", R"({"a": 4.0})", [](ObjectReader& r) { r.integer("a", 1, 8); },
       "GDR-C07 f.json: /a: 4.0 is not a whole number from 1 to 8."},
      {"integer of a boolean", R"({"a": true})", [](ObjectReader& r) { r.integer("a", 0, 8); },
       "GDR-C07 f.json: /a: true is not a whole number from 0 to 8."},
      {"integer too small", R"({"a": 0})", [](ObjectReader& r) { r.integer("a", 1, 8); },
       "GDR-C08 f.json: /a: 0 is out of range; allowed are whole numbers from 1 to 8."},
      {"integer too large", R"({"a": 9})", [](ObjectReader& r) { r.integer("a", 1, 8); },
       "GDR-C08 f.json: /a: 9 is out of range; allowed are whole numbers from 1 to 8."},
      {"integer past 63 bits", R"({"a": 9223372036854775808})",
       [](ObjectReader& r) { r.integer("a", std::int64_t{0}, std::int64_t{INT64_MAX}); },
       "GDR-C08 f.json: /a: 9223372036854775808 is out of range; allowed are whole numbers from 0 to "
       "9223372036854775807."},
      {"integer past 64 bits", R"({"a": 18446744073709551616})", [](ObjectReader& r) { r.integer("a", 1, 8); },
       "GDR-C07 f.json: /a: 1.8446744073709552e+19 is not a whole number from 1 to 8."},
      {"number of a string", R"({"a": "x"})", [](ObjectReader& r) { r.number("a"); },
       "GDR-C07 f.json: /a: \"x\" is not a number."},
      {"number out of range", R"({"a": 1.5})", [](ObjectReader& r) { r.number("a", 0, 1); },
       "GDR-C08 f.json: /a: 1.5 is out of range; allowed are numbers from 0 to 1."},
      {"boolean of a number", R"({"a": 1})", [](ObjectReader& r) { r.boolean("a"); },
       "GDR-C07 f.json: /a: 1 is not true or false."},
      {"string of null", R"({"a": null})", [](ObjectReader& r) { r.string("a"); },
       "GDR-C07 f.json: /a: null is not a string."},
      {"choice", R"({"a": "blue"})", [](ObjectReader& r) { r.choice("a", kColours); },
       "GDR-C08 f.json: /a: \"blue\" is not known; allowed are red, green."},
      {"choice of a number", R"({"a": 1})", [](ObjectReader& r) { r.choice("a", kColours); },
       "GDR-C07 f.json: /a: 1 is not one of red, green."},
      {"object of an array", R"({"a": [1, 2]})", [](ObjectReader& r) { r.object("a"); },
       "GDR-C07 f.json: /a: an array of 2 is not an object."},
      {"array of an object", R"({"a": {}})", [](ObjectReader& r) { r.array("a"); },
       "GDR-C07 f.json: /a: an object is not an array."},
      {"short array", R"({"a": []})", [](ObjectReader& r) { r.array("a", 1); },
       "GDR-C08 f.json: /a: an array of 0 is too short; at least 1 elements are needed."},
      {"long array", R"({"a": [1, 2]})", [](ObjectReader& r) { r.array("a", 0, 1); },
       "GDR-C08 f.json: /a: an array of 2 is too long; at most 1 elements are allowed."},
      {"key with a slash", R"({"a/b": {"~": 1}})", [](ObjectReader& r) { r.object("a/b").string("~"); },
       "GDR-C07 f.json: /a~1b/~0: 1 is not a string."},
      {"own reason", R"({"a": 12})", [](ObjectReader& r) { r.at("a").reject("is not a multiple of 16."); },
       "GDR-C08 f.json: /a: 12 is not a multiple of 16."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(read_error(row.text, row.read) == row.error);
  }
  CHECK(error_text(ErrorKind::config, [] { JsonDocument::parse("3", "f.json").root().object(); }) ==
        "GDR-C07 f.json: top level: 3 is not an object.");
}

TEST_CASE("a long value is cut in messages") {
  const JsonDocument document = JsonDocument::parse("{\"a\": \"" + std::string(5000, 'x') + "\"}", "f.json");
  const std::string text = error_text(ErrorKind::config, [&] { document.root().object().integer("a", 1, 8); });
  CHECK(text == "GDR-C07 f.json: /a: \"" + std::string(59, 'x') + "... is not a whole number from 1 to 8.");
}
