#include "schedule/json_text.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace gdr;
using nlohmann::ordered_json;

TEST_CASE("what fits stands on a line, long members get lines of their own") {
  const std::string long_text(100, 'x');
  struct Row {
    std::string name;
    ordered_json value;
    std::string expected;
  };
  const Row kRows[] = {
      {"number", 12, "12\n"},
      {"half", 0.5, "0.5\n"},
      {"empty", ordered_json::object(), "{}\n"},
      {"short", {{"b", 1}, {"a", {1, 2}}}, "{\"b\": 1, \"a\": [1, 2]}\n"},
      {"escapes", {{"a\n", "\"\\"}}, "{\"a\\n\": \"\\\"\\\\\"}\n"},
      {"not UTF-8", "\xff", "\"\xef\xbf\xbd\"\n"},
      {"long member",
       {{"a", 1}, {"b", 2}, {"c", long_text}, {"d", {{"x", long_text + "12345678"}}}, {"e", 3}, {"f", 4}},
       "{\n  \"a\": 1, \"b\": 2,\n  \"c\": \"" + long_text + "\",\n  \"d\": {\n    \"x\": \"" + long_text +
           "12345678\"\n  },\n  \"e\": 3, \"f\": 4\n}\n"},
      {"list of objects",
       {{{"a", long_text}}, {{"b", 1}}, {{"c", 1}}},
       "[\n  {\"a\": \"" + long_text + "\"},\n  {\"b\": 1},\n  {\"c\": 1}\n]\n"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const std::string text = json_text(row.value);
    CHECK(text == row.expected);
  }
}

TEST_CASE("no line is longer than 120 columns unless a single text is") {
  ordered_json value;
  for (int i = 0; i < 200; ++i) {
    value["key" + std::to_string(i)] = std::string(static_cast<std::size_t>(i % 90), 'y');
    for (int k = 0; k < 40; ++k) value["list"].push_back(k * 1000);
  }
  const std::string text = json_text(value);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) CHECK(end - begin <= 120);
  CHECK(ordered_json::parse(text) == value);
}
